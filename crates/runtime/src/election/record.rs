//! The election record in a Lease.

use std::time::Duration;

use windlass_core::{Doc, MicroTime, Object, Str};

/// The `spec` of a Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The identity of the leader; empty when the Lease was given back.
    pub holder: String,
    /// The time that the others shall wait. Whole seconds.
    pub duration: Duration,
    /// When the holder came to lead, on its own clock.
    pub acquired: Option<MicroTime>,
    /// When the holder last said that it is alive, on its own clock.
    pub renewed: Option<MicroTime>,
    /// The number of times that the Lease has changed hands.
    pub transitions: i64,
    /// The strategy of a coordinated election.
    pub strategy: Option<String>,
    /// The identity that shall lead next, in a coordinated election.
    pub preferred_holder: Option<String>,
}

impl LeaseRecord {
    /// Reads the `spec` of a Lease. What is absent or malformed is as if it were not set.
    #[must_use]
    pub fn from_lease(lease: &Doc) -> Self {
        let spec = lease.at("/spec");
        let text = |name: &str| spec.get(name).and_then(Doc::as_str).map(str::to_owned);
        let number = |name: &str| spec.get(name).and_then(Doc::as_i64).unwrap_or(0);
        let time = |name: &str| spec.get(name).and_then(Doc::as_str)?.parse().ok();
        Self {
            holder: text("holderIdentity").unwrap_or_default(),
            duration: Duration::from_secs(
                u64::try_from(number("leaseDurationSeconds")).unwrap_or(0),
            ),
            acquired: time("acquireTime"),
            renewed: time("renewTime"),
            transitions: number("leaseTransitions"),
            strategy: text("strategy"),
            preferred_holder: text("preferredHolder"),
        }
    }

    /// The `spec` of a Lease.
    #[must_use]
    pub fn to_spec(&self) -> Doc {
        let text = |text: &Option<String>| text.as_ref().map(Doc::from);
        let time = |time: Option<MicroTime>| time.map(|time| Doc::from(time.to_string()));
        let fields = [
            ("holderIdentity", Some(Doc::from(&self.holder))),
            (
                "leaseDurationSeconds",
                Some(Doc::from(self.duration.as_secs())),
            ),
            ("acquireTime", time(self.acquired)),
            ("renewTime", time(self.renewed)),
            ("leaseTransitions", Some(Doc::from(self.transitions))),
            ("strategy", text(&self.strategy)),
            ("preferredHolder", text(&self.preferred_holder)),
        ];
        let present = fields
            .into_iter()
            .filter_map(|(name, value)| Some((Str::new(name), value?)));
        present.collect::<Object>().into()
    }
}
