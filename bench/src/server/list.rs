//! Listing all pods in one answer.

use anyhow::ensure;
use windlass_bench::contest::Numbers;
use windlass_bench::meter;

use super::wire::Target;
use super::{named, quantile};

/// The middle one of so many lists counts.
const ROUNDS: usize = 3;

pub(super) async fn run(pods: usize) -> anyhow::Result<Numbers> {
    let target = Target::from_environment()?;
    let mut wire = target.connect().await?;
    let mut took = Vec::new();
    let mut bytes = 0;
    let cpu = meter::cpu();
    for _ in 0..ROUNDS {
        let before = meter::wall();
        let (status, size) = wire.request("GET", "/api/v1/pods", b"").await?;
        took.push((meter::wall() - before).as_secs_f64());
        ensure!(status == 200, "list: {status}");
        ensure!(size > pods * 1024, "a list of {size} bytes is too short");
        bytes = size;
    }
    let cpu = (meter::cpu() - cpu).as_secs_f64() / ROUNDS as f64;
    Ok(named([
        ("list_wall_s", quantile(&mut took, 0.5)),
        ("list_mb", bytes as f64 / 1e6),
        ("client_cpu_s_per_list", cpu),
    ]))
}
