//! The loop around the rules: when to try, when to give up, what to tell.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout_at};
use windlass_client::RestClient;
use windlass_core::Env;

use super::{
    guard::{LeaderGuard, Moment},
    lease::LeaseLock,
    machine::{Election, Request, Turn},
    options::{ElectionOptions, ElectionOptionsError, JITTER_FACTOR},
    record::LeaseRecord,
};
use crate::{
    events::{EventRecorder, EventType},
    health::{Check, CheckFailed},
    metrics::ElectionMetrics,
    shutdown::Shutdown,
};

/// The Lease could not be renewed in time; another may lead by now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("leader election lost")]
pub struct LeadershipLost;

type OnNewLeader = Arc<dyn Fn(&str) + Send + Sync>;

/// One candidate of an election.
///
/// [`run`](Self::run) waits until the Lease is ours, does the work, renews meanwhile, and gives
/// the Lease back after the work has ended, never before.
pub struct LeaderElector {
    options: ElectionOptions,
    lock: LeaseLock,
    env: Env,
    guard: LeaderGuard,
    /// Shared with the health check. Never locked while a request is on its way.
    election: Arc<Mutex<Election>>,
    recorder: Option<EventRecorder>,
    metrics: ElectionMetrics,
    on_new_leader: Option<OnNewLeader>,
    /// The holder that was told of last.
    reported: Mutex<Option<String>>,
}

impl LeaderElector {
    /// A candidate. The client must not be behind the guard of this election, and has a short
    /// time-out: a Lease that is answered late is of no use.
    ///
    /// # Errors
    /// When the options contradict each other.
    pub fn new(
        client: RestClient,
        env: Env,
        options: ElectionOptions,
    ) -> Result<Self, ElectionOptionsError> {
        options.validate()?;
        let election = Election::new(options.identity.clone(), options.lease_duration);
        let lock = LeaseLock::new(client, options.lease.clone(), options.labels.clone());
        Ok(Self {
            options,
            lock,
            guard: LeaderGuard::on(env.clone()),
            env,
            election: Arc::new(Mutex::new(election)),
            recorder: None,
            metrics: ElectionMetrics::default(),
            on_new_leader: None,
            reported: Mutex::new(None),
        })
    }

    /// Tells of wins and losses by events on the Lease.
    #[must_use]
    pub fn recorder(mut self, recorder: EventRecorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Calls a function with each new holder that is seen, also with ourselves.
    #[must_use]
    pub fn on_new_leader(mut self, function: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_new_leader = Some(Arc::new(function));
        self
    }

    pub(crate) fn metrics(mut self, metrics: ElectionMetrics) -> Self {
        metrics.leads(self.options.lease.name(), false);
        self.metrics = metrics;
        self
    }

    /// The guard that writes must ask before they are sent.
    #[must_use]
    pub fn guard(&self) -> LeaderGuard {
        self.guard.clone()
    }

    /// A health check that fails when we are the recorded holder and have not renewed for longer
    /// than the lease duration and `tolerance`.
    #[must_use]
    pub fn health(&self, tolerance: std::time::Duration) -> Check {
        let (election, options) = (self.election.clone(), self.options.clone());
        Check::new("leaderElection", move || {
            let election = election.lock();
            let (_, seen) = election.observed();
            let limit = options.lease_duration + tolerance;
            match seen {
                Some(seen) if election.is_leader() && seen.elapsed() > limit => {
                    let name = options.lease.name();
                    Err(CheckFailed::new(format!(
                        "failed election to renew leadership on lease {name}"
                    )))
                }
                _ => Ok(()),
            }
        })
    }

    /// Waits for the Lease, then runs `lead`, renewing meanwhile. When `lead` has returned, the
    /// Lease is given back if the options say so.
    ///
    /// `lead` gets a signal that tells when leadership is lost; its future is dropped then, and
    /// writes have been refused since. If `stop` comes before the Lease is ours, `lead` is never
    /// called. After that `stop` means nothing here: the caller ends `lead`.
    ///
    /// # Errors
    /// When the Lease could not be renewed in time.
    pub async fn run<F, Fut, T>(
        &self,
        stop: &Shutdown,
        lead: F,
    ) -> Result<Option<T>, LeadershipLost>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        tokio::select! {
            biased;
            () = stop.requested() => {
                self.withdraw().await;
                return Ok(None);
            }
            () = self.acquire() => {}
        }
        let result = tokio::select! {
            biased;
            result = lead() => Ok(Some(result)),
            () = self.renew() => Err(LeadershipLost),
        };
        self.guard.close();
        self.metrics.leads(self.options.lease.name(), false);
        if result.is_ok() && self.options.is_released_on_stop {
            self.release().await;
        }
        self.tell("stopped leading");
        result
    }

    /// Tries until the Lease is ours.
    pub async fn acquire(&self) {
        let identity = &self.options.identity;
        tracing::info!(lease = %self.lock.key(), identity, "attempting to acquire leader lease...");
        while !self.attempt().await {
            sleep(self.env.jitter(self.options.retry_period, JITTER_FACTOR)).await;
        }
        tracing::info!(lease = %self.lock.key(), identity, "successfully acquired lease");
        self.metrics.leads(self.options.lease.name(), true);
        self.tell("became leader");
    }

    /// Renews the Lease until that has failed for as long as the renew deadline.
    pub async fn renew(&self) {
        loop {
            let deadline = Instant::now() + self.options.renew_deadline;
            if timeout_at(deadline, self.renewed()).await.is_err() {
                tracing::error!(lease = %self.lock.key(), "failed to renew lease in time");
                return;
            }
            sleep(self.options.retry_period).await;
        }
    }

    /// Tries until a renewal succeeds.
    async fn renewed(&self) {
        while !self.attempt().await {
            sleep(self.options.retry_period).await;
        }
    }

    /// Makes one attempt to acquire or renew. Returns whether the Lease is ours.
    pub async fn attempt(&self) -> bool {
        let before = self.election.lock().slow_renewals();
        let mut turn = self
            .election
            .lock()
            .begin(Instant::now(), self.env.now_micro());
        let mut before_send = Moment::now(&self.env);
        loop {
            match turn {
                Turn::Send(request) => {
                    before_send = Moment::now(&self.env);
                    let answer = self.lock.send(request).await;
                    let (now, wall) = (Instant::now(), self.env.now_micro());
                    turn = self.election.lock().answer(answer, now, wall);
                    self.tell_of_new_leader();
                }
                Turn::Leading(sent_at) => {
                    let deadline = self.options.renew_deadline;
                    self.guard.extend(before_send, sent_at, deadline);
                    if self.election.lock().slow_renewals() > before {
                        self.metrics.slow_renewal(self.options.lease.name());
                    }
                    return true;
                }
                Turn::Following => return false,
            }
        }
    }

    /// Gives back a Lease that may have become ours while nobody waited for the answer.
    async fn withdraw(&self) {
        let is_claiming = self.election.lock().is_claiming();
        if is_claiming && self.options.is_released_on_stop {
            self.release().await;
        }
    }

    /// Gives the Lease back, if it is ours. Returns whether it is not ours any more.
    pub async fn release(&self) -> bool {
        self.guard.close();
        let deadline = Instant::now() + self.options.renew_deadline;
        timeout_at(deadline, self.release_now())
            .await
            .unwrap_or(false)
    }

    async fn release_now(&self) -> bool {
        let Ok(lease) = self.lock.read().await else {
            return false;
        };
        let record = {
            let mut election = self.election.lock();
            election.observe(LeaseRecord::from_lease(&lease), Instant::now());
            election.release(self.env.now_micro())
        };
        let Some(record) = record else { return true };
        match self.lock.send(Request::Update(record.clone())).await {
            super::Answer::Lease(_) => {
                self.election.lock().observe(record, Instant::now());
                true
            }
            super::Answer::Missing | super::Answer::Failed => false,
        }
    }

    #[cfg(test)]
    pub(super) fn election_slow_renewals(&self) -> u64 {
        self.election.lock().slow_renewals()
    }

    fn tell_of_new_leader(&self) {
        let holder = self.election.lock().observed().0.holder.clone();
        let mut reported = self.reported.lock();
        if holder.is_empty() || reported.as_deref() == Some(&*holder) {
            return;
        }
        tracing::info!(lease = %self.lock.key(), identity = holder, "new leader elected");
        if let Some(function) = &self.on_new_leader {
            function(&holder);
        }
        *reported = Some(holder);
    }

    fn tell(&self, what: &str) {
        if let (Some(recorder), Some(lease)) = (&self.recorder, self.lock.last()) {
            let message = format!("{} {what}", self.options.identity);
            recorder.event(&lease, EventType::Normal, "LeaderElection", &message);
        }
    }
}

impl fmt::Debug for LeaderElector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderElector")
            .field("options", &self.options)
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}
