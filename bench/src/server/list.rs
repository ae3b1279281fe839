//! Listing all pods in one answer.

use anyhow::ensure;
use windlass_bench::contest::Numbers;
use windlass_bench::meter;

use super::wire::Target;
use super::{named, quantile};

/// The middle one of so many lists counts.
const ROUNDS: usize = 3;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

pub(super) async fn run(pods: usize) -> anyhow::Result<Numbers> {
    let target = Target::from_environment()?;
    let json = lists(&target, "application/json", pods * 1024).await?;
    let protobuf = lists(&target, PROTOBUF, pods * 512).await?;
    Ok(named([
        ("list_wall_s", json.wall_s),
        ("list_mb", json.mb),
        ("client_cpu_s_per_list", json.cpu_s),
        ("protobuf_list_wall_s", protobuf.wall_s),
        ("protobuf_list_mb", protobuf.mb),
    ]))
}

/// The figures of the lists in one encoding.
struct Lists {
    wall_s: f64,
    mb: f64,
    /// CPU time of the client for one list.
    cpu_s: f64,
}

async fn lists(target: &Target, media_type: &str, bytes_min: usize) -> anyhow::Result<Lists> {
    let mut wire = target.connect().await?;
    let request = target.get_as("/api/v1/pods", media_type);
    let mut took = Vec::new();
    let mut bytes = 0;
    let cpu = meter::cpu();
    for _ in 0..ROUNDS {
        let before = meter::wall();
        let (status, size) = wire.exchange(&request).await?;
        took.push((meter::wall() - before).as_secs_f64());
        ensure!(status == 200, "list: {status}");
        ensure!(
            size > bytes_min,
            "a list of {size} bytes in {media_type} is too short"
        );
        bytes = size;
    }
    let cpu = (meter::cpu() - cpu).as_secs_f64() / ROUNDS as f64;
    Ok(Lists {
        wall_s: quantile(&mut took, 0.5),
        mb: bytes as f64 / 1e6,
        cpu_s: cpu,
    })
}
