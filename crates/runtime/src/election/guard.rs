//! Refuses writes of a leader whose time is over.
//!
//! A program can be stopped at any instruction: by the scheduler, a debugger, a full disk. When it
//! goes on it does not know that another leads by now. So each request that would change something
//! asks the clocks, right before it is sent and whenever it goes on, whether the last renewal is
//! recent enough.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::Method;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{Layer, Service};
use windlass_client::{BoxError, Content, Payload, TransportError};
use windlass_core::{Env, MicroTime};

/// Until when writes may be sent. Clones share it: the elector moves it, the client asks it.
///
/// A renewal that was sent at `t` is good until `t` plus the renew deadline. Others wait for the
/// longer lease duration, from a moment after `t`. What is between the two covers clocks that run
/// at different speeds, and the way of a request that was sent at the last moment.
///
/// The usual clock stands still while a machine is suspended. So the deadline counts on three
/// clocks, and the first of them that has reached it closes the guard: the usual one, the one that
/// goes on during a suspension, and the time of day, which is all that may tell a virtual machine
/// that it was paused.
#[derive(Clone, Default)]
pub struct LeaderGuard {
    state: Arc<Mutex<State>>,
    /// `None` for one that was never opened.
    env: Option<Env>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// `None` while somebody else may lead.
    until: Option<Deadline>,
    /// The number of refused writes.
    refused: u64,
}

/// A moment on every clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    instant: Instant,
    since_boot: Duration,
    wall: MicroTime,
}

/// The same moment in the future, as each clock would have it.
#[derive(Clone, Copy, Debug)]
struct Deadline(Moment);

impl Moment {
    pub(crate) fn now(env: &Env) -> Self {
        Self {
            instant: Instant::now(),
            since_boot: env.since_boot(),
            wall: env.now_micro(),
        }
    }

    fn after(self, instant: Instant, duration: Duration) -> Deadline {
        Deadline(Self {
            instant: instant + duration,
            since_boot: self.since_boot.saturating_add(duration),
            wall: self.wall + duration,
        })
    }
}

impl Deadline {
    /// Returns true if no clock has reached it.
    fn is_ahead(&self, now: &Moment) -> bool {
        let Self(until) = self;
        now.instant < until.instant && now.since_boot < until.since_boot && now.wall < until.wall
    }

    /// The later one on each clock.
    fn max(self, other: Self) -> Self {
        let (Self(one), Self(other)) = (self, other);
        Self(Moment {
            instant: one.instant.max(other.instant),
            since_boot: one.since_boot.max(other.since_boot),
            wall: one.wall.max(other.wall),
        })
    }
}

/// A write was not sent, because we do not lead, or cannot be sure to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the leader: the lease is not held, or was not renewed in time")]
pub struct NotLeader;

impl LeaderGuard {
    /// A guard that lets no write pass.
    #[must_use]
    pub fn closed() -> Self {
        Self::default()
    }

    /// The same, for an elector with these clocks.
    pub(crate) fn on(env: Env) -> Self {
        Self {
            env: Some(env),
            ..Self::default()
        }
    }

    /// Checks that a write may be sent now.
    ///
    /// # Errors
    /// When it may not; this is counted.
    pub fn check(&self) -> Result<(), NotLeader> {
        let now = self.env.as_ref().map(Moment::now);
        let mut state = self.state.lock();
        match (state.until, now) {
            (Some(until), Some(now)) if until.is_ahead(&now) => Ok(()),
            _ => {
                state.refused += 1;
                Err(NotLeader)
            }
        }
    }

    /// Until when writes may be sent, if at all, on a machine that is not suspended.
    #[must_use]
    pub fn valid_until(&self) -> Option<Instant> {
        self.state.lock().until.map(|until| until.0.instant)
    }

    /// The number of refused writes.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.state.lock().refused
    }

    /// Lets writes pass for some time from when a renewal was sent; never shortens what was
    /// granted. `before` is a moment right before it went out.
    pub(crate) fn extend(&self, before: Moment, sent: Instant, duration: Duration) {
        let granted = before.after(sent, duration);
        let mut state = self.state.lock();
        state.until = Some(state.until.map_or(granted, |until| until.max(granted)));
    }

    /// Lets no write pass any more.
    pub(crate) fn close(&self) {
        self.state.lock().until = None;
    }
}

impl fmt::Debug for LeaderGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LeaderGuard")
            .field(&*self.state.lock())
            .finish()
    }
}

/// Puts a [`LeaderGuard`] before a transport.
#[derive(Clone, Debug)]
pub struct GuardLayer(LeaderGuard);

impl GuardLayer {
    /// Asks this guard before each write.
    #[must_use]
    pub fn new(guard: LeaderGuard) -> Self {
        Self(guard)
    }
}

impl<S> Layer<S> for GuardLayer {
    type Service = GuardService<S>;

    fn layer(&self, inner: S) -> GuardService<S> {
        GuardService {
            inner,
            guard: self.0.clone(),
        }
    }
}

/// A transport behind a [`LeaderGuard`].
#[derive(Clone, Debug)]
pub struct GuardService<S> {
    inner: S,
    guard: LeaderGuard,
}

impl<S> Service<http::Request<Payload>> for GuardService<S>
where
    S: Service<http::Request<Payload>, Response = http::Response<Content>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
{
    type Response = http::Response<Content>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: http::Request<Payload>) -> Self::Future {
        if !is_write(request.method()) {
            let answer = self.inner.call(request);
            return Box::pin(async { answer.await.map_err(Into::into) });
        }
        if let Err(refusal) = self.guard.check() {
            let refusal = refused(refusal, false);
            return Box::pin(async { Err(refusal) });
        }
        Box::pin(GuardedWrite {
            answer: Box::pin(self.inner.call(request)),
            guard: self.guard.clone(),
            is_begun: false,
        })
    }
}

/// A write that is on its way. It may wait for a connection, and this process may be stopped
/// meanwhile: so the guard is asked again whenever it goes on.
struct GuardedWrite<F> {
    answer: Pin<Box<F>>,
    guard: LeaderGuard,
    /// From then on some of it may have been sent.
    is_begun: bool,
}

impl<F, E> Future for GuardedWrite<F>
where
    F: Future<Output = Result<http::Response<Content>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<http::Response<Content>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Err(refusal) = self.guard.check() {
            return Poll::Ready(Err(refused(refusal, self.is_begun)));
        }
        self.is_begun = true;
        self.answer.as_mut().poll(cx).map_err(Into::into)
    }
}

fn refused(refusal: NotLeader, may_have_arrived: bool) -> BoxError {
    let refusal = TransportError {
        may_have_arrived,
        source: Box::new(refusal),
    };
    refusal.into()
}

/// Returns true if a request of this method may change something.
pub(crate) fn is_write(method: &Method) -> bool {
    !method.is_safe()
}
