//! Everything there is at the end of a script, without what is random or a time.

use std::collections::BTreeMap;

use windlass_core::Doc;

use crate::scene::{
    CLAIMS, DAEMON_SETS, EVENTS, PODS, REVISIONS, SLICES, STATEFUL_SETS, Scene, node_of,
};

const HASH: &str = "controller-revision-hash";

impl Scene {
    pub(crate) async fn picture(&self) -> String {
        let revisions = self.list(&REVISIONS).await;
        let hashes = DaemonHashes::of(&revisions);
        let mut lines: Vec<String> = Vec::new();
        for set in self.list(&STATEFUL_SETS).await {
            lines.push(format!("statefulset {}", set.at("/status")));
        }
        for set in self.list(&DAEMON_SETS).await {
            lines.push(format!("daemonset {}", set.at("/status")));
        }
        let pods = self.list(&PODS).await;
        lines.extend(pods.iter().map(|it| pod(it, &hashes)));
        lines.extend(revisions.iter().map(|it| revision(it, &hashes)));
        lines.extend(self.list(&CLAIMS).await.iter().map(claim));
        lines.extend(self.list(&SLICES).await.iter().map(slice));
        // kube-apiserver itself tells of addresses that it has not noted yet.
        let events = self.list(&EVENTS).await.into_iter();
        let events = events.filter(|event| event.str_at("/reason") != "ClusterIPNotAllocated");
        lines.extend(events.map(|event| {
            let text = ["/type", "/reason", "/message", "/source/component"];
            format!("event {}", text.map(|at| event.str_at(at)).join(" "))
        }));
        let mut lines: Vec<String> = lines.iter().map(|line| self.masked(line)).collect();
        lines.sort();
        lines.join("\n")
    }

    /// A text without the random ends of the names of pods of DaemonSets.
    fn masked(&self, text: &str) -> String {
        let text = text.replace(&self.namespace, "NAMESPACE");
        let words = text.split(' ').map(|word| match word.find("agent-") {
            Some(at) => {
                let (start, name) = word.split_at(at + "agent-".len());
                let end = name.find(|c: char| !c.is_ascii_alphanumeric());
                format!("{start}*{}", end.map_or("", |end| &name[end..]))
            }
            None => word.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

/// The hashes of templates of DaemonSets, which differ from theirs, by the numbers of revisions.
struct DaemonHashes(BTreeMap<String, String>);

impl DaemonHashes {
    fn of(revisions: &[Doc]) -> Self {
        let hash = |it: &Doc| {
            let number = it.at("/revision").to_string();
            Some((it.meta().label(HASH)?.to_owned(), format!("#{number}")))
        };
        Self(revisions.iter().filter_map(hash).collect())
    }

    fn labels(&self, object: &Doc) -> Vec<String> {
        let labels: BTreeMap<_, _> = object.meta().labels().iter().collect();
        let label = |(key, value): (&str, &str)| {
            let known = self.0.get(value).map_or(value, String::as_str);
            format!("{key}={known}")
        };
        labels.into_iter().map(label).collect()
    }
}

fn owners(object: &Doc) -> Vec<String> {
    let owners = object.meta().owner_refs();
    let text = |it: windlass_core::OwnerRef| {
        format!(
            "{} {} {} {}",
            it.api_version, it.kind, it.name, it.controller
        )
    };
    owners.map(text).collect()
}

fn pod(pod: &Doc, hashes: &DaemonHashes) -> String {
    let spec = [
        "/spec/hostname",
        "/spec/subdomain",
        "/status/phase",
        "/metadata/generateName",
        "/spec/containers/0/image",
    ];
    let spec = spec.map(|at| pod.str_at(at));
    let volumes = pod.at("/spec/volumes").items().iter();
    let volumes: Vec<_> = volumes
        .filter(|it| it.get("persistentVolumeClaim").is_some())
        .map(ToString::to_string)
        .collect();
    format!(
        "pod {} on {} {spec:?} {} {:?} {:?} {volumes:?} {}",
        pod.meta().name(),
        node_of(pod),
        pod.meta().is_deleting(),
        owners(pod),
        hashes.labels(pod),
        pod.at("/spec/tolerations"),
    )
}

fn revision(revision: &Doc, hashes: &DaemonHashes) -> String {
    format!(
        "revision {} {} {} {:?} {:?} {}",
        revision.meta().name(),
        revision.at("/revision"),
        revision.at("/data"),
        owners(revision),
        hashes.labels(revision),
        revision.at("/metadata/annotations"),
    )
}

fn claim(claim: &Doc) -> String {
    let labels: BTreeMap<_, _> = claim.meta().labels().iter().collect();
    let (name, owners) = (claim.meta().name(), owners(claim));
    format!(
        "claim {name} {owners:?} {labels:?} {}",
        claim.at("/spec/resources")
    )
}

fn slice(slice: &Doc) -> String {
    let labels: BTreeMap<_, _> = slice.meta().labels().iter().collect();
    let annotations: BTreeMap<_, _> = slice.meta().annotations().iter().collect();
    let sorted = |at: &str| {
        let items = slice.at(at).items().iter();
        let mut items: Vec<String> = items.map(ToString::to_string).collect();
        items.sort();
        items
    };
    format!(
        "slice {} {} {:?} {:?} {:?} {labels:?} {annotations:?}",
        slice.str_at("/metadata/generateName"),
        slice.str_at("/addressType"),
        sorted("/ports"),
        sorted("/endpoints"),
        owners(slice),
    )
}
