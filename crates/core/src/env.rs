//! The source of time, randomness and ids.
//!
//! Nothing else in the project asks the operating system for them, and so a run with a seeded
//! [`Env`] and a [`Clock`] of its own repeats exactly: same times, same uids, same jitter.

mod random;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use self::random::Random;
use crate::{MicroTime, Time, Uid};

/// The length of the random suffix of a generated name.
pub const SUFFIX_LEN: usize = 5;
/// The characters of generated suffixes: without vowels and the digits that resemble them, no
/// words can come out.
pub(crate) const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// A source of time.
pub trait Clock: Send + Sync {
    /// Time passed since the clock was made. It never goes back.
    fn elapsed(&self) -> Duration;

    /// The time of day.
    fn wall(&self) -> MicroTime;

    /// Time passed since some moment, with the time in which the machine was suspended. A clock
    /// that cannot tell gives the time without it.
    fn since_boot(&self) -> Duration {
        self.elapsed()
    }
}

/// Time, randomness and ids; clones share both clock and randomness.
#[derive(Clone)]
pub struct Env {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    /// Drawn from by every clone; one draw is a few nanoseconds, so nobody waits for long.
    random: Mutex<Random>,
}

impl Env {
    /// The clocks and the randomness of the operating system.
    ///
    /// # Panics
    /// When the operating system has no randomness to give, on which nothing safe can be built.
    #[must_use]
    pub fn real() -> Self {
        Self::new(Arc::new(SystemClock::start()), Random::system())
    }

    /// Randomness that repeats for the same seed, and a clock that stands still.
    ///
    /// Uids from here can be guessed: this is for tests and simulations.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self::seeded_with(seed, Arc::new(ManualClock::new()))
    }

    /// Randomness that repeats for the same seed, and the given clock.
    #[must_use]
    pub fn seeded_with(seed: u64, clock: Arc<dyn Clock>) -> Self {
        Self::new(clock, Random::seeded(seed))
    }

    fn new(clock: Arc<dyn Clock>, random: Random) -> Self {
        Self {
            shared: Arc::new(Shared {
                clock,
                random: Mutex::new(random),
            }),
        }
    }

    /// The time of day in whole seconds.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now_micro().to_time()
    }

    /// The time of day in microseconds.
    #[must_use]
    pub fn now_micro(&self) -> MicroTime {
        self.shared.clock.wall()
    }

    /// Time passed since the clock was made. It never goes back.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.shared.clock.elapsed()
    }

    /// Time passed since some moment, with the time in which the machine was suspended. It never
    /// goes back.
    #[must_use]
    pub fn since_boot(&self) -> Duration {
        self.shared.clock.since_boot()
    }

    /// 64 random bits.
    #[must_use]
    pub fn random_u64(&self) -> u64 {
        self.shared.random.lock().next_u64()
    }

    /// A random number below `bound`, each equally likely; zero when there is none below.
    #[must_use]
    pub fn random_below(&self, bound: u64) -> u64 {
        self.shared.random.lock().below(bound)
    }

    /// `duration` lengthened by a random share of it, up to `max_factor` times it. A factor that
    /// is not positive counts as one.
    #[must_use]
    pub fn jitter(&self, duration: Duration, max_factor: f64) -> Duration {
        let factor = if max_factor > 0.0 { max_factor } else { 1.0 };
        let extra = duration.as_secs_f64() * factor * self.shared.random.lock().fraction();
        let extra = Duration::try_from_secs_f64(extra).unwrap_or(Duration::MAX);
        duration.saturating_add(extra)
    }

    /// A fresh uid: a random (version 4) UUID of RFC 4122.
    #[must_use]
    pub fn uid(&self) -> Uid {
        let mut random = self.shared.random.lock();
        let (high, low) = (random.next_u64(), random.next_u64());
        drop(random);
        let version = high & !0xf000 | 0x4000;
        let variant = low & (u64::MAX >> 2) | 1 << 63;
        let (node, clock) = (variant & 0xffff_ffff_ffff, variant >> 48);
        let (time, mid) = (version >> 32, version >> 16 & 0xffff);
        let text = format!(
            "{time:08x}-{mid:04x}-{:04x}-{clock:04x}-{node:012x}",
            version & 0xffff
        );
        Uid::from(text)
    }

    /// The random end of a generated name.
    #[must_use]
    pub fn name_suffix(&self) -> String {
        let mut random = self.shared.random.lock();
        (0..SUFFIX_LEN)
            .map(|_| random.pick(ALPHABET))
            .map(char::from)
            .collect()
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env")
            .field("elapsed", &self.elapsed())
            .finish_non_exhaustive()
    }
}

/// The clocks of the operating system.
struct SystemClock {
    start: Instant,
}

impl SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the project reads the clock"
    )]
    fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the project reads the clock"
    )]
    fn wall(&self) -> MicroTime {
        let epoch = MicroTime::from_unix_micros(0);
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => epoch + after,
            Err(error) => epoch - error.duration(),
        }
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn since_boot(&self) -> Duration {
        use rustix::time::{ClockId, clock_gettime};
        // Every kernel since 2.6.39 has it.
        Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_else(|_| self.elapsed())
    }
}

/// A clock that moves only when told to. It starts at 2026-01-01T00:00:00Z.
#[derive(Debug, Default)]
pub struct ManualClock {
    elapsed: Mutex<Duration>,
}

impl ManualClock {
    /// 2026-01-01T00:00:00Z in seconds since the start of 1970.
    const START_UNIX: i64 = 1_767_225_600;

    /// A clock at its start.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves both the time passed and the time of day.
    pub fn advance(&self, by: Duration) {
        let mut elapsed = self.elapsed.lock();
        *elapsed = elapsed.saturating_add(by);
    }
}

impl Clock for ManualClock {
    fn elapsed(&self) -> Duration {
        *self.elapsed.lock()
    }

    fn wall(&self) -> MicroTime {
        MicroTime::from(Time::from_unix(Self::START_UNIX)) + self.elapsed()
    }
}
