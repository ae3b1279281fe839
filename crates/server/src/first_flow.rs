//! The priority levels and flow schemas that exist from the first start, upstream's. `first_flow.txt` says
//! them in one line each.

use std::sync::LazyLock;

use windlass_core::{Doc, Object, doc};

/// An object, with where it is stored: group, version and plural.
pub(crate) type First = (&'static str, &'static str, &'static str, Doc);

const TEXT: &str = include_str!("first_flow.txt");
const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const API_VERSION: &str = "flowcontrol.apiserver.k8s.io/v1";

/// All of them, with where they are stored.
pub(crate) fn objects() -> Vec<First> {
    /// Read once: tests open many servers in one process.
    static OBJECTS: LazyLock<Vec<First>> = LazyLock::new(|| read(TEXT));
    OBJECTS.clone()
}

/// Flow schemas and priority levels, without where they are stored.
pub(crate) fn flow_objects() -> (Vec<Doc>, Vec<Doc>) {
    let (schemas, levels): (Vec<First>, Vec<First>) = objects()
        .into_iter()
        .partition(|(_, _, plural, _)| *plural == "flowschemas");
    let docs = |all: Vec<First>| all.into_iter().map(|(_, _, _, doc)| doc).collect();
    (docs(schemas), docs(levels))
}

/// A flow schema whose rules follow.
struct Schema<'a> {
    /// Its name, precedence, level, method and subjects.
    words: [&'a str; 5],
    resources: Vec<Doc>,
    paths: Vec<Doc>,
}

fn read(text: &str) -> Vec<First> {
    let mut objects = Vec::new();
    let mut schemas: Vec<Schema<'_>> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), schemas.last_mut()) {
            (["level", name, shares, lendable, queues @ ..], _) => {
                let level = level(name, shares, lendable, queues);
                objects.push((GROUP, "v1", "prioritylevelconfigurations", level));
            }
            (["schema", name, precedence, level, method, subjects], _) => schemas.push(Schema {
                words: [name, precedence, level, method, subjects],
                resources: Vec::new(),
                paths: Vec::new(),
            }),
            ([verbs, paths], Some(schema)) => schema
                .paths
                .push(doc!({ "verbs": (list(verbs)), "nonResourceURLs": (list(paths)) })),
            ([verbs, groups, resources, rest @ ..], Some(schema)) => {
                let rule = resource_rule(verbs, groups, resources, !rest.is_empty());
                schema.resources.push(rule);
            }
            _ => {}
        }
    }
    let schemas = schemas.iter().map(schema_object);
    objects.extend(schemas.map(|schema| (GROUP, "v1", "flowschemas", schema)));
    objects
}

/// Words between commas; a hyphen is the empty one.
fn list(words: &str) -> Doc {
    let word = |word: &str| Doc::from(if word == "-" { "" } else { word });
    words.split(',').map(word).collect::<Vec<Doc>>().into()
}

fn number(word: &str) -> i64 {
    word.parse().unwrap_or_default()
}

fn metadata(name: &str) -> Doc {
    doc!({ "name": name, "annotations": { "apf.kubernetes.io/autoupdate-spec": "true" } })
}

fn level(name: &str, shares: &str, lendable: &str, queues: &[&str]) -> Doc {
    let response = match queues {
        [queues, hand, length] => doc!({
            "type": "Queue",
            "queuing": {
                "queues": (number(queues)), "handSize": (number(hand)),
                "queueLengthLimit": (number(length))
            }
        }),
        _ => doc!({ "type": "Reject" }),
    };
    let spec = match shares {
        "exempt" => doc!({
            "type": "Exempt", "exempt": { "nominalConcurrencyShares": 0, "lendablePercent": 0 }
        }),
        shares => doc!({
            "type": "Limited",
            "limited": {
                "nominalConcurrencyShares": (number(shares)),
                "lendablePercent": (number(lendable)), "limitResponse": response
            }
        }),
    };
    doc!({
        "apiVersion": API_VERSION, "kind": "PriorityLevelConfiguration",
        "metadata": (metadata(name)), "spec": spec
    })
}

fn resource_rule(verbs: &str, groups: &str, resources: &str, is_cluster: bool) -> Doc {
    let rule = doc!({
        "verbs": (list(verbs)), "apiGroups": (list(groups)), "resources": (list(resources)),
        "namespaces": ["*"]
    });
    match rule.as_object() {
        Some(rule) if is_cluster => rule.with("clusterScope", true.into()).into(),
        _ => rule,
    }
}

fn schema_object(schema: &Schema<'_>) -> Doc {
    let [name, precedence, level, method, subjects] = schema.words;
    let subjects: Vec<Doc> = subjects.split(',').filter_map(subject).collect();
    let mut rules = Object::empty().with("subjects", subjects.into());
    for (key, found) in [
        ("resourceRules", &schema.resources),
        ("nonResourceRules", &schema.paths),
    ] {
        if !found.is_empty() {
            rules = rules.with(key, found.clone().into());
        }
    }
    let mut spec = Object::empty()
        .with("matchingPrecedence", number(precedence).into())
        .with("priorityLevelConfiguration", doc!({ "name": level }))
        .with("rules", doc!([rules]));
    if method != "-" {
        spec = spec.with("distinguisherMethod", doc!({ "type": method }));
    }
    doc!({
        "apiVersion": API_VERSION, "kind": "FlowSchema", "metadata": (metadata(name)), "spec": spec
    })
}

fn subject(text: &str) -> Option<Doc> {
    let (kind, name) = text.split_once('=')?;
    Some(match kind {
        "user" => doc!({ "kind": "User", "user": { "name": name } }),
        "group" => doc!({ "kind": "Group", "group": { "name": name } }),
        _ => {
            let (namespace, name) = name.split_once('/')?;
            let account = doc!({ "namespace": namespace, "name": name });
            doc!({ "kind": "ServiceAccount", "serviceAccount": account })
        }
    })
}
