//! Reading a list of all pods, as `Api::list` does it.

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, Config, api::ListParams};
use serde_json::json;
use windlass_bench::meter;

/// Reads the list from this server, keeps all pods and prints what that cost.
pub(crate) async fn run(url: &str) -> anyhow::Result<()> {
    let config = Config::new(url.parse().context("URL of the server")?);
    let client = Client::try_from(config)?;
    let (cpu, wall) = (meter::cpu(), meter::wall());
    let list = Api::<Pod>::all(client).list(&ListParams::default()).await?;
    let (cpu, wall) = (meter::cpu() - cpu, meter::wall() - wall);
    ensure!(
        list.metadata.resource_version.is_some(),
        "a list without a resource version"
    );
    println!(
        "{}",
        json!({
            "pods": list.items.len(),
            "list_cpu_s": cpu.as_secs_f64(),
            "list_wall_s": wall.as_secs_f64(),
            "peak_mb": meter::peak_rss_bytes()? as f64 / 1e6,
        })
    );
    Ok(())
}
