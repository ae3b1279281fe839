//! Refuses writes of a leader whose time is over.
//!
//! A program can be stopped at any instruction: by the scheduler, a debugger, a full disk. When it
//! goes on it does not know that another leads by now. So each request that would change something
//! asks the clock, right before it is sent, whether the last renewal is recent enough.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::Method;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{Layer, Service};
use windlass_client::{BoxError, Content, Payload, TransportError};

/// Until when writes may be sent. Clones share it: the elector moves it, the client asks it.
///
/// A renewal that was sent at `t` is good until `t` plus the renew deadline. Others wait for the
/// longer lease duration, from a moment after `t`. What is between the two covers clocks that run
/// at different speeds, and the way of a request that was sent at the last moment.
#[derive(Clone, Default)]
pub struct LeaderGuard(Arc<Mutex<State>>);

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// `None` while somebody else may lead.
    until: Option<Instant>,
    /// How many writes were refused.
    refused: u64,
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

    /// Whether a write may be sent now.
    ///
    /// # Errors
    /// When it may not; this is counted.
    pub fn check(&self) -> Result<(), NotLeader> {
        let mut state = self.0.lock();
        if state.until.is_some_and(|until| Instant::now() < until) {
            return Ok(());
        }
        state.refused += 1;
        Err(NotLeader)
    }

    /// Until when writes may be sent, if at all.
    #[must_use]
    pub fn valid_until(&self) -> Option<Instant> {
        self.0.lock().until
    }

    /// How many writes were refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.lock().refused
    }

    /// Lets writes pass until then; never shortens what was granted.
    pub(crate) fn extend(&self, until: Instant) {
        let mut state = self.0.lock();
        state.until = state.until.max(Some(until));
    }

    /// Lets no write pass any more.
    pub(crate) fn close(&self) {
        self.0.lock().until = None;
    }
}

impl fmt::Debug for LeaderGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LeaderGuard").field(&*self.0.lock()).finish()
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
        if is_write(request.method())
            && let Err(refusal) = self.guard.check()
        {
            let refusal = TransportError {
                may_have_arrived: false,
                source: Box::new(refusal),
            };
            return Box::pin(async { Err(refusal.into()) });
        }
        let answer = self.inner.call(request);
        Box::pin(async { answer.await.map_err(Into::into) })
    }
}

/// Whether a request of this method may change something.
pub(crate) fn is_write(method: &Method) -> bool {
    !method.is_safe()
}
