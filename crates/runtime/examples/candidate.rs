//! The smallest controller process: it prints pods while it leads, and ends on SIGTERM or SIGINT.
//! Tests let several of them compete for one Lease.

use k8s_openapi::api::core::v1::Pod;
use windlass_core::Key;
use windlass_runtime::{Action, Context, Controller, Manager, Result};

async fn print(key: Key, cx: Context) -> Result<Action> {
    match cx.lister::<Pod>()?.get(&key) {
        None => println!("Pod {key} does not exist anymore"),
        Some(pod) => println!("Sync/Add/Update for Pod {}", pod.name()),
    }
    Ok(Action::done())
}

#[tokio::main]
async fn main() -> Result<()> {
    let manager = Manager::from_flags("candidate").await?;
    manager.add(Controller::of_keys::<Pod>(print));
    Ok(manager.run().await?)
}
