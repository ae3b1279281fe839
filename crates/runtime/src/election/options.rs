//! The times of an election, and the rules between them.

use std::time::Duration;

use windlass_core::Key;

/// The jitter of a candidate's wait beyond the retry period, as a share of it.
pub const JITTER_FACTOR: f64 = 1.2;

/// Options of a leader election. The defaults are those of the Kubernetes components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectionOptions {
    /// The Lease.
    pub lease: Key,
    /// Our identity: a name that no other candidate has.
    pub identity: String,
    /// The time that candidates wait after the last sign of life of a leader.
    pub lease_duration: Duration,
    /// The time that a leader tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// The wait between two attempts.
    pub retry_period: Duration,
    /// True if a leader that stops gives the Lease back, so that another need not wait.
    pub is_released_on_stop: bool,
    /// Labels for the Lease.
    pub labels: Vec<(String, String)>,
}

/// The options contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionOptionsError {
    /// A leader would hold on longer than others wait.
    #[error("leaseDuration must be greater than renewDeadline")]
    LeaseDuration,
    /// A leader would have one attempt at most.
    #[error("renewDeadline must be greater than retryPeriod*JitterFactor")]
    RenewDeadline,
    /// A time is zero.
    #[error("{0} must be greater than zero")]
    Zero(&'static str),
    /// Nobody could tell the candidates apart.
    #[error("Lock identity is empty")]
    Identity,
    /// The Lease has no name or no namespace.
    #[error("a lease needs a name and a namespace, {0:?} is not both")]
    Lease(String),
}

impl ElectionOptions {
    /// An election for a Lease, under a name that no other candidate has.
    #[must_use]
    pub fn new(lease: Key, identity: impl Into<String>) -> Self {
        Self {
            lease,
            identity: identity.into(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            is_released_on_stop: true,
            labels: Vec::new(),
        }
    }

    /// Checks that the options can work.
    ///
    /// # Errors
    /// With the first rule that is broken.
    pub fn validate(&self) -> Result<(), ElectionOptionsError> {
        let zero = |time: Duration, name| match time.is_zero() {
            true => Err(ElectionOptionsError::Zero(name)),
            false => Ok(()),
        };
        if self.lease_duration <= self.renew_deadline {
            return Err(ElectionOptionsError::LeaseDuration);
        }
        if self.renew_deadline <= self.retry_period.mul_f64(JITTER_FACTOR) {
            return Err(ElectionOptionsError::RenewDeadline);
        }
        zero(self.lease_duration, "leaseDuration")?;
        zero(self.renew_deadline, "renewDeadline")?;
        zero(self.retry_period, "retryPeriod")?;
        if self.identity.is_empty() {
            return Err(ElectionOptionsError::Identity);
        }
        match self.lease.namespace() {
            Some(_) => Ok(()),
            None => Err(ElectionOptionsError::Lease(self.lease.to_string())),
        }
    }
}
