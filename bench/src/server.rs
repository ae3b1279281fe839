//! An API server under load: how soon it is ready, how fast it creates, lists and tells watchers.
//!
//! The same commands drive windlass and kube-apiserver. They speak HTTP/1.1 over TLS with bytes
//! that are copied from templates, and of an answer they read no more than they must, so that on
//! a machine that client and server share, the server gets almost all of it.

mod create;
mod fanout;
mod list;
mod start;
pub(crate) mod wire;

use std::future::Future;

use windlass_bench::contest::Numbers;

pub(crate) use start::start;

/// Creates the pods of the corpus with so many clients at a time, then gives half of them the
/// status of a running pod.
pub(crate) fn create(pods: usize, clients: usize) -> anyhow::Result<Numbers> {
    block_on(create::run(pods, clients))
}

/// Lists all pods at once, a few times.
pub(crate) fn list(pods: usize) -> anyhow::Result<Numbers> {
    block_on(list::run(pods))
}

/// Opens so many watches, and writes one pod after the other.
pub(crate) fn fanout(watchers: usize) -> anyhow::Result<Numbers> {
    block_on(fanout::run(watchers))
}

pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(work)
}

/// Figures under their names.
pub(crate) fn named<const N: usize>(numbers: [(&str, f64); N]) -> Numbers {
    numbers
        .map(|(name, number)| (name.to_owned(), number))
        .into()
}

/// The value below which this part of the values is.
pub(crate) fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values
        .get((values.len() as f64 * part) as usize)
        .or(values.get(last))
        .copied()
        .unwrap_or(f64::NAN)
}
