//! The operator on the cluster of the kubeconfig.

use windlass::prelude::*;

#[tokio::main]
async fn main() -> Result<()> {
    let manager = Manager::from_flags("webapp-operator").await?;
    manager.add(webapp_operator::controller());
    Ok(manager.run().await?)
}
