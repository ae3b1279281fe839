//! The taints of the devices that claims have.

use std::time::Duration;

use windlass_cache::Obj;
use windlass_core::{Doc, MicroTime, Time};

use crate::tolerations::{NO_EXECUTE, tolerates};

/// The slices of all pools.
pub(super) struct Slices(Vec<Obj>);

impl Slices {
    pub(super) fn new(slices: Vec<Obj>) -> Self {
        Self(slices)
    }

    /// A device as the newest generation of its pool describes it.
    fn device(&self, driver: &str, pool: &str, name: &str) -> Option<&Doc> {
        let of_pool = || {
            let slices = self.0.iter().map(Obj::doc);
            slices.filter(|it| {
                it.str_at("/spec/driver") == driver && it.str_at("/spec/pool/name") == pool
            })
        };
        let newest = of_pool().map(generation).max()?;
        let devices = of_pool()
            .filter(|it| generation(it) == newest)
            .flat_map(|it| it.at("/spec/devices").items());
        devices
            .into_iter()
            .find(|device| device.str_at("/name") == name)
    }

    /// The time at which the pods of a claim have to go; `None` if they may stay.
    pub(super) fn eviction_time(&self, claim: &Doc) -> Option<MicroTime> {
        let results = claim.at("/status/allocation/devices/results").items();
        let times = results.iter().filter_map(|result| {
            let (driver, pool) = (result.str_at("/driver"), result.str_at("/pool"));
            let device = self.device(driver, pool, result.str_at("/device"))?;
            let taints = device.at("/taints").items().iter();
            let evicting = taints.filter(|it| it.str_at("/effect") == NO_EXECUTE);
            let tolerations = result.at("/tolerations").items();
            evicting
                .filter_map(|taint| end_of_toleration(taint, tolerations))
                .min()
        });
        times.min()
    }
}

fn generation(slice: &Doc) -> i64 {
    slice.at("/spec/pool/generation").as_i64().unwrap_or(0)
}

/// The time until which a taint is tolerated; `None` for ever. A taint counts from when it was
/// added, and a toleration only if it is about this effect in so many words.
fn end_of_toleration(taint: &Doc, tolerations: &[Doc]) -> Option<MicroTime> {
    let added: Option<Time> = taint.str_at("/timeAdded").parse().ok();
    let matching = tolerations
        .iter()
        .filter(|it| it.str_at("/effect") == NO_EXECUTE && tolerates(it, taint));
    let seconds: Option<Vec<i64>> = matching
        .map(|it| it.at("/tolerationSeconds").as_i64())
        .collect();
    // One without a limit covers the taint for ever.
    let shortest = seconds?.into_iter().min().unwrap_or(0);
    let time = Duration::from_secs(u64::try_from(shortest).unwrap_or(0));
    Some(MicroTime::from(added? + time))
}

/// Returns true if a claim has a device of the pool that a slice belongs to.
pub(super) fn uses_pool(claim: &Doc, slice: &Doc) -> bool {
    let (driver, pool) = (
        slice.str_at("/spec/driver"),
        slice.str_at("/spec/pool/name"),
    );
    let mut results = claim
        .at("/status/allocation/devices/results")
        .items()
        .iter();
    results.any(|it| it.str_at("/driver") == driver && it.str_at("/pool") == pool)
}

/// Returns true if a claim is reserved for this very pod.
pub(super) fn is_reserved_for(claim: &Doc, pod: &Doc) -> bool {
    let mut users = claim.at("/status/reservedFor").items().iter();
    users.any(|it| it.str_at("/uid") == pod.meta().uid_str())
}

/// The claims of a pod, and for each whether it was made for the pod.
pub(super) fn claim_names(pod: &Doc) -> Vec<(String, bool)> {
    let wanted = pod.at("/spec/resourceClaims").items().iter();
    let names = wanted.filter_map(|wanted| {
        let direct = wanted.str_at("/resourceClaimName");
        if !direct.is_empty() {
            return Some((direct.to_owned(), false));
        }
        let mut made = pod.at("/status/resourceClaimStatuses").items().iter();
        let made = made.find(|it| it.str_at("/name") == wanted.str_at("/name"))?;
        let name = made.str_at("/resourceClaimName");
        (!name.is_empty()).then(|| (name.to_owned(), true))
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    #[test]
    fn the_shortest_toleration_counts_from_when_the_taint_was_added() {
        let taint = doc!({
            "key": "k", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"
        });
        let toleration = |seconds: Option<i64>| {
            let base = doc!({ "operator": "Exists", "effect": "NoExecute" });
            match seconds {
                Some(seconds) => base.with("/tolerationSeconds", seconds),
                None => Ok(base),
            }
            .expect("it is an object")
        };
        let end = |tolerations: &[Doc]| {
            let end = end_of_toleration(&taint, tolerations);
            end.map(|it| it.to_time().to_string())
        };
        assert_eq!(end(&[]).as_deref(), Some("2026-01-01T00:00:00Z"));
        let both = [toleration(Some(60)), toleration(Some(30))];
        assert_eq!(end(&both).as_deref(), Some("2026-01-01T00:00:30Z"));
        assert_eq!(
            end(&[toleration(Some(-1))]).as_deref(),
            Some("2026-01-01T00:00:00Z")
        );
        assert_eq!(end(&[toleration(Some(60)), toleration(None)]), None);
        let any_effect = doc!({ "operator": "Exists" });
        assert_eq!(end(&[any_effect]).as_deref(), Some("2026-01-01T00:00:00Z"));
    }
}
