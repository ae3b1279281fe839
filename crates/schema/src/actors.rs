//! The actor of each built-in kind: the part of the cluster that makes its objects have an effect.
//!
//! An object whose kind has no actor is stored and changes nothing. Whoever creates one is warned,
//! because a test that only sees the object would pass for the wrong reason.

use std::collections::BTreeSet;

use windlass_core::Doc;

use crate::needs::Actor;

use Actor::{Clients, Controller, Nothing, Server, Where};

const CONVERSION: Actor = Nothing("conversion webhooks are not called yet");
const AGGREGATION: Actor = Nothing("requests are not passed on to other API servers yet");
const AGGREGATED_ROLES: Actor = Controller("clusterrole-aggregation-controller");
const BINDER: Actor = Controller("persistentvolume-binder-controller");

/// Group, resource and actor of every built-in kind that is stored.
const ACTORS: &[(&str, &str, Actor)] = &[
    ("", "configmaps", Clients),
    ("", "endpoints", Clients),
    ("", "events", Clients),
    ("", "limitranges", Server),
    ("", "namespaces", Controller("namespace-controller")),
    ("", "nodes", Clients),
    ("", "persistentvolumeclaims", BINDER),
    ("", "persistentvolumes", BINDER),
    ("", "pods", Controller("scheduler")),
    ("", "podtemplates", Clients),
    (
        "",
        "replicationcontrollers",
        Controller("replicationcontroller-controller"),
    ),
    ("", "resourcequotas", Controller("resourcequota-controller")),
    ("", "secrets", Clients),
    ("", "serviceaccounts", Server),
    ("", "services", Controller("endpointslice-controller")),
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicies",
        Server,
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings",
        Server,
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        Server,
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
        Server,
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
        Server,
    ),
    (
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        Server,
    ),
    (
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        Where("/spec/conversion/webhook", &CONVERSION),
    ),
    (
        "apiregistration.k8s.io",
        "apiservices",
        Where("/spec/service", &AGGREGATION),
    ),
    ("apps", "controllerrevisions", Clients),
    ("apps", "daemonsets", Controller("daemonset-controller")),
    ("apps", "deployments", Controller("deployment-controller")),
    ("apps", "replicasets", Controller("replicaset-controller")),
    ("apps", "statefulsets", Controller("statefulset-controller")),
    (
        "autoscaling",
        "horizontalpodautoscalers",
        Controller("horizontal-pod-autoscaler-controller"),
    ),
    ("batch", "cronjobs", Controller("cronjob-controller")),
    ("batch", "jobs", Controller("job-controller")),
    (
        "certificates.k8s.io",
        "certificatesigningrequests",
        Controller("certificatesigningrequest-signing-controller"),
    ),
    ("coordination.k8s.io", "leases", Clients),
    ("discovery.k8s.io", "endpointslices", Clients),
    ("events.k8s.io", "events", Clients),
    ("flowcontrol.apiserver.k8s.io", "flowschemas", Server),
    (
        "flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations",
        Server,
    ),
    ("networking.k8s.io", "ingressclasses", Clients),
    ("networking.k8s.io", "ingresses", Clients),
    ("networking.k8s.io", "ipaddresses", Server),
    ("networking.k8s.io", "networkpolicies", Clients),
    ("networking.k8s.io", "servicecidrs", Server),
    ("node.k8s.io", "runtimeclasses", Server),
    (
        "policy",
        "poddisruptionbudgets",
        Controller("disruption-controller"),
    ),
    ("rbac.authorization.k8s.io", "clusterrolebindings", Server),
    (
        "rbac.authorization.k8s.io",
        "clusterroles",
        Where("/aggregationRule", &AGGREGATED_ROLES),
    ),
    ("rbac.authorization.k8s.io", "rolebindings", Server),
    ("rbac.authorization.k8s.io", "roles", Server),
    ("resource.k8s.io", "deviceclasses", Clients),
    (
        "resource.k8s.io",
        "resourceclaims",
        Controller("resourceclaim-controller"),
    ),
    (
        "resource.k8s.io",
        "resourceclaimtemplates",
        Controller("resourceclaim-controller"),
    ),
    ("resource.k8s.io", "resourceslices", Clients),
    ("scheduling.k8s.io", "priorityclasses", Server),
    ("storage.k8s.io", "csidrivers", Clients),
    ("storage.k8s.io", "csinodes", Clients),
    ("storage.k8s.io", "csistoragecapacities", Clients),
    ("storage.k8s.io", "storageclasses", Clients),
    ("storage.k8s.io", "volumeattachments", Clients),
    ("storage.k8s.io", "volumeattributesclasses", Clients),
];

/// The actor of a built-in kind; `None` for custom ones and for those that are not stored.
pub(crate) fn actor(group: &str, plural: &str) -> Option<Actor> {
    let is_meant = |row: &&(&str, &str, Actor)| (row.0, row.1) == (group, plural);
    let row = ACTORS.iter().find(is_meant)?;
    Some(row.2)
}

/// The controllers that run beside a server, if that is known.
#[derive(Clone, Debug, Default)]
pub struct RunningControllers(Option<BTreeSet<&'static str>>);

impl RunningControllers {
    /// All that run, by their names.
    pub fn of(names: impl IntoIterator<Item = &'static str>) -> Self {
        Self(Some(names.into_iter().collect()))
    }

    /// Returns true if a controller is known to run.
    #[must_use]
    pub fn runs(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|known| known.contains(name))
    }

    /// The warning for the author of a new object on which nothing acts.
    #[must_use]
    pub fn warning(&self, actor: Actor, object: &Doc) -> Option<String> {
        let why = self.missing(actor, object)?;
        let (kind, name) = (object.str_at("/kind"), object.meta().name());
        Some(format!(
            "{kind} {name:?} is stored and has no effect: {why}"
        ))
    }

    fn missing(&self, actor: Actor, object: &Doc) -> Option<String> {
        match actor {
            Server | Clients => None,
            Nothing(effect) => Some(effect.to_owned()),
            Controller(name) => {
                let is_missing = self.0.as_ref().is_some_and(|known| !known.contains(name));
                is_missing.then(|| format!("{name} does not run in this cluster"))
            }
            Where(pointer, actor) => match object.at(pointer).is_null() {
                true => None,
                false => self.missing(*actor, object),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;
    use crate::built_in;
    use crate::resource::{Resource, Verb};

    /// Nothing that is accepted is ignored in silence.
    #[test]
    fn every_stored_kind_has_an_actor_or_a_warning() {
        let rows = built_in::all();
        let is_stored = |row: &&Resource| row.verbs.contains(&Verb::Update);
        let mut named = 0;
        for row in rows.iter().filter(is_stored) {
            assert!(row.needs.actor.is_some(), "{}", row.group_resource());
            named += 1;
        }
        // Rows of several versions share an entry.
        assert!(named >= ACTORS.len());
        for (group, plural, _) in ACTORS {
            let is_meant = |row: &&Resource| row.gvk.group() == *group && row.plural == *plural;
            assert!(rows.iter().any(|row| is_meant(&row)), "{plural}.{group}");
        }
    }

    fn warning(controllers: &RunningControllers, plural: &str, object: &Doc) -> Option<String> {
        let rows = built_in::all();
        let row = rows.iter().find(|row| row.plural == plural);
        controllers.warning(row.expect("a built-in kind").needs.actor?, object)
    }

    #[test]
    fn objects_without_an_effect_are_warned_of() {
        let alone = RunningControllers::default();
        let object = |kind: &str| doc!({ "kind": kind, "metadata": { "name": "a" } });
        let elsewhere = doc!({
            "kind": "APIService", "metadata": { "name": "a" }, "spec": { "service": { "name": "s" } }
        });
        assert_eq!(
            warning(&alone, "apiservices", &elsewhere).as_deref(),
            Some(
                "APIService \"a\" is stored and has no effect: requests are not passed on to other \
                 API servers yet"
            )
        );
        assert_eq!(warning(&alone, "configmaps", &object("ConfigMap")), None);
        assert_eq!(
            warning(&alone, "statefulsets", &object("StatefulSet")),
            None,
            "not known"
        );

        let some = RunningControllers::of(["deployment-controller"]);
        assert_eq!(warning(&some, "deployments", &object("Deployment")), None);
        assert_eq!(
            warning(&some, "statefulsets", &object("StatefulSet")).as_deref(),
            Some(
                "StatefulSet \"a\" is stored and has no effect: statefulset-controller does not \
                 run in this cluster"
            )
        );
    }

    #[test]
    fn parts_of_objects_without_an_effect_are_warned_of() {
        let alone = RunningControllers::default();
        let plain =
            doc!({ "metadata": { "name": "a" }, "spec": { "conversion": { "strategy": "None" } } });
        assert_eq!(warning(&alone, "customresourcedefinitions", &plain), None);
        let webhook =
            doc!({ "metadata": { "name": "a" }, "spec": { "conversion": { "webhook": {} } } });
        assert!(warning(&alone, "customresourcedefinitions", &webhook).is_some());
        assert!(warning(&alone, "clusterroles", &doc!({ "aggregationRule": {} })).is_none());
        let some = RunningControllers::of(["deployment-controller"]);
        assert!(warning(&some, "clusterroles", &doc!({ "aggregationRule": {} })).is_some());
    }
}
