//! What the controllers of workloads rely on: specs and statuses that cannot be, and references
//! that cannot be added.

use windlass_contract::objects::{deployment, pod, replica_set, template};
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc, merge_patch};

cases![
    impossible_deployments,
    impossible_replica_sets,
    deployment_may_surge_above_all_and_lose_all,
    impossible_statuses_of_deployments,
    impossible_statuses_of_replica_sets,
    collisions_are_never_uncounted,
    pod_that_somebody_controls_is_not_adopted,
    pod_is_adopted_by_its_uid_alone,
    reference_to_an_owner_without_a_version_is_refused,
    probes_of_every_sort_are_completed,
    volumes_of_every_sort_are_completed,
    token_of_no_account_is_refused,
    image_with_a_digest_is_pulled_once,
    other_containers_are_completed_too,
    pod_level_requests_follow_pod_level_limits,
    deletion_cost_is_a_number,
    deletion_cost_of_a_template_is_a_number,
    mirror_pod_has_a_node,
];

/// Where a wrong value is, the value, and why it is refused: a cause, its field, a part of its text.
type Wrong<'a> = (&'a str, Doc, &'a str, &'a str, &'a str);

const INVALID: &str = "FieldValueInvalid";
const NEGATIVE: &str = "must be greater than or equal to 0";
const SURGE: &str = "spec.strategy.rollingUpdate.maxSurge";
const UNAVAILABLE: &str = "spec.strategy.rollingUpdate.maxUnavailable";
const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%'";

async fn all_refused(t: &Scope, resource: &str, object: &Doc, wrong: &[Wrong<'_>]) {
    for (pointer, value, reason, field, text) in wrong {
        let answer = t
            .create(resource, &object.set(pointer, value.clone()))
            .await;
        answer
            .fails(422, "Invalid")
            .because(reason, field)
            .mentions(text);
    }
}

async fn impossible_deployments(t: &Scope) {
    let surge = "/spec/strategy/rollingUpdate/maxSurge";
    let unavailable = "/spec/strategy/rollingUpdate/maxUnavailable";
    let unequal = doc!({ "matchExpressions": [{ "key": "app", "operator": "In" }] });
    let wrong: [Wrong<'_>; 13] = [
        (
            "/spec/replicas",
            (-1).into(),
            INVALID,
            "spec.replicas",
            NEGATIVE,
        ),
        (
            "/spec/minReadySeconds",
            (-1).into(),
            INVALID,
            "spec.minReadySeconds",
            NEGATIVE,
        ),
        (
            "/spec/revisionHistoryLimit",
            (-1).into(),
            INVALID,
            "spec.revisionHistoryLimit",
            NEGATIVE,
        ),
        (
            "/spec/progressDeadlineSeconds",
            (-1).into(),
            INVALID,
            "spec.progressDeadlineSeconds",
            NEGATIVE,
        ),
        (surge, (-1).into(), INVALID, SURGE, NEGATIVE),
        (surge, "x%".into(), INVALID, SURGE, PERCENT),
        (surge, "1".into(), INVALID, SURGE, PERCENT),
        (unavailable, (-1).into(), INVALID, UNAVAILABLE, NEGATIVE),
        (unavailable, "-1%".into(), INVALID, UNAVAILABLE, PERCENT),
        (
            "/spec/strategy/type",
            "Other".into(),
            "FieldValueNotSupported",
            "spec.strategy",
            "supported values: \"Recreate\", \"RollingUpdate\"",
        ),
        (
            "/spec/selector",
            unequal,
            "FieldValueRequired",
            "spec.selector.matchExpressions[0].values",
            "must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            "/spec/template/spec/restartPolicy",
            "OnFailure".into(),
            "FieldValueNotSupported",
            "spec.template.spec.restartPolicy",
            "supported values: \"Always\"",
        ),
        (
            "/spec/template/spec/activeDeadlineSeconds",
            5.into(),
            "FieldValueForbidden",
            "spec.template.spec.activeDeadlineSeconds",
            "activeDeadlineSeconds in ReplicaSet is not Supported",
        ),
    ];
    all_refused(t, "deployments", &deployment("a"), &wrong).await;
}

async fn impossible_replica_sets(t: &Scope) {
    let wrong: [Wrong<'_>; 4] = [
        (
            "/spec/replicas",
            (-1).into(),
            INVALID,
            "spec.replicas",
            NEGATIVE,
        ),
        (
            "/spec/minReadySeconds",
            (-1).into(),
            INVALID,
            "spec.minReadySeconds",
            NEGATIVE,
        ),
        (
            "/spec/template/spec/restartPolicy",
            "Never".into(),
            "FieldValueNotSupported",
            "spec.template.spec.restartPolicy",
            "supported values: \"Always\"",
        ),
        (
            "/spec/template/spec/activeDeadlineSeconds",
            5.into(),
            "FieldValueForbidden",
            "spec.template.spec.activeDeadlineSeconds",
            "activeDeadlineSeconds in ReplicaSet is not Supported",
        ),
    ];
    all_refused(t, "replicasets", &replica_set("a"), &wrong).await;
    let object = replica_set("a").cut("/spec/selector");
    let answer = t.create("replicasets", &object).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueRequired", "spec.selector");
}

async fn deployment_may_surge_above_all_and_lose_all(t: &Scope) {
    for (name, surge, unavailable) in [("a", "150%", "0%"), ("b", "0%", "100%")] {
        let limits = doc!({ "maxSurge": surge, "maxUnavailable": unavailable });
        let object = deployment(name).set("/spec/strategy/rollingUpdate", limits.clone());
        let made = t.made("deployments", &object).await;
        assert_eq!(made.at("/spec/strategy/rollingUpdate"), &limits);
    }
}

/// A status, the field that cannot be, and why.
type WrongStatus<'a> = (Doc, &'a str, &'a str);

async fn statuses_are_refused(t: &Scope, path: &str, wrong: &[WrongStatus<'_>]) {
    for (status, field, text) in wrong {
        let answer = t.merge(path, &doc!({ "status": (status.clone()) })).await;
        answer
            .fails(422, "Invalid")
            .because(INVALID, field)
            .mentions(text);
    }
}

const ABOVE_ALL: &str = "cannot be greater than status.replicas";
const ABOVE_READY: &str = "cannot be greater than readyReplicas";

async fn impossible_statuses_of_deployments(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let wrong: [WrongStatus<'_>; 9] = [
        (
            doc!({ "replicas": 1, "updatedReplicas": 2 }),
            "status.updatedReplicas",
            ABOVE_ALL,
        ),
        (
            doc!({ "replicas": 1, "readyReplicas": 2 }),
            "status.readyReplicas",
            ABOVE_ALL,
        ),
        (
            doc!({ "replicas": 1, "readyReplicas": 1, "availableReplicas": 2 }),
            "status.availableReplicas",
            ABOVE_ALL,
        ),
        (
            doc!({ "replicas": 2, "readyReplicas": 1, "availableReplicas": 2 }),
            "status.availableReplicas",
            ABOVE_READY,
        ),
        (
            doc!({ "updatedReplicas": (-1) }),
            "status.updatedReplicas",
            NEGATIVE,
        ),
        (
            doc!({ "readyReplicas": (-1) }),
            "status.readyReplicas",
            NEGATIVE,
        ),
        (
            doc!({ "unavailableReplicas": (-1) }),
            "status.unavailableReplicas",
            NEGATIVE,
        ),
        (
            doc!({ "observedGeneration": (-1) }),
            "status.observedGeneration",
            NEGATIVE,
        ),
        (
            doc!({ "terminatingReplicas": (-1) }),
            "status.terminatingReplicas",
            NEGATIVE,
        ),
    ];
    statuses_are_refused(t, "deployments/a/status", &wrong).await;
}

async fn impossible_statuses_of_replica_sets(t: &Scope) {
    t.made("replicasets", &replica_set("a")).await;
    let wrong: [WrongStatus<'_>; 6] = [
        (
            doc!({ "replicas": 1, "fullyLabeledReplicas": 2 }),
            "status.fullyLabeledReplicas",
            ABOVE_ALL,
        ),
        (
            doc!({ "replicas": 1, "readyReplicas": 2 }),
            "status.readyReplicas",
            ABOVE_ALL,
        ),
        (
            doc!({ "replicas": 2, "readyReplicas": 1, "availableReplicas": 2 }),
            "status.availableReplicas",
            ABOVE_READY,
        ),
        (
            doc!({ "fullyLabeledReplicas": (-1) }),
            "status.fullyLabeledReplicas",
            NEGATIVE,
        ),
        (
            doc!({ "availableReplicas": (-1) }),
            "status.availableReplicas",
            NEGATIVE,
        ),
        (
            doc!({ "terminatingReplicas": (-1) }),
            "status.terminatingReplicas",
            NEGATIVE,
        ),
    ];
    statuses_are_refused(t, "replicasets/a/status", &wrong).await;
}

async fn collisions_are_never_uncounted(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let count = |count: Doc| doc!({ "status": { "collisionCount": count } });
    t.merge("deployments/a/status", &count(2.into()))
        .await
        .is(200);
    for lower in [1.into(), Doc::NULL] {
        let answer = t.merge("deployments/a/status", &count(lower)).await;
        answer
            .fails(422, "Invalid")
            .because(INVALID, "status.collisionCount")
            .mentions("cannot be decremented");
    }
    t.merge("deployments/a/status", &count(3.into()))
        .await
        .is(200);
}

/// The patch by which a controller of replica sets adopts a pod.
fn adoption(pod_uid: &str, name: &str, uid: &str) -> Doc {
    doc!({ "metadata": {
        "uid": pod_uid,
        "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": uid,
            "controller": true, "blockOwnerDeletion": true
        }]
    } })
}

async fn pod_that_somebody_controls_is_not_adopted(t: &Scope) {
    let made = t.made("pods", &pod("a")).await;
    let uid = made.str_at("/metadata/uid");
    t.strategic("pods/a", &adoption(uid, "x", "1"))
        .await
        .is(200);
    t.strategic("pods/a", &adoption(uid, "y", "2"))
        .await
        .fails(422, "Invalid")
        .because(INVALID, "metadata.ownerReferences")
        .mentions(
            "Only one reference can have Controller set to true. Found \"true\" in references for",
        );
    let now = t.get("pods/a").await.is(200);
    assert_eq!(now.at("/metadata/ownerReferences").items().len(), 1);
    assert_eq!(now.at("/metadata/ownerReferences/0/name"), "x");
}

async fn pod_is_adopted_by_its_uid_alone(t: &Scope) {
    t.made("pods", &pod("a")).await;
    t.strategic("pods/a", &adoption("former", "x", "1"))
        .await
        .fails(422, "Invalid")
        .because(INVALID, "metadata.uid")
        .mentions("field is immutable");
    let now = t.get("pods/a").await.is(200);
    assert!(now.at("/metadata/ownerReferences").is_null());
}

async fn reference_to_an_owner_without_a_version_is_refused(t: &Scope) {
    let owner = doc!({ "apiVersion": "", "kind": "ReplicaSet", "name": "x", "uid": "1" });
    let object = pod("a").set("/metadata/ownerReferences", vec![owner]);
    let answer = t.create("pods", &object).await;
    answer
        .fails(422, "Invalid")
        .because(INVALID, "metadata.ownerReferences.apiVersion")
        .mentions("version must not be empty");
}

async fn probes_of_every_sort_are_completed(t: &Scope) {
    let common = doc!({
        "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3
    });
    let container = pod("a").at("/spec/containers/0").clone();
    let container = container
        .set("/livenessProbe", doc!({ "exec": { "command": ["true"] } }))
        .set("/readinessProbe", doc!({ "grpc": { "port": 80 } }))
        .set("/startupProbe", doc!({ "tcpSocket": { "port": 80 } }));
    for (resource, object, at) in [
        ("pods", pod("a"), "/spec"),
        ("replicasets", replica_set("a"), "/spec/template/spec"),
    ] {
        let at = format!("{at}/containers/0");
        let made = t.made(resource, &object.set(&at, container.clone())).await;
        let of = |probe: &str| made.at(&format!("{at}/{probe}")).clone();
        let command = doc!({ "command": ["true"] });
        assert_eq!(of("livenessProbe"), common.set("/exec", command));
        let grpc = doc!({ "port": 80, "service": "" });
        assert_eq!(of("readinessProbe"), common.set("/grpc", grpc));
        let socket = doc!({ "port": 80 });
        assert_eq!(of("startupProbe"), common.set("/tcpSocket", socket));
    }
}

async fn volumes_of_every_sort_are_completed(t: &Scope) {
    let name = doc!({ "path": "name", "fieldRef": { "fieldPath": "metadata.name" } });
    let volumes = doc!([
        { "name": "a", "downwardAPI": { "items": [name] } },
        { "name": "b", "projected": { "sources": [
            { "serviceAccountToken": { "path": "token" } }, { "configMap": { "name": "c" } }
        ] } }
    ]);
    let name = doc!({
        "path": "name", "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.name" }
    });
    let expected = doc!([
        { "name": "a", "downwardAPI": { "defaultMode": 420, "items": [name] } },
        { "name": "b", "projected": { "defaultMode": 420, "sources": [
            { "serviceAccountToken": { "path": "token", "expirationSeconds": 3600 } },
            { "configMap": { "name": "c" } }
        ] } }
    ]);
    for (resource, object, at) in [
        (
            "deployments",
            deployment("a"),
            "/spec/template/spec/volumes",
        ),
        (
            "replicasets",
            replica_set("a"),
            "/spec/template/spec/volumes",
        ),
        ("pods", pod("a"), "/spec/volumes"),
    ] {
        let with_tokens = match resource {
            "pods" => volumes.cut("/1/projected/sources/0"),
            _ => volumes.clone(),
        };
        let expected = match resource {
            "pods" => expected.cut("/1/projected/sources/0"),
            _ => expected.clone(),
        };
        let made = t.made(resource, &object.set(at, with_tokens)).await;
        assert_eq!(made.at(at), &expected, "{resource}");
    }
}

async fn token_of_no_account_is_refused(t: &Scope) {
    let volumes = doc!([
        { "name": "a" },
        { "name": "b", "projected": { "sources": [
            { "configMap": { "name": "c" } }, { "serviceAccountToken": { "path": "token" } }
        ] } }
    ]);
    let object = pod("a").set("/spec/volumes", volumes);
    t.create("pods", &object)
        .await
        .fails(422, "Invalid")
        .because(
            "FieldValueForbidden",
            "spec.volumes[1].projected.sources[1].serviceAccountToken",
        )
        .mentions("must not be specified when serviceAccountName is not set");
}

async fn image_with_a_digest_is_pulled_once(t: &Scope) {
    let digest = format!("app@sha256:{}", "0".repeat(64));
    let object = pod("a").set("/spec/containers/0/image", digest);
    let made = t.made("pods", &object).await;
    let policy = made.at("/spec/containers/0/imagePullPolicy");
    assert_eq!(policy, "IfNotPresent");
}

async fn other_containers_are_completed_too(t: &Scope) {
    let first = doc!([{
        "name": "first", "image": "app", "resources": { "limits": { "cpu": "1" } }
    }]);
    let expected = doc!({
        "name": "first", "image": "app", "imagePullPolicy": "Always",
        "resources": { "limits": { "cpu": "1" }, "requests": { "cpu": "1" } },
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"
    });
    let made = t
        .made("pods", &pod("a").set("/spec/initContainers", first.clone()))
        .await;
    assert_eq!(made.at("/spec/initContainers/0"), &expected);
    let template = template().set("/spec/initContainers", first);
    let object = deployment("a").set("/spec/template", template);
    let made = t.made("deployments", &object).await;
    let of_template = expected.cut("/resources/requests");
    let found = made.at("/spec/template/spec/initContainers/0");
    assert_eq!(found, &of_template);
}

async fn pod_level_requests_follow_pod_level_limits(t: &Scope) {
    let resources = doc!({ "limits": { "cpu": "2", "memory": "1Gi" } });
    let object = pod("a").set("/spec/resources", resources.clone());
    let made = t.made("pods", &object).await;
    assert_eq!(
        made.at("/spec/resources/requests"),
        &doc!({ "cpu": "2", "memory": "1Gi" })
    );
    assert_eq!(made.at("/status/qosClass"), "Guaranteed");
    // What the containers want together comes first.
    let wanted = doc!({ "requests": { "cpu": "300m" } });
    let container = pod("b").at("/spec/containers/0").set("/resources", wanted);
    let containers = vec![container.clone(), container.set("/name", "side")];
    let object = pod("b")
        .set("/spec/resources", resources.clone())
        .set("/spec/containers", containers);
    let made = t.made("pods", &object).await;
    assert_eq!(
        made.at("/spec/resources/requests"),
        &doc!({ "cpu": "600m", "memory": "1Gi" })
    );
    assert_eq!(made.at("/status/qosClass"), "Burstable");
    let template = template().set("/spec/resources", resources.clone());
    let object = deployment("a").set("/spec/template", template);
    let made = t.made("deployments", &object).await;
    assert_eq!(made.at("/spec/template/spec/resources"), &resources);
}

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

async fn deletion_cost_is_a_number(t: &Scope) {
    let path = format!("metadata.annotations[{COST}]");
    let with = |cost: &str| doc!({ "metadata": { "annotations": { COST: cost } } });
    t.made("pods", &pod("a")).await;
    for cost in ["+5", "007", "abc", "", "2147483648", "1.5"] {
        let made = t.create("pods", &merge_patch(&pod("b"), &with(cost))).await;
        for answer in [made, t.merge("pods/a", &with(cost)).await] {
            answer
                .fails(422, "Invalid")
                .because(INVALID, &path)
                .mentions("must be a 32bit integer");
        }
    }
    for cost in ["-10", "0", "-0", "2147483647"] {
        t.merge("pods/a", &with(cost)).await.is(200);
    }
}

async fn deletion_cost_of_a_template_is_a_number(t: &Scope) {
    let annotations = doc!({ COST: "007" });
    let at = "/spec/template/metadata/annotations";
    for (resource, object) in [
        ("deployments", deployment("a")),
        ("replicasets", replica_set("a")),
    ] {
        let object = object.set(at, annotations.clone());
        t.create(resource, &object)
            .await
            .fails(422, "Invalid")
            .because(INVALID, &format!("spec.template.annotations[{COST}]"))
            .mentions("must be a 32bit integer");
    }
}

async fn mirror_pod_has_a_node(t: &Scope) {
    const MIRROR: &str = "kubernetes.io/config.mirror";
    let object = pod("a").set("/metadata/annotations", doc!({ MIRROR: "x" }));
    t.create("pods", &object)
        .await
        .fails(422, "Invalid")
        .because(INVALID, &format!("metadata.annotations[{MIRROR}]"))
        .mentions("must set spec.nodeName if mirror pod annotation is set");
}
