//! The Deployment controller on a cluster: black box, by what is there in the end.

mod adoption;
mod faults;
mod history;
mod progress;
mod recreate;
mod rolling;
mod rollout;
mod scaling;
mod undo;

use crate::{kubelet, simulated, stage};
use stage::{DEPLOYMENTS, Stage, number, reason};
use windlass_core::{Doc, doc};

/// A Deployment with limits on its rollout.
pub(crate) fn rolling(name: &str, replicas: i64, surge: i64, unavailable: i64) -> Doc {
    let strategy = doc!({
        "type": "RollingUpdate",
        "rollingUpdate": { "maxSurge": surge, "maxUnavailable": unavailable }
    });
    stage::deployment(name, replicas)
        .with("/spec/strategy", strategy)
        .unwrap()
}

/// A Deployment that ends all old pods before it starts new ones.
pub(crate) fn recreating(name: &str, replicas: i64) -> Doc {
    stage::deployment(name, replicas)
        .with("/spec/strategy", doc!({ "type": "Recreate" }))
        .unwrap()
}

impl Stage {
    /// Gives a Deployment another image.
    pub(crate) async fn set_image(&self, name: &str, image: &str) {
        let patch = doc!({
            "spec": { "template": { "spec": { "containers": [{ "name": "c", "image": image }] } } }
        });
        self.patch(&DEPLOYMENTS, name, patch).await;
    }

    /// Waits until all pods of a Deployment are new and available.
    pub(crate) async fn until_complete(&self, name: &str) {
        self.until(async |s| is_complete(&s.get(&DEPLOYMENTS, name).await))
            .await;
    }

    /// The sizes of the sets, from the lowest revision to the highest.
    pub(crate) async fn sizes(&self) -> Vec<i64> {
        let sets = self.sets().await;
        sets.iter()
            .map(|set| number(set, "/spec/replicas"))
            .collect()
    }
}

pub(crate) fn is_complete(deployment: &Doc) -> bool {
    let wanted = number(deployment, "/spec/replicas");
    let counts = ["replicas", "updatedReplicas", "availableReplicas"];
    let is_observed =
        number(deployment, "/status/observedGeneration") == deployment.meta().generation();
    is_observed
        && counts
            .iter()
            .all(|count| number(deployment, &format!("/status/{count}")) == wanted)
        && reason(deployment, "Progressing") == "NewReplicaSetAvailable"
}
