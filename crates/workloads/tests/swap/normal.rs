//! What is in a namespace, without what differs from run to run.

use std::{collections::BTreeSet, fmt::Write as _};

use windlass_core::{Doc, Gvr, Kind, Object};

use crate::stage::{CONFIG_MAPS, DEPLOYMENTS, EVENTS, PODS, SETS, Stage, revision};

const CONTROLLERS: Gvr = Gvr::constant("", "v1", "replicationcontrollers");
const NAMESPACES: Gvr = Gvr::constant("", "v1", "namespaces");

/// The label by which the pods of a set are told from those of others.
const HASH: &str = "pod-template-hash";

/// Fields that no two runs have in common.
const FLEETING: [&str; 11] = [
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "lastTransitionTime",
    "lastUpdateTime",
    "managedFields",
    "observedGeneration",
    "resourceVersion",
    "startTime",
    "uid",
    "imageID",
];

/// All objects and the reasons of all events, one per line.
pub(crate) async fn picture(stage: &Stage) -> String {
    let names = Names::of(&stage.sets().await, &stage.pods().await);
    let mut lines = BTreeSet::new();
    let mut text = String::new();
    let namespace = stage.cluster.find(&NAMESPACES, &stage.namespace).await;
    if let Some(namespace) = namespace {
        let _ = writeln!(text, "{}", names.normal(&namespace));
    }
    for resource in [DEPLOYMENTS, SETS, CONTROLLERS, PODS, CONFIG_MAPS] {
        let mut objects: Vec<String> = (stage.list(&resource).await.iter())
            .map(|object| names.normal(object))
            .collect();
        objects.sort();
        for object in objects {
            let _ = writeln!(text, "{object}");
        }
    }
    for event in stage.list(&EVENTS).await {
        let (kind, reason) = (
            event.str_at("/involvedObject/kind"),
            event.str_at("/reason"),
        );
        let name = names.involved(&event);
        let source = event.str_at("/source/component");
        lines.insert(format!(
            "{kind} {name} {} {reason} {source}",
            event.str_at("/type")
        ));
    }
    for line in lines {
        let _ = writeln!(text, "event {line}");
    }
    text
}

/// The lines that only one of two pictures has.
pub(crate) fn difference(theirs: &str, ours: &str) -> String {
    let only = |a: &str, b: &str, sign: &str| {
        let lines = a
            .lines()
            .filter(|line| !b.lines().any(|other| other == *line));
        lines
            .map(|line| format!("{sign} {line}\n"))
            .collect::<String>()
    };
    only(theirs, ours, "theirs") + &only(ours, theirs, "ours")
}

/// The hashes of a namespace, each with a name that does not depend on how it is made.
struct Names {
    hashes: Vec<(String, String)>,
    prefixes: Vec<String>,
}

impl Names {
    fn of(sets: &[Doc], pods: &[Doc]) -> Self {
        let label = |object: &Doc| object.meta().label(HASH).map(str::to_owned);
        let hash = |set: &Doc| Some((label(set)?, format!("HASH{}", revision(set))));
        // A pod may be what is left of its set.
        let left = pods.iter().filter_map(label);
        let left = left.map(|hash| (hash, "HASH".to_owned()));
        let prefixes = sets.iter().map(|set| format!("{}-", set.meta().name()));
        Self {
            hashes: sets.iter().filter_map(hash).chain(left).collect(),
            prefixes: prefixes.collect(),
        }
    }

    fn normal(&self, object: &Doc) -> String {
        let is_pod = object.str_at("/kind") == "Pod";
        let is_random = is_pod && !object.meta().generate_name().is_empty();
        let object = match is_random {
            true => object.with("/metadata/name", "RANDOM").unwrap(),
            false => object.clone(),
        };
        let observed = object.at("/status/observedGeneration").as_i64();
        let has_status = ["Deployment", "ReplicaSet", "ReplicationController"];
        let has_status = has_status.contains(&object.str_at("/kind"));
        let is_observed = !has_status || observed == Some(object.meta().generation());
        let flags = format!(
            "observed={is_observed} deleting={}",
            object.meta().is_deleting()
        );
        let json = String::from_utf8(bare(&object).to_json()).unwrap();
        format!("{flags} {}", self.replaced(&json))
    }

    /// The object that an event is about. A set that is gone took its revision with it.
    fn involved(&self, event: &Doc) -> String {
        let name = event.str_at("/involvedObject/name");
        let is_known = self
            .prefixes
            .iter()
            .any(|prefix| *prefix == format!("{name}-"));
        match event.str_at("/involvedObject/kind") {
            "ReplicaSet" if !is_known => "GONE".to_owned(),
            _ => self.replaced(name),
        }
    }

    /// A text with the hashes renamed.
    fn named(&self, text: &str) -> String {
        let rename = |text: String, (hash, name): &(String, String)| text.replace(hash, name);
        self.hashes.iter().fold(text.to_owned(), rename)
    }

    /// A text with the hashes renamed and the random ends of pod names hidden.
    fn replaced(&self, text: &str) -> String {
        let mut text = self.named(text);
        for prefix in &self.prefixes {
            text = without_suffixes(&text, &self.named(prefix));
        }
        text
    }
}

/// Without fleeting fields, and with conditions in one order.
pub(crate) fn bare(doc: &Doc) -> Doc {
    match doc.kind() {
        Kind::Array(items) => {
            let mut items: Vec<Doc> = items.iter().map(bare).collect();
            if items.iter().all(|item| item.get("type").is_some()) {
                items.sort_by_key(|item| item.str_at("/type").to_owned());
            }
            items.into()
        }
        Kind::Object(object) => {
            let kept = object
                .iter()
                .filter(|(key, _)| !FLEETING.contains(&key.as_str()));
            let kept = kept.map(|(key, value)| (key.clone(), bare(value)));
            Object::new(kept.collect()).into()
        }
        _ => doc.clone(),
    }
}

/// Replaces the five random characters after each occurrence of a prefix.
fn without_suffixes(text: &str, prefix: &str) -> String {
    let is_random = |part: &str| {
        let end = part.get(..5);
        end.is_some_and(|it| {
            it.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        })
    };
    let mut parts = text.split(prefix);
    let mut result = parts.next().unwrap_or("").to_owned();
    for part in parts {
        result.push_str(prefix);
        match is_random(part) {
            true => {
                result.push('*');
                result.push_str(&part[5..]);
            }
            false => result.push_str(part),
        }
    }
    result
}
