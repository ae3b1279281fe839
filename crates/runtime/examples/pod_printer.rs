//! Prints every pod that comes, changes or goes. Ends on SIGTERM or SIGINT.
//!
//! A key that fails is tried five more times and then dropped. Run it against any cluster:
//! `cargo run --example pod_printer -- --leader-elect=false --metrics-bind-address=0`

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
    let manager = Manager::from_flags("pod-printer").await?;
    manager.add(Controller::of_keys::<Pod>(print).max_retries(5));
    Ok(manager.run().await?)
}
