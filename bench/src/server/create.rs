//! Creating pods, each client its own, as fast as the server takes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::ensure;
use tokio::task::JoinSet;
use windlass_bench::contest::Numbers;
use windlass_bench::corpus::Corpus;
use windlass_bench::meter;

use super::wire::{Target, Wire};
use super::{named, quantile};

/// What all clients share.
struct Job {
    corpus: Corpus,
    next: AtomicUsize,
}

pub(super) async fn run(pods: usize, clients: usize) -> anyhow::Result<Numbers> {
    let target = Target::from_environment()?;
    let corpus = Corpus::new(pods);
    make_namespaces(&target, &corpus).await?;
    let mut wires = Vec::new();
    for _ in 0..clients {
        wires.push(target.connect().await?);
    }
    let job = Arc::new(Job {
        corpus,
        next: AtomicUsize::new(0),
    });
    let (cpu, wall) = (meter::cpu(), meter::wall());
    let (wires, mut took) = together(wires, &job, create).await?;
    let (cpu, wall) = (meter::cpu() - cpu, meter::wall() - wall);
    job.next.store(0, Ordering::Relaxed);
    together(wires, &job, run_pod).await?;
    Ok(named([
        ("creates_per_s", pods as f64 / wall.as_secs_f64()),
        ("create_p50_ms", quantile(&mut took, 0.50) * 1e3),
        ("create_p99_ms", quantile(&mut took, 0.99) * 1e3),
        (
            "client_cpu_us_per_create",
            cpu.as_secs_f64() * 1e6 / pods as f64,
        ),
    ]))
}

async fn make_namespaces(target: &Target, corpus: &Corpus) -> anyhow::Result<()> {
    let mut wire = target.connect().await?;
    for name in corpus.namespaces() {
        let body =
            format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
        let (status, _) = wire
            .request("POST", "/api/v1/namespaces", body.as_bytes())
            .await?;
        ensure!(matches!(status, 201 | 409), "namespace {name}: {status}");
    }
    Ok(())
}

/// Runs one task per connection until the pods are through, and returns how long each call took.
async fn together<F>(
    wires: Vec<Wire>,
    job: &Arc<Job>,
    step: impl Fn(Wire, Arc<Job>) -> F,
) -> anyhow::Result<(Vec<Wire>, Vec<f64>)>
where
    F: Future<Output = anyhow::Result<(Wire, Vec<f64>)>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for wire in wires {
        tasks.spawn(step(wire, Arc::clone(job)));
    }
    let (mut wires, mut took) = (Vec::new(), Vec::new());
    while let Some(outcome) = tasks.join_next().await {
        let (wire, times) = outcome??;
        wires.push(wire);
        took.extend(times);
    }
    Ok((wires, took))
}

async fn create(mut wire: Wire, job: Arc<Job>) -> anyhow::Result<(Wire, Vec<f64>)> {
    let (mut body, mut key, mut took) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(index) = job.take() {
        body.clear();
        job.corpus.write_create(index, &mut body);
        let namespace = job.namespace(index, &mut key)?;
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        let before = meter::wall();
        let (status, _) = wire.request("POST", &path, &body).await?;
        took.push((meter::wall() - before).as_secs_f64());
        ensure!(status == 201, "pod {index}: {status}");
    }
    Ok((wire, took))
}

/// Gives pods the status of running ones.
async fn run_pod(mut wire: Wire, job: Arc<Job>) -> anyhow::Result<(Wire, Vec<f64>)> {
    let (mut body, mut key) = (Vec::new(), Vec::new());
    while let Some(index) = job.take() {
        if !Corpus::is_running(index) {
            continue;
        }
        body.clear();
        body.extend_from_slice(b"{\"status\":");
        job.corpus.write_status(index, &mut body);
        body.push(b'}');
        job.namespace(index, &mut key)?;
        let key = std::str::from_utf8(&key)?;
        let path = format!(
            "/api/v1/namespaces/{}/status",
            key.replacen('/', "/pods/", 1)
        );
        let (status, _) = wire.request("PATCH", &path, &body).await?;
        ensure!(status == 200, "status of {key}: {status}");
    }
    Ok((wire, Vec::new()))
}

impl Job {
    fn take(&self) -> Option<usize> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        (index < self.corpus.len()).then_some(index)
    }

    /// Writes the key of a pod and returns its namespace.
    fn namespace<'a>(&self, index: usize, key: &'a mut Vec<u8>) -> anyhow::Result<&'a str> {
        key.clear();
        self.corpus.write_key(index, key);
        let text = std::str::from_utf8(key)?;
        Ok(text.split('/').next().unwrap_or_default())
    }
}
