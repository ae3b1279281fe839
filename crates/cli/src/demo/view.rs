//! The demonstration at one moment, in lines.

use windlass_cache::Lister;
use windlass_core::{Doc, Key, Selector, condition};

/// One line about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// `TYPE/NAME`: stays the same while the object does.
    pub(super) title: String,
    pub(super) state: String,
}

/// What there is, in the order of the lines.
#[derive(Debug)]
pub(super) struct View {
    deployments: Vec<Doc>,
    pods: Vec<Doc>,
    claims: Vec<Doc>,
}

impl View {
    pub(super) fn of(deployments: &Lister, pods: &Lister, claims: &Lister) -> Self {
        Self {
            deployments: sorted(deployments),
            pods: sorted(pods),
            claims: sorted(claims),
        }
    }

    /// Whether every Deployment has what it asks for.
    pub(super) fn is_settled(&self) -> bool {
        !self.deployments.is_empty() && self.deployments.iter().all(is_complete)
    }

    /// Each Deployment, followed by its pods.
    pub(super) fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for deployment in &self.deployments {
            lines.push(Line {
                title: format!("deployment/{}", deployment.meta().name()),
                state: format!("{}/{} ready", ready(deployment), wanted(deployment)),
            });
            let app = deployment.at("/spec/selector/matchLabels/app");
            let pods = self.pods.iter();
            let of_it = pods.filter(|pod| pod.at("/metadata/labels/app") == app);
            lines.extend(of_it.map(|pod| Line {
                title: format!("  pod/{}", pod.meta().name()),
                state: self.state_of(pod),
            }));
        }
        lines
    }

    fn state_of(&self, pod: &Doc) -> String {
        let is_ready = condition(pod, "Ready").is_some_and(|ready| ready.is_true());
        let phase = match (pod.meta().is_deleting(), pod.str_at("/status/phase")) {
            (true, _) => "Terminating",
            (false, "Running") if is_ready => "Ready",
            (false, phase) => phase,
        };
        let mut state = phase.to_owned();
        let node = pod.str_at("/spec/nodeName");
        if !node.is_empty() {
            state += &format!(" on {node}");
        }
        match self.device_of(pod) {
            Some(device) => state + " with " + &device,
            None => state,
        }
    }

    /// The device that the claim of a pod was given.
    fn device_of(&self, pod: &Doc) -> Option<String> {
        let claim = pod.str_at("/status/resourceClaimStatuses/0/resourceClaimName");
        let mut claims = self.claims.iter();
        let claim = claims.find(|found| found.meta().name() == claim)?;
        let device = claim.str_at("/status/allocation/devices/results/0/device");
        (!device.is_empty()).then(|| device.to_owned())
    }
}

fn sorted(lister: &Lister) -> Vec<Doc> {
    let objects = lister.list(&Selector::everything());
    let mut objects: Vec<(Key, Doc)> = objects
        .iter()
        .map(|object| (object.key(), object.doc().clone()))
        .collect();
    objects.sort_by(|one, other| one.0.cmp(&other.0));
    objects.into_iter().map(|(_, object)| object).collect()
}

fn wanted(deployment: &Doc) -> i64 {
    deployment.at("/spec/replicas").as_i64().unwrap_or(1)
}

fn ready(deployment: &Doc) -> i64 {
    let ready = deployment.at("/status/readyReplicas");
    ready.as_i64().unwrap_or(0)
}

/// Whether the pods of the newest template are there, and no others.
fn is_complete(deployment: &Doc) -> bool {
    let number = |path: &str| deployment.at(path).as_i64().unwrap_or(0);
    let wanted = wanted(deployment);
    number("/status/observedGeneration") == deployment.meta().generation()
        && number("/status/replicas") == wanted
        && number("/status/updatedReplicas") == wanted
        && number("/status/availableReplicas") == wanted
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    fn deployment(ready: i64) -> Doc {
        doc!({
            "metadata": { "name": "web", "generation": 1 },
            "spec": { "replicas": 2, "selector": { "matchLabels": { "app": "web" } } },
            "status": {
                "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2,
                "readyReplicas": ready, "availableReplicas": ready,
            },
        })
    }

    fn view(ready: i64) -> View {
        View {
            deployments: vec![deployment(ready)],
            pods: vec![doc!({
                "metadata": { "name": "web-1", "labels": { "app": "web" } },
                "spec": { "nodeName": "node-0" },
                "status": {
                    "phase": "Running",
                    "conditions": [{ "type": "Ready", "status": "True" }],
                    "resourceClaimStatuses": [{ "name": "gpu", "resourceClaimName": "c" }],
                },
            })],
            claims: vec![doc!({
                "metadata": { "name": "c" },
                "status": { "allocation": { "devices": { "results": [{ "device": "gpu-3" }] } } },
            })],
        }
    }

    #[test]
    fn pods_stand_under_their_deployment_with_their_device() {
        let lines = view(1).lines();
        let lines: Vec<_> = lines
            .iter()
            .map(|line| (line.title.as_str(), line.state.as_str()))
            .collect();
        assert_eq!(
            lines,
            [
                ("deployment/web", "1/2 ready"),
                ("  pod/web-1", "Ready on node-0 with gpu-3")
            ]
        );
    }

    #[test]
    fn a_deployment_is_settled_when_all_its_pods_are_available() {
        assert!(!view(1).is_settled());
        assert!(view(2).is_settled());
    }
}
