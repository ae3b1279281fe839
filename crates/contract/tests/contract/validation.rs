//! What the server refuses to store.

use windlass_contract::objects::{
    deployment, job, lease, pod, pod_spec, replica_set, role, role_binding, service, stateful_set,
};
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    pod_without_containers,
    pod_with_a_bad_container,
    pod_with_duplicate_containers,
    pod_with_a_bad_restart_policy,
    pod_with_a_missing_volume,
    pod_with_a_bad_port,
    pod_with_requests_above_limits,
    pod_with_a_bad_quantity,
    pod_with_a_bad_environment_name,
    several_causes_are_listed_in_order,
    deployment_without_a_selector,
    deployment_with_an_empty_selector,
    deployment_whose_selector_misses_its_template,
    deployment_with_negative_replicas,
    deployment_that_recreates_with_parameters,
    deployment_that_can_never_roll,
    deployment_with_too_much_unavailable,
    deployment_with_a_short_deadline,
    deployment_with_another_restart_policy,
    replica_set_with_an_empty_selector,
    replica_set_whose_selector_misses_its_template,
    stateful_set_update_of_a_fixed_field,
    job_that_restarts_always,
    job_completions_are_immutable,
    cron_job_with_a_bad_schedule,
    service_without_ports,
    service_with_unnamed_ports,
    service_with_a_bad_port,
    lease_without_a_duration,
    role_without_groups,
    role_binding_to_another_role,
    event_elsewhere,
    ingress_without_a_path_type,
    endpoint_slice_with_a_bad_address_type,
    budget_with_both_limits,
    priority_class_value_is_immutable,
    network_policy_with_a_bad_type,
    resource_claim_spec_is_immutable,
    pod_with_an_unknown_priority_class,
];

async fn refused(t: &Scope, resource: &str, object: &Doc) -> windlass_contract::Refusal {
    t.create(resource, object).await.fails(422, "Invalid")
}

async fn pod_without_containers(t: &Scope) {
    refused(t, "pods", &doc!({ "metadata": { "name": "a" } }))
        .await
        .says("Pod \"a\" is invalid: spec.containers: Required value")
        .is_about("", "Pod", "a")
        .because("FieldValueRequired", "spec.containers");
}

async fn pod_with_a_bad_container(t: &Scope) {
    let object = pod("a").set("/spec/containers", doc!([{ "name": "A" }]));
    let refusal = refused(t, "pods", &object).await;
    refusal
        .because("FieldValueInvalid", "spec.containers[0].name")
        .because("FieldValueRequired", "spec.containers[0].image");
}

async fn pod_with_duplicate_containers(t: &Scope) {
    let container = pod_spec().at("/containers/0").clone();
    let object = pod("a").set("/spec/containers", vec![container.clone(), container]);
    refused(t, "pods", &object)
        .await
        .says("Pod \"a\" is invalid: spec.containers[1].name: Duplicate value: \"main\"")
        .because("FieldValueDuplicate", "spec.containers[1].name");
}

async fn pod_with_a_bad_restart_policy(t: &Scope) {
    let object = pod("a").set("/spec/restartPolicy", "Sometimes");
    refused(t, "pods", &object)
        .await
        .says(
            "Pod \"a\" is invalid: spec.restartPolicy: Unsupported value: \"Sometimes\": \
             supported values: \"Always\", \"OnFailure\", \"Never\"",
        )
        .because("FieldValueNotSupported", "spec.restartPolicy");
}

async fn pod_with_a_missing_volume(t: &Scope) {
    let mounts = doc!([{ "name": "none", "mountPath": "/data" }]);
    let object = pod("a").set("/spec/containers/0/volumeMounts", mounts);
    refused(t, "pods", &object)
        .await
        .says("Pod \"a\" is invalid: spec.containers[0].volumeMounts[0].name: Not found: \"none\"")
        .because(
            "FieldValueNotFound",
            "spec.containers[0].volumeMounts[0].name",
        );
}

async fn pod_with_a_bad_port(t: &Scope) {
    let ports = doc!([{ "containerPort": 70000 }]);
    let object = pod("a").set("/spec/containers/0/ports", ports);
    let refusal = refused(t, "pods", &object).await;
    refusal
        .because(
            "FieldValueInvalid",
            "spec.containers[0].ports[0].containerPort",
        )
        .mentions("must be between 1 and 65535, inclusive");
}

async fn pod_with_requests_above_limits(t: &Scope) {
    let resources = doc!({ "limits": { "cpu": "1" }, "requests": { "cpu": "2" } });
    let object = pod("a").set("/spec/containers/0/resources", resources);
    refused(t, "pods", &object)
        .await
        .says(
            "Pod \"a\" is invalid: spec.containers[0].resources.requests: Invalid value: \"2\": \
             must be less than or equal to cpu limit of 1",
        )
        .because("FieldValueInvalid", "spec.containers[0].resources.requests");
}

async fn pod_with_a_bad_quantity(t: &Scope) {
    let resources = doc!({ "requests": { "cpu": "much" } });
    let object = pod("a").set("/spec/containers/0/resources", resources);
    let answer = t.create("pods", &object).await;
    answer
        .fails(400, "BadRequest")
        .mentions("quantities must match the regular expression");
}

async fn pod_with_a_bad_environment_name(t: &Scope) {
    let object = pod("a").set("/spec/containers/0/env", doc!([{ "name": "A=B" }]));
    refused(t, "pods", &object)
        .await
        .because("FieldValueInvalid", "spec.containers[0].env[0].name");
}

async fn several_causes_are_listed_in_order(t: &Scope) {
    let object = service("a").set("/spec/ports", doc!([{ "port": 80 }, { "port": 81 }]));
    let refusal = refused(t, "services", &object).await;
    let refusal = refusal.says(
        "Service \"a\" is invalid: [spec.ports[0].name: Required value, spec.ports[1].name: \
         Required value]",
    );
    let fields: Vec<_> = refusal
        .causes()
        .iter()
        .map(|cause| cause.str_at("/field"))
        .collect();
    assert_eq!(fields, ["spec.ports[0].name", "spec.ports[1].name"]);
}

async fn deployment_without_a_selector(t: &Scope) {
    let object = deployment("a").cut("/spec/selector");
    refused(t, "deployments", &object)
        .await
        .is_about("apps", "Deployment", "a")
        .because("FieldValueRequired", "spec.selector");
}

async fn deployment_with_an_empty_selector(t: &Scope) {
    let object = deployment("a").set("/spec/selector", doc!({}));
    refused(t, "deployments", &object)
        .await
        .says(
            "Deployment.apps \"a\" is invalid: spec.selector: Invalid value: {}: empty selector \
             is invalid for deployment",
        )
        .because("FieldValueInvalid", "spec.selector");
}

async fn deployment_whose_selector_misses_its_template(t: &Scope) {
    let object = deployment("a").set("/spec/selector/matchLabels/app", "other");
    refused(t, "deployments", &object)
        .await
        .says(
            "Deployment.apps \"a\" is invalid: spec.template.metadata.labels: Invalid value: \
             {\"app\":\"web\"}: `selector` does not match template `labels`",
        )
        .because("FieldValueInvalid", "spec.template.metadata.labels");
}

async fn deployment_with_negative_replicas(t: &Scope) {
    let object = deployment("a").set("/spec/replicas", -1);
    refused(t, "deployments", &object)
        .await
        .says(
            "Deployment.apps \"a\" is invalid: spec.replicas: Invalid value: -1: must be greater \
             than or equal to 0",
        )
        .because("FieldValueInvalid", "spec.replicas");
}

async fn deployment_that_recreates_with_parameters(t: &Scope) {
    let strategy = doc!({ "type": "Recreate", "rollingUpdate": { "maxSurge": 1 } });
    let object = deployment("a").set("/spec/strategy", strategy);
    refused(t, "deployments", &object)
        .await
        .says(
            "Deployment.apps \"a\" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be \
             specified when strategy `type` is 'Recreate'",
        )
        .because("FieldValueForbidden", "spec.strategy.rollingUpdate");
}

async fn deployment_that_can_never_roll(t: &Scope) {
    let strategy = doc!({ "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 0 } });
    let object = deployment("a").set("/spec/strategy", strategy);
    refused(t, "deployments", &object)
        .await
        .says(
            "Deployment.apps \"a\" is invalid: spec.strategy.rollingUpdate.maxUnavailable: \
             Invalid value: 0: may not be 0 when `maxSurge` is 0",
        )
        .because(
            "FieldValueInvalid",
            "spec.strategy.rollingUpdate.maxUnavailable",
        );
}

async fn deployment_with_too_much_unavailable(t: &Scope) {
    let strategy = doc!({ "rollingUpdate": { "maxUnavailable": "101%" } });
    let object = deployment("a").set("/spec/strategy", strategy);
    let refusal = refused(t, "deployments", &object).await;
    refusal
        .because(
            "FieldValueInvalid",
            "spec.strategy.rollingUpdate.maxUnavailable",
        )
        .mentions("must not be greater than 100%");
}

async fn deployment_with_a_short_deadline(t: &Scope) {
    let object = deployment("a")
        .set("/spec/progressDeadlineSeconds", 5)
        .set("/spec/minReadySeconds", 5);
    refused(t, "deployments", &object)
        .await
        .says(
            "Deployment.apps \"a\" is invalid: spec.progressDeadlineSeconds: Invalid value: 5: \
             must be greater than minReadySeconds",
        )
        .because("FieldValueInvalid", "spec.progressDeadlineSeconds");
}

async fn deployment_with_another_restart_policy(t: &Scope) {
    let object = deployment("a").set("/spec/template/spec/restartPolicy", "Never");
    refused(t, "deployments", &object)
        .await
        .says(
            "Deployment.apps \"a\" is invalid: spec.template.spec.restartPolicy: Unsupported \
             value: \"Never\": supported values: \"Always\"",
        )
        .because("FieldValueNotSupported", "spec.template.spec.restartPolicy");
}

async fn replica_set_with_an_empty_selector(t: &Scope) {
    let object = replica_set("a").set("/spec/selector", doc!({}));
    let refusal = refused(t, "replicasets", &object).await;
    refusal
        .because("FieldValueInvalid", "spec.selector")
        .mentions("empty selector is invalid for deployment");
}

async fn replica_set_whose_selector_misses_its_template(t: &Scope) {
    let object = replica_set("a").set("/spec/selector/matchLabels/app", "other");
    let refusal = refused(t, "replicasets", &object).await;
    refusal.because("FieldValueInvalid", "spec.template.metadata.labels");
}

async fn stateful_set_update_of_a_fixed_field(t: &Scope) {
    t.made("statefulsets", &stateful_set("a")).await;
    let answer = t
        .merge(
            "statefulsets/a",
            &doc!({ "spec": { "serviceName": "other" } }),
        )
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueForbidden", "spec")
        .mentions("updates to statefulset spec for fields other than 'replicas'");
    t.merge("statefulsets/a", &doc!({ "spec": { "replicas": 2 } }))
        .await
        .is(200);
}

async fn job_that_restarts_always(t: &Scope) {
    let object = job("a").set("/spec/template/spec/restartPolicy", "Always");
    refused(t, "jobs", &object)
        .await
        .is_about("batch", "Job", "a")
        .mentions("spec.template.spec.restartPolicy");
}

async fn job_completions_are_immutable(t: &Scope) {
    t.made("jobs", &job("a")).await;
    let patch = doc!({ "spec": { "completions": 5 } });
    let refusal = t.merge("jobs/a", &patch).await.fails(422, "Invalid");
    refusal
        .because("FieldValueInvalid", "spec.completions")
        .mentions("field is immutable");
}

async fn cron_job_with_a_bad_schedule(t: &Scope) {
    let spec = pod_spec().set("/restartPolicy", "Never");
    let object = doc!({
        "metadata": { "name": "a" },
        "spec": {
            "schedule": "* * *", "jobTemplate": { "spec": { "template": { "spec": spec } } }
        }
    });
    refused(t, "cronjobs", &object)
        .await
        .because("FieldValueInvalid", "spec.schedule");
}

async fn service_without_ports(t: &Scope) {
    refused(
        t,
        "services",
        &doc!({ "metadata": { "name": "a" }, "spec": {} }),
    )
    .await
    .says("Service \"a\" is invalid: spec.ports: Required value")
    .because("FieldValueRequired", "spec.ports");
}

async fn service_with_unnamed_ports(t: &Scope) {
    let ports = doc!([{ "name": "x", "port": 80 }, { "name": "x", "port": 81 }]);
    let object = service("a").set("/spec/ports", ports);
    refused(t, "services", &object)
        .await
        .because("FieldValueDuplicate", "spec.ports[1].name");
}

async fn service_with_a_bad_port(t: &Scope) {
    let object = service("a").set("/spec/ports", doc!([{ "port": 70000 }]));
    let refusal = refused(t, "services", &object).await;
    refusal
        .because("FieldValueInvalid", "spec.ports[0].port")
        .mentions("must be between 1 and 65535, inclusive");
}

async fn lease_without_a_duration(t: &Scope) {
    let object = lease("a").set("/spec/leaseDurationSeconds", 0);
    refused(t, "leases", &object)
        .await
        .says(
            "Lease.coordination.k8s.io \"a\" is invalid: spec.leaseDurationSeconds: Invalid \
             value: 0: must be greater than 0",
        )
        .is_about("coordination.k8s.io", "Lease", "a");
}

async fn role_without_groups(t: &Scope) {
    let object = role("a", &["get"], &["pods"]).cut("/rules/0/apiGroups");
    refused(t, "roles", &object)
        .await
        .says(
            "Role.rbac.authorization.k8s.io \"a\" is invalid: rules[0].apiGroups: Required value: \
             resource rules must supply at least one api group",
        )
        .because("FieldValueRequired", "rules[0].apiGroups");
    let object = role("a", &[], &["pods"]);
    refused(t, "roles", &object)
        .await
        .because("FieldValueRequired", "rules[0].verbs");
}

async fn role_binding_to_another_role(t: &Scope) {
    t.made("roles", &role("r", &["get"], &["pods"])).await;
    t.made("rolebindings", &role_binding("a", "r", "ann")).await;
    let refusal = t
        .merge("rolebindings/a", &doc!({ "roleRef": { "name": "q" } }))
        .await;
    refusal
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "roleRef")
        .mentions("cannot change roleRef");
}

async fn event_elsewhere(t: &Scope) {
    let object = doc!({
        "metadata": { "name": "a" }, "reason": "R", "type": "Normal",
        "involvedObject": { "kind": "Pod", "name": "p", "namespace": "elsewhere" }
    });
    refused(t, "events", &object)
        .await
        .says(
            "Event \"a\" is invalid: involvedObject.namespace: Invalid value: \"elsewhere\": does \
             not match event.namespace",
        )
        .because("FieldValueInvalid", "involvedObject.namespace");
}

async fn ingress_without_a_path_type(t: &Scope) {
    let backend = doc!({ "service": { "name": "s", "port": { "number": 80 } } });
    let object = doc!({
        "metadata": { "name": "a" },
        "spec": { "rules": [{ "http": { "paths": [{ "path": "/", "backend": backend }] } }] }
    });
    let refusal = refused(t, "ingresses", &object).await;
    refusal.because("FieldValueRequired", "spec.rules[0].http.paths[0].pathType");
}

async fn endpoint_slice_with_a_bad_address_type(t: &Scope) {
    let object = doc!({
        "metadata": { "name": "a" }, "addressType": "Pigeon", "endpoints": [], "ports": []
    });
    refused(t, "endpointslices", &object)
        .await
        .because("FieldValueNotSupported", "addressType");
}

async fn budget_with_both_limits(t: &Scope) {
    let object = doc!({
        "metadata": { "name": "a" },
        "spec": {
            "minAvailable": 1, "maxUnavailable": 1,
            "selector": { "matchLabels": { "app": "web" } }
        }
    });
    refused(t, "poddisruptionbudgets", &object)
        .await
        .because("FieldValueInvalid", "spec");
}

async fn priority_class_value_is_immutable(t: &Scope) {
    let name = t.unique("p");
    let object = doc!({ "metadata": { "name": (&name) }, "value": 5 });
    t.made("priorityclasses", &object).await;
    let answer = t
        .merge(&format!("priorityclasses/{name}"), &doc!({ "value": 6 }))
        .await;
    answer.fails(422, "Invalid").mentions("value");
}

async fn network_policy_with_a_bad_type(t: &Scope) {
    let object = doc!({
        "metadata": { "name": "a" }, "spec": { "podSelector": {}, "policyTypes": ["Sideways"] }
    });
    let refusal = refused(t, "networkpolicies", &object).await;
    refusal.because("FieldValueNotSupported", "spec.policyTypes[0]");
}

async fn resource_claim_spec_is_immutable(t: &Scope) {
    let object = doc!({
        "metadata": { "name": "a" },
        "spec": { "devices": { "requests": [
            { "name": "gpu", "exactly": { "deviceClassName": "gpu.example.com" } }
        ] } }
    });
    t.made("resourceclaims", &object).await;
    let patch = doc!({ "spec": { "devices": { "requests": [
        { "name": "gpu", "exactly": { "deviceClassName": "other.example.com" } }
    ] } } });
    let refusal = t
        .merge("resourceclaims/a", &patch)
        .await
        .fails(422, "Invalid");
    refusal
        .because("FieldValueInvalid", "spec")
        .mentions("field is immutable");
}

async fn pod_with_an_unknown_priority_class(t: &Scope) {
    let object = pod("a").set("/spec/priorityClassName", "no-such-class");
    let answer = t.create("pods", &object).await;
    answer
        .fails(403, "Forbidden")
        .says("pods \"a\" is forbidden: no PriorityClass with name no-such-class was found");
}
