//! A process that uses CPU and leaves the server alone.
//!
//! On a machine that an abuser shares with the server, the abuser's own use of CPU delays the
//! victim too. This shows how much of the delay that is.

use std::hint::black_box;
use std::time::Duration;

use tokio::task::JoinSet;
use windlass_bench::{contest, meter};

use crate::server::{block_on, named};

/// The CPU is used in slices of this period.
const PERIOD: Duration = Duration::from_millis(5);

/// Uses so many cores for some time, on as many threads as there are cores.
pub(super) fn run(cores: f64, time: Duration) -> anyhow::Result<()> {
    let threads = std::thread::available_parallelism()?.get();
    let share = (cores / threads as f64).clamp(0.0, 1.0);
    block_on(async {
        super::wait_for_start()?;
        let (cpu, wall) = (meter::cpu(), meter::wall());
        let mut tasks = JoinSet::new();
        for _ in 0..threads {
            tasks.spawn(burn(share, wall + time));
        }
        tasks.join_all().await;
        let (cpu, wall) = (meter::cpu() - cpu, meter::wall() - wall);
        let cores = cpu.as_secs_f64() / wall.as_secs_f64();
        println!("{}", contest::to_json(&named([("abuser_cores", cores)])));
        Ok(())
    })
}

async fn burn(share: f64, end: Duration) {
    let mut periods = tokio::time::interval(PERIOD);
    while meter::wall() < end {
        periods.tick().await;
        let until = meter::wall() + PERIOD.mul_f64(share);
        while meter::wall() < until {
            black_box((0..1_000_u64).map(black_box).sum::<u64>());
        }
    }
}
