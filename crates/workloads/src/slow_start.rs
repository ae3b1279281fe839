//! Many calls in growing batches.

use futures_util::{StreamExt, stream::FuturesUnordered};

/// What became of the calls of a [`slow_start`].
#[derive(Debug)]
#[must_use]
pub struct SlowStart<E> {
    /// How many calls succeeded.
    pub succeeded: usize,
    /// How many were never made, because an earlier batch had a failure.
    pub skipped: usize,
    /// The first failure of the last batch.
    pub error: Option<E>,
}

/// Makes `count` calls in batches of 1, 2, 4 and so on, those of a batch at the same time, and
/// stops after the first batch with a failure.
///
/// If all calls are going to fail, as when a quota is exhausted, the first one shows it: a server
/// is not asked five hundred times for the same refusal. The calls run inside the caller's task.
///
/// ```
/// # use windlass_workloads::slow_start;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // The fourth call and those after it are refused, which the third batch finds out.
/// let create = |at| async move { if at < 3 { Ok(()) } else { Err("quota") } };
/// let outcome = slow_start(10, create).await;
/// assert_eq!((outcome.succeeded, outcome.skipped), (3, 3));
/// assert_eq!(outcome.error, Some("quota"));
/// # }
/// ```
pub async fn slow_start<F, Fut, T, E>(count: usize, call: F) -> SlowStart<E>
where
    F: Fn(usize) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let mut outcome = SlowStart {
        succeeded: 0,
        skipped: 0,
        error: None,
    };
    let (mut made, mut batch) = (0, 1.min(count));
    while batch > 0 {
        let mut calls: FuturesUnordered<_> = (made..made + batch).map(&call).collect();
        while let Some(result) = calls.next().await {
            match result {
                Ok(_) => outcome.succeeded += 1,
                Err(error) => drop(outcome.error.get_or_insert(error)),
            }
        }
        made += batch;
        if outcome.error.is_some() {
            break;
        }
        batch = (2 * batch).min(count - made);
    }
    outcome.skipped = count - made;
    outcome
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// Ten calls of which the first `limit` succeed: how many are made, and how many succeed.
    async fn ten_calls(limit: usize) -> (usize, SlowStart<usize>) {
        let calls = Cell::new(0);
        let outcome = slow_start(10, |at| {
            calls.set(calls.get() + 1);
            async move { if at < limit { Ok(()) } else { Err(at) } }
        })
        .await;
        (calls.get(), outcome)
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_ends_the_batches() {
        for (limit, made, succeeded) in [(0, 1, 0), (10, 10, 10), (5, 7, 5)] {
            let (calls, outcome) = ten_calls(limit).await;
            assert_eq!(
                (calls, outcome.succeeded),
                (made, succeeded),
                "limit {limit}"
            );
            assert_eq!(outcome.error.is_some(), limit < 10);
            assert_eq!(outcome.skipped, 10 - made);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn batches_double_and_end_with_the_rest() {
        let started = tokio::time::Instant::now();
        let times = RefCell::new(Vec::new());
        let _ = slow_start(10, |_| {
            times.borrow_mut().push(started.elapsed().as_secs());
            async {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                Ok::<_, ()>(())
            }
        })
        .await;
        assert_eq!(times.into_inner(), [0, 1, 1, 2, 2, 2, 2, 3, 3, 3]);
    }

    #[tokio::test]
    async fn no_calls_are_no_failure() {
        let outcome = slow_start(0, |_| async { Err::<(), _>("called") }).await;
        assert!(outcome.error.is_none());
    }
}
