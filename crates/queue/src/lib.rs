//! The work queue between event handlers and reconcile workers.
//!
//! Handlers [`add`](WorkQueue::add) keys, workers [`get`](WorkQueue::get) them. The queue keeps
//! three promises that make a level-triggered controller correct:
//!
//! - **one key, one worker**: a key that is handed out is not handed out again before its
//!   [`Item`] is dropped;
//! - **nothing is lost**: a key added while a worker holds it is handed out once more afterwards;
//! - **nothing is repeated for free**: any number of adds before a hand-out are one hand-out.
//!
//! On top of that come delays ([`add_after`](WorkQueue::add_after)), retries with back-off
//! ([`add_rate_limited`](WorkQueue::add_rate_limited) and the [`RateLimiter`]s) and priorities
//! ([`AddOptions`]).
//!
//! There is no background task: delays wait in an ordered set, and one of the idle workers sleeps
//! until the earliest of them. Adding a key never blocks and needs no runtime, so that any thread
//! may do it. All time is `tokio::time`, so a paused clock controls the queue completely.
//!
//! Deliberately absent: an unbounded history of what was done, per-key payloads (a worker reads
//! the cache), and a way to call `done` twice or not at all.
//!
//! ```
//! use windlass_queue::WorkQueue;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let queue = WorkQueue::new();
//! queue.add("default/web");
//! queue.add("default/web");
//! queue.shut_down();
//!
//! let mut seen = Vec::new();
//! while let Some(item) = queue.get().await {
//!     seen.push(*item.key());
//!     queue.forget(item.key());
//! }
//! assert_eq!(seen, ["default/web"]);
//! # }
//! ```

mod inbox;
mod limiter;
mod metrics;
mod parking;
mod queue;
mod slots;
mod state;
mod sync;

pub use limiter::{
    ItemExponential, ItemFastSlow, MaxOf, MaxWait, RateLimiter, TokenBucket, controller_limiter,
};
pub use metrics::{Histogram, Snapshot};
pub use queue::{AddOptions, Builder, Item, PRIORITY_LOW, PRIORITY_NORMAL, WorkQueue};
