//! How far a rollout may deviate from the number of replicas.

use windlass_core::{Doc, IntOrString, ScaleError};

/// How a Deployment replaces its pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    RollingUpdate,
    Recreate,
}

impl Strategy {
    /// The strategy that a Deployment names.
    ///
    /// # Errors
    /// With the name of one that does not exist.
    pub(super) fn of(deployment: &Doc) -> Result<Self, String> {
        match deployment.str_at("/spec/strategy/type") {
            "RollingUpdate" => Ok(Self::RollingUpdate),
            "Recreate" => Ok(Self::Recreate),
            other => Err(other.to_owned()),
        }
    }
}

/// How many pods a Deployment is to have.
pub(super) fn replicas(deployment: &Doc) -> i64 {
    deployment.at("/spec/replicas").as_i64().unwrap_or(1)
}

/// How many pods more and fewer there may be; at least one of them is not zero.
pub(super) fn fenceposts(
    surge: Option<&IntOrString>,
    unavailable: Option<&IntOrString>,
    replicas: i64,
) -> Result<(i64, i64), ScaleError> {
    let surge = surge.map_or(Ok(0), |it| it.scaled_up(replicas))?;
    let unavailable = unavailable.map_or(Ok(0), |it| it.scaled_down(replicas))?;
    // With neither, no pod could ever be replaced.
    Ok(if surge == 0 && unavailable == 0 {
        (0, 1)
    } else {
        (surge, unavailable)
    })
}

fn of(deployment: &Doc) -> (i64, i64) {
    if Strategy::of(deployment) != Ok(Strategy::RollingUpdate) {
        return (0, 0);
    }
    let value = |field: &str| {
        let value = deployment.at("/spec/strategy/rollingUpdate").get(field)?;
        value.decode::<IntOrString>().ok()
    };
    let (surge, unavailable) = (value("maxSurge"), value("maxUnavailable"));
    // The server refuses what cannot be scaled.
    fenceposts(surge.as_ref(), unavailable.as_ref(), replicas(deployment)).unwrap_or((0, 0))
}

/// How many pods more than asked for there may be.
pub(super) fn max_surge(deployment: &Doc) -> i64 {
    of(deployment).0
}

/// How many pods may be unavailable.
pub(super) fn max_unavailable(deployment: &Doc) -> i64 {
    let replicas = replicas(deployment);
    if replicas == 0 {
        return 0;
    }
    of(deployment).1.min(replicas)
}

/// How many pods must be available.
pub(super) fn min_available(deployment: &Doc) -> i64 {
    match Strategy::of(deployment) {
        Ok(Strategy::RollingUpdate) => replicas(deployment) - max_unavailable(deployment),
        _ => 0,
    }
}

/// How large the set of the current template should be now. `size` is what it is, `total` the
/// sum of all sets.
pub(super) fn new_set_size(deployment: &Doc, size: i64, total: i64) -> i64 {
    let replicas = replicas(deployment);
    if Strategy::of(deployment) != Ok(Strategy::RollingUpdate) {
        return replicas;
    }
    let room = replicas + max_surge(deployment) - total;
    if room <= 0 {
        return size;
    }
    size + room.min(replicas - size)
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    fn rolling(replicas: i64, surge: Doc, unavailable: Doc) -> Doc {
        doc!({
            "spec": {
                "replicas": replicas,
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": { "maxSurge": surge, "maxUnavailable": unavailable }
                }
            }
        })
    }

    #[test]
    fn fenceposts_leave_room_on_one_side() {
        let text = |text: &str| Some(IntOrString::from(text));
        for (surge, unavailable, replicas, expected) in [
            (text("0%"), text("0%"), 0, (0, 1)),
            (text("39%"), text("39%"), 0, (0, 1)),
            (text("39%"), text("39%"), 10, (4, 3)),
            (None, Some(1.into()), 10, (0, 1)),
            (None, None, 10, (0, 1)),
            (Some(2.into()), None, 10, (2, 0)),
        ] {
            let found = fenceposts(surge.as_ref(), unavailable.as_ref(), replicas).unwrap();
            assert_eq!(found, expected, "{surge:?} {unavailable:?} of {replicas}");
        }
        assert!(fenceposts(text("oops").as_ref(), None, 10).is_err());
        assert!(fenceposts(None, text("0").as_ref(), 10).is_err());
    }

    #[test]
    fn no_more_than_all_pods_may_be_unavailable() {
        for (replicas, unavailable, expected) in [
            (10, doc!(2), 2),
            (5, doc!(10), 5),
            (0, doc!(2), 0),
            (10, doc!("50%"), 5),
            (10, doc!("100%"), 10),
        ] {
            let deployment = rolling(replicas, doc!(1), unavailable);
            assert_eq!(max_unavailable(&deployment), expected);
            assert_eq!(min_available(&deployment), replicas - expected);
        }
        let recreate = doc!({ "spec": { "replicas": 10, "strategy": { "type": "Recreate" } } });
        assert_eq!(
            (max_unavailable(&recreate), min_available(&recreate)),
            (0, 0)
        );
    }

    #[test]
    fn the_new_set_grows_into_the_room_there_is() {
        for (replicas, size, surge, total, expected) in [
            (1, 5, 1, 10, 5),
            (6, 2, 10, 2, 6),
            (10, 0, 2, 10, 2),
            (10, 0, 2, 5, 7),
            (10, 2, 2, 12, 2),
        ] {
            let deployment = rolling(replicas, doc!(surge), doc!(1));
            assert_eq!(new_set_size(&deployment, size, total), expected);
        }
        let recreate = doc!({ "spec": { "replicas": 3, "strategy": { "type": "Recreate" } } });
        assert_eq!(new_set_size(&recreate, 1, 1), 3);
    }
}
