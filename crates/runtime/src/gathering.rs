//! Fewer wake-ups where the server is slower than the client.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use windlass_client::{Metrics, RestClient};

/// A server that answers within this time waits for us as much as we wait for it.
const PROMPT: Duration = Duration::from_millis(4);
/// A rest is this share of the time that the server takes beyond that.
const SHARE: u32 = 2;
/// Nothing waits longer than this.
const LONGEST: Duration = Duration::from_millis(10);
/// A shorter rest costs about as much as it saves.
const SHORTEST: Duration = Duration::from_millis(1);
/// With fewer requests on their way than this a rest is shorter in proportion.
const MANY: usize = 16;

/// Lets a thread rest before it waits for messages, so that several are there when it looks.
///
/// A busy API server sends its answers and events one by one, a fraction of a millisecond apart. A
/// thread that is woken for each of them spends more on waking than on the message: by then its
/// code and data have left the caches of the processor. Network cards moderate their interrupts
/// for the same reason.
///
/// The longer the server has taken for its answers lately, the more it has to do, and the less it
/// matters when the next request comes: of what is beyond four milliseconds the thread rests a half,
/// and ten milliseconds at most. The fewer requests are on their way, the shorter it rests, because
/// somebody may wait for the last of them to go on. With one of them, or with a server that answers
/// within six milliseconds, it does not rest at all.
///
/// It is meant for a runtime of one thread:
///
/// ```no_run
/// # use windlass_runtime::{Gathering, Manager};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gathering = Gathering::new();
/// let runtime = tokio::runtime::Builder::new_current_thread()
///     .on_thread_park(gathering.before_park())
///     .enable_all()
///     .build()?;
/// runtime.block_on(async {
///     let manager = Manager::from_flags("map-watcher").await?;
///     gathering.follow(manager.client());
///     manager.run().await?;
///     Ok(())
/// })
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Gathering(Arc<OnceLock<Metrics>>);

impl Gathering {
    /// A thread that does not rest before [`Gathering::follow`] names the server.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the time of the answers that this client gets. The first client counts.
    pub fn follow(&self, client: &RestClient) {
        self.0.get_or_init(|| client.options().metrics.clone());
    }

    /// What [`tokio::runtime::Builder::on_thread_park`] takes.
    pub fn before_park(&self) -> impl Fn() + Send + Sync + 'static {
        let gathering = self.clone();
        move || gathering.rest()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the thread has nothing to do, and the runtime's clock would wake it for each message"
    )]
    fn rest(&self) {
        if let Some(time) = self.0.get().and_then(time_for) {
            thread::sleep(time);
        }
    }
}

fn time_for(server: &Metrics) -> Option<Duration> {
    time(server.answer_time(), server.in_flight())
}

/// How long to rest before the server is listened to again.
fn time(answer: Duration, in_flight: usize) -> Option<Duration> {
    let share = in_flight.min(MANY) as u32;
    let bearable = LONGEST * share / MANY as u32;
    let spare = answer.saturating_sub(PROMPT) / SHARE;
    Some(bearable.min(spare)).filter(|time| *time >= SHORTEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_a_small_part_of_an_answer_and_bounded() {
        let cases = [
            (0, None),
            (5, None),
            (6, Some(1)),
            (8, Some(2)),
            (24, Some(10)),
            (60_000, Some(10)),
        ];
        for (answer, expected) in cases {
            for in_flight in [MANY, 1_000] {
                let rest = time(Duration::from_millis(answer), in_flight);
                assert_eq!(rest, expected.map(Duration::from_millis), "{answer}");
            }
        }
    }

    #[test]
    fn the_last_answers_are_taken_at_once() {
        let rests = (0..=MANY).map(|in_flight| time(Duration::from_secs(1), in_flight));
        let rests: Vec<_> = rests.collect();
        assert_eq!(rests[..2], [None; 2]);
        assert_eq!(rests[MANY / 2], Some(LONGEST / 2));
        assert!(rests.is_sorted());
    }
}
