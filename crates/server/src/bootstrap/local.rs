//! API services of what is served here: one for each group version.

use std::collections::BTreeSet;

use windlass_core::{Doc, doc};

use super::First;
use crate::registry::Table;
use crate::rest;
use crate::server::Server;
use windlass_rules::status::Status;

pub(super) const GROUP: &str = "apiregistration.k8s.io";
const PLURAL: &str = "apiservices";
/// Who looks after an API service, and since when.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
/// The priorities of groups and versions that come with definitions.
const CUSTOM_PRIORITY: (i64, i64) = (1000, 100);

/// The priorities of the built-in group versions.
const PRIORITIES: &[(&str, &str, i64, i64)] = &[
    ("", "v1", 18_000, 1),
    ("apps", "v1", 17_800, 15),
    ("events.k8s.io", "v1", 17_750, 15),
    ("authentication.k8s.io", "v1", 17_700, 15),
    ("authorization.k8s.io", "v1", 17_600, 15),
    ("autoscaling", "v2", 17_500, 30),
    ("autoscaling", "v1", 17_500, 15),
    ("batch", "v1", 17_400, 15),
    ("certificates.k8s.io", "v1", 17_300, 15),
    ("networking.k8s.io", "v1", 17_200, 15),
    ("policy", "v1", 17_100, 15),
    ("rbac.authorization.k8s.io", "v1", 17_000, 15),
    ("storage.k8s.io", "v1", 16_800, 15),
    ("admissionregistration.k8s.io", "v1", 16_700, 15),
    ("apiextensions.k8s.io", "v1", 16_700, 15),
    ("scheduling.k8s.io", "v1", 16_600, 15),
    ("coordination.k8s.io", "v1", 16_500, 15),
    ("node.k8s.io", "v1", 16_300, 15),
    ("discovery.k8s.io", "v1", 16_200, 15),
    ("resource.k8s.io", "v1", 16_200, 21),
    ("flowcontrol.apiserver.k8s.io", "v1", 16_100, 21),
    ("metrics.k8s.io", "v1beta1", 100, 100),
];

/// Those of the built-in group versions.
pub(super) fn objects(table: &Table) -> Vec<First> {
    let served = PRIORITIES.iter().filter(|(group, version, ..)| {
        // A group without its kinds is a group that is not there.
        table.version(group, version).is_some()
    });
    let object = |(group, version, group_priority, priority): &(&str, &str, i64, i64)| {
        let object = service(group, version, (*group_priority, *priority), "onstart");
        (GROUP, "v1", PLURAL, object)
    };
    served.map(object).collect()
}

fn service(group: &str, version: &str, (least, priority): (i64, i64), since: &str) -> Doc {
    doc!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": { "name": (name(group, version)), "labels": { MANAGED: since } },
        "spec": {
            "group": group, "version": version, "groupPriorityMinimum": least,
            "versionPriority": priority
        }
    })
}

fn name(group: &str, version: &str) -> String {
    format!("{version}.{group}")
}

/// Makes the API services of group versions that definitions brought, and removes those of group
/// versions that went with theirs.
pub(crate) async fn register(server: &Server) -> Result<(), Status> {
    let table = server.inner().registry.table();
    let mut wanted = BTreeSet::new();
    for group in table.groups().iter().filter(|group| group.is_custom()) {
        for version in &group.versions {
            wanted.insert(name(&group.name, &version.name));
            let known = name(&group.name, &version.name);
            if server
                .inner()
                .storage
                .find(GROUP, PLURAL, "", &known)
                .is_none()
            {
                let object = service(&group.name, &version.name, CUSTOM_PRIORITY, "true");
                rest::create_at_start(server, GROUP, "v1", PLURAL, object).await?;
            }
        }
    }
    let Some(row) = table.find(GROUP, "v1", PLURAL) else {
        return Ok(());
    };
    let snapshot = server.inner().storage.snapshot_of(GROUP, PLURAL);
    for entry in snapshot.iter() {
        let meta = entry.doc().meta();
        let labels = entry.doc().at("/metadata/labels");
        let is_ours = labels.get(MANAGED).is_some_and(|since| *since == "true");
        if is_ours && !wanted.contains(meta.name()) {
            rest::delete_for_server(server, row, entry).await?;
        }
    }
    Ok(())
}
