//! The rules of the election, without time or network of their own.

use std::time::Duration;

use tokio::time::Instant;
use windlass_core::{Doc, MicroTime};

use super::record::LeaseRecord;

/// A request that the election asks to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Read the Lease.
    Read,
    /// Create the Lease.
    Create(LeaseRecord),
    /// Write the Lease, if it is still the one that was read last.
    Update(LeaseRecord),
}

/// The answer to a request of the election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The Lease: as it is, or as it was stored.
    Lease(Doc),
    /// There is no Lease.
    Missing,
    /// Nothing is known: refused, lost, or too late.
    Failed,
}

/// The next step of the election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Send this, and bring the answer.
    Send(Request),
    /// The Lease is ours, renewed by a request that was sent at this moment.
    Leading(Instant),
    /// It is not, or this is not known.
    Following,
}

/// One candidate's view of the election. One attempt is [`begin`](Self::begin), and then
/// [`answer`](Self::answer) until it is decided.
///
/// Only one thing about another holder's times matters: whether they have changed since we looked
/// last. A Lease is valid for as long as its holder said, from the moment we saw it change.
#[derive(Clone, Debug)]
pub struct Election {
    identity: String,
    lease_duration: Duration,
    /// The record that we saw last.
    observed: LeaseRecord,
    /// When it last changed, on our clock.
    observed_at: Option<Instant>,
    phase: Phase,
    /// When the request in flight was sent.
    sent_at: Option<Instant>,
    /// The number of renewals that succeeded the slow way only.
    slow_renewals: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// The Lease was ours when we looked last, and is written without a look.
    FastUpdate(LeaseRecord),
    Reading,
    Creating(LeaseRecord),
    Updating(LeaseRecord),
}

impl Election {
    /// A candidate that has seen nothing yet.
    #[must_use]
    pub fn new(identity: impl Into<String>, lease_duration: Duration) -> Self {
        Self {
            identity: identity.into(),
            lease_duration,
            observed: LeaseRecord::default(),
            observed_at: None,
            phase: Phase::Idle,
            sent_at: None,
            slow_renewals: 0,
        }
    }

    /// Starts an attempt to acquire or renew. One that was not finished is given up.
    pub fn begin(&mut self, now: Instant, wall: MicroTime) -> Turn {
        if self.is_leader() && self.is_valid(now) {
            let record = self.claim(wall);
            self.phase = Phase::FastUpdate(record.clone());
            return self.send(Request::Update(record), now);
        }
        self.phase = Phase::Reading;
        self.send(Request::Read, now)
    }

    /// Takes the answer to what was sent.
    pub fn answer(&mut self, answer: Answer, now: Instant, wall: MicroTime) -> Turn {
        match (std::mem::replace(&mut self.phase, Phase::Idle), answer) {
            (Phase::Idle, _) => Turn::Following,
            (Phase::FastUpdate(record), Answer::Lease(_)) => self.won(record, now),
            (Phase::FastUpdate(_), Answer::Missing | Answer::Failed) => {
                self.phase = Phase::Reading;
                self.send(Request::Read, now)
            }
            (Phase::Reading, Answer::Missing) => {
                let record = LeaseRecord {
                    transitions: 0,
                    acquired: Some(wall),
                    ..self.mine(wall)
                };
                self.phase = Phase::Creating(record.clone());
                self.send(Request::Create(record), now)
            }
            (Phase::Reading, Answer::Lease(lease)) => self.decide(&lease, now, wall),
            (Phase::Reading, Answer::Failed) => Turn::Following,
            (Phase::Creating(record), Answer::Lease(_)) => self.won(record, now),
            (Phase::Updating(record), Answer::Lease(_)) => {
                if self.is_leader() {
                    self.slow_renewals += 1;
                }
                self.won(record, now)
            }
            (Phase::Creating(_) | Phase::Updating(_), Answer::Missing | Answer::Failed) => {
                Turn::Following
            }
        }
    }

    /// The record that we saw last, and the time when it changed.
    #[must_use]
    pub fn observed(&self) -> (&LeaseRecord, Option<Instant>) {
        (&self.observed, self.observed_at)
    }

    /// Returns true if we are the holder that we saw last.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.observed.holder == self.identity
    }

    /// Returns true if a request is on its way that makes the Lease ours if it arrives.
    #[must_use]
    pub fn is_claiming(&self) -> bool {
        !matches!(self.phase, Phase::Idle | Phase::Reading)
    }

    /// The number of times that the Lease had changed under us although it was ours.
    #[must_use]
    pub fn slow_renewals(&self) -> u64 {
        self.slow_renewals
    }

    /// The record that gives the Lease back; `None` if it is not ours, as far as we saw.
    #[must_use]
    pub fn release(&self, wall: MicroTime) -> Option<LeaseRecord> {
        self.is_leader().then(|| LeaseRecord {
            holder: String::new(),
            duration: Duration::from_secs(1),
            acquired: Some(wall),
            renewed: Some(wall),
            ..self.observed.clone()
        })
    }

    /// Takes note of a Lease that was read, or of one that we have written.
    pub fn observe(&mut self, record: LeaseRecord, now: Instant) {
        if self.observed_at.is_none() || self.observed != record {
            self.observed = record;
            self.observed_at = Some(now);
        }
    }

    fn decide(&mut self, lease: &Doc, now: Instant, wall: MicroTime) -> Turn {
        self.observe(LeaseRecord::from_lease(lease), now);
        let is_free = self.observed.holder.is_empty();
        if !is_free && !self.is_leader() && self.is_valid(now) {
            return Turn::Following;
        }
        let record = self.claim(wall);
        self.phase = Phase::Updating(record.clone());
        self.send(Request::Update(record), now)
    }

    fn send(&mut self, request: Request, now: Instant) -> Turn {
        self.sent_at = Some(now);
        Turn::Send(request)
    }

    fn won(&mut self, record: LeaseRecord, now: Instant) -> Turn {
        self.observed = record;
        self.observed_at = Some(now);
        Turn::Leading(self.sent_at.unwrap_or(now))
    }

    /// Returns true if the holder's time has not run out, on our clock.
    fn is_valid(&self, now: Instant) -> bool {
        // A duration beyond the end of time, which a holder may well declare, does not run out.
        let until = |seen: Instant| seen.checked_add(self.observed.duration);
        self.observed_at
            .is_some_and(|seen| until(seen).is_none_or(|until| until > now))
    }

    /// The record with which we take or keep the Lease.
    fn claim(&self, wall: MicroTime) -> LeaseRecord {
        let mine = self.mine(wall);
        if self.is_leader() {
            return LeaseRecord {
                acquired: self.observed.acquired,
                // A clock that was set back must not show in the Lease.
                renewed: self.observed.renewed.max(mine.renewed),
                ..mine
            };
        }
        let transitions = self.observed.transitions.saturating_add(1);
        LeaseRecord {
            transitions,
            acquired: Some(wall),
            ..mine
        }
    }

    fn mine(&self, wall: MicroTime) -> LeaseRecord {
        LeaseRecord {
            holder: self.identity.clone(),
            duration: self.lease_duration,
            renewed: Some(wall),
            ..self.observed.clone()
        }
    }
}
