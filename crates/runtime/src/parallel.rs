//! Many calls, some of them at a time.

use futures_util::{StreamExt, stream::FuturesUnordered};

use crate::Shutdown;

/// Makes the calls `0..count`, at most `limit` of them at the same time, and returns how many were
/// made. After a request to stop none is begun any more; those on their way are finished.
///
/// The calls run inside the caller's task: dropping the future ends them all.
///
/// ```
/// # use windlass_runtime::{Shutdown, parallel};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let made = parallel(4, 100, &Shutdown::new(), async |_at| {}).await;
/// assert_eq!(made, 100);
/// # }
/// ```
pub async fn parallel<F>(limit: usize, count: usize, stop: &Shutdown, call: F) -> usize
where
    F: AsyncFn(usize),
{
    let (mut calls, mut made) = (FuturesUnordered::new(), 0);
    loop {
        while made < count && calls.len() < limit.max(1) && !stop.is_requested() {
            calls.push(call(made));
            made += 1;
        }
        if calls.next().await.is_none() {
            return made;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, time::Duration};

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn at_most_some_calls_run_at_the_same_time_and_all_are_made() {
        let (now, most, seen) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let start = Instant::now();
        let made = parallel(3, 10, &Shutdown::new(), async |at| {
            now.set(now.get() + 1);
            most.set(most.get().max(now.get()));
            sleep(Duration::from_secs(1)).await;
            now.set(now.get() - 1);
            seen.set(seen.get() | 1 << at);
        })
        .await;
        assert_eq!((made, most.get(), seen.get()), (10, 3, (1 << 10) - 1));
        assert_eq!(start.elapsed(), Duration::from_secs(4));
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_stop_no_call_begins_and_those_on_their_way_end() {
        let (stop, ended) = (Shutdown::new(), Cell::new(0));
        let made = parallel(2, 10, &stop, async |at| {
            sleep(Duration::from_secs(1)).await;
            ended.set(ended.get() + 1);
            if at == 3 {
                stop.trigger();
            }
        })
        .await;
        assert_eq!((made, ended.get()), (5, 5), "the fifth was on its way");
    }

    #[tokio::test]
    async fn no_calls_end_at_once() {
        assert_eq!(parallel(0, 0, &Shutdown::new(), async |_| {}).await, 0);
    }
}
