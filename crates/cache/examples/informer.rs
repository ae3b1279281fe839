//! Prints pods as they come, change and go, for a few seconds or as many as the argument says.
//!
//! Run it with `KUBECONFIG` set: `cargo run -p windlass-cache --example informer -- 60`.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio::time::{sleep, timeout};
use windlass_cache::{Deleted, Handler, InformerFactory, Obj};
use windlass_client::{Config, RestClient};

/// How long to wait for the server.
const SYNC_TIMEOUT: Duration = Duration::from_secs(30);

struct Printer;

impl Handler<Pod> for Printer {
    async fn on_add(&self, pod: Obj<Pod>, is_initial: bool) {
        let sign = if is_initial { "=" } else { "+" };
        println!("{sign} {} {}", pod.key(), phase(&pod));
    }

    async fn on_update(&self, old: Obj<Pod>, new: Obj<Pod>) {
        let changed = old.doc().diff(new.doc());
        let paths: Vec<String> = changed
            .iter()
            .map(|change| change.path.to_string())
            .collect();
        println!("~ {} {} ({})", new.key(), phase(&new), paths.join(", "));
    }

    async fn on_delete(&self, deleted: Deleted<Pod>) {
        println!("- {}", deleted.key());
    }
}

fn phase(pod: &Obj<Pod>) -> &str {
    pod.doc().str_at("/status/phase")
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let seconds = std::env::args().nth(1).map_or(Ok(2), |text| text.parse())?;
    let client = RestClient::connect(&Config::load().await?).await?;
    let factory = InformerFactory::new(client);
    let pods = factory.informer::<Pod>();
    let printer = pods.add_handler(Printer)?;
    factory.start();
    timeout(SYNC_TIMEOUT, factory.wait_for_sync()).await??;
    printer.wait_for_sync().await;
    println!(
        "{} pods at revision {:?}",
        pods.lister().len(),
        pods.revision()
    );
    sleep(Duration::from_secs(seconds)).await;
    factory.shutdown().await;
    Ok(())
}
