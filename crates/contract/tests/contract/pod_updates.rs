//! What may change in a pod, and in the workloads that make pods.

use windlass_contract::objects::{deployment, job, pod, stateful_set};
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    toleration_may_be_added,
    toleration_may_not_be_removed,
    deadline_may_be_set_and_shortened,
    deadline_may_not_be_extended,
    container_may_not_be_added,
    scheduling_gate_may_be_removed,
    scheduling_gate_may_not_be_added,
    gated_pod_may_become_choosier_about_labels,
    gated_pod_may_become_choosier_by_affinity,
    gated_pod_may_not_ask_for_company,
    pod_without_gates_may_not_become_choosier,
    quality_of_service_may_not_change,
    labels_may_change_without_a_generation,
    template_with_a_deadline_is_refused,
    template_without_the_selected_label_is_refused,
    negative_history_is_refused,
    deployment_name_with_a_dot_is_a_warning,
    stateful_set_name_with_a_dot_is_refused,
    job_may_be_suspended,
];

async fn toleration_may_be_added(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let toleration = doc!({ "key": "example.com/a", "operator": "Exists" });
    let patch = doc!([{ "op": "add", "path": "/spec/tolerations/-", "value": toleration }]);
    let patched = t.edit("pods/a", &patch).await.is(200);
    assert_eq!(patched.at("/spec/tolerations").items().len(), 3);
    assert_eq!(patched.at("/metadata/generation"), 2);
}

async fn toleration_may_not_be_removed(t: &Scope) {
    let tolerations = doc!([{ "key": "example.com/a", "operator": "Exists" }]);
    t.made("pods", &pod("a").set("/spec/tolerations", tolerations))
        .await;
    let answer = t
        .merge("pods/a", &doc!({ "spec": { "tolerations": [] } }))
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueForbidden", "spec.tolerations")
        .mentions("existing toleration can not be modified except its tolerationSeconds");
}

async fn deadline_may_be_set_and_shortened(t: &Scope) {
    t.made("pods", &pod("a")).await;
    for seconds in [60, 50] {
        let patch = doc!({ "spec": { "activeDeadlineSeconds": seconds } });
        let patched = t.merge("pods/a", &patch).await.is(200);
        assert_eq!(
            patched.at("/spec/activeDeadlineSeconds"),
            i64::from(seconds)
        );
    }
}

async fn deadline_may_not_be_extended(t: &Scope) {
    t.made("pods", &pod("a").set("/spec/activeDeadlineSeconds", 50))
        .await;
    let answer = t
        .merge("pods/a", &doc!({ "spec": { "activeDeadlineSeconds": 60 } }))
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "spec.activeDeadlineSeconds")
        .mentions("must be less than or equal to previous value");
}

async fn container_may_not_be_added(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let container = doc!({ "name": "two", "image": "registry.example/app:1" });
    let patch = doc!([{ "op": "add", "path": "/spec/containers/-", "value": container }]);
    let answer = t.edit("pods/a", &patch).await;
    answer
        .fails(422, "Invalid")
        .says(
            "Pod \"a\" is invalid: spec.containers: Forbidden: pod updates may not add or remove \
             containers",
        )
        .because("FieldValueForbidden", "spec.containers");
}

async fn scheduling_gate_may_be_removed(t: &Scope) {
    let gates = doc!([{ "name": "example.com/a" }]);
    t.made("pods", &pod("a").set("/spec/schedulingGates", gates))
        .await;
    let patched = t
        .merge("pods/a", &doc!({ "spec": { "schedulingGates": [] } }))
        .await
        .is(200);
    assert!(patched.at("/spec/schedulingGates").is_null());
    assert_eq!(patched.at("/metadata/generation"), 2);
}

async fn scheduling_gate_may_not_be_added(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let patch = doc!({ "spec": { "schedulingGates": [{ "name": "example.com/a" }] } });
    let answer = t.merge("pods/a", &patch).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueForbidden", "spec.schedulingGates[0].name");
}

fn gated() -> Doc {
    let gates = doc!([{ "name": "example.com/a" }]);
    pod("a").set("/spec/schedulingGates", gates)
}

async fn gated_pod_may_become_choosier_about_labels(t: &Scope) {
    t.made("pods", &gated()).await;
    for (key, count) in [("disk", 1), ("zone", 2)] {
        let patch = doc!({ "spec": { "nodeSelector": { (key): "x" } } });
        let patched = t.merge("pods/a", &patch).await.is(200);
        let selector = patched.at("/spec/nodeSelector").as_object();
        assert_eq!(selector.map(windlass_core::Object::len), Some(count));
        assert_eq!(patched.at("/metadata/generation"), count as i64 + 1);
    }
    for value in [doc!("y"), doc!(null)] {
        let patch = doc!({ "spec": { "nodeSelector": { "disk": value } } });
        let answer = t.merge("pods/a", &patch).await;
        answer
            .fails(422, "Invalid")
            .because("FieldValueInvalid", "spec.nodeSelector")
            .mentions(
                "only additions to spec.nodeSelector are allowed (no mutations or deletions)",
            );
    }
}

async fn gated_pod_may_become_choosier_by_affinity(t: &Scope) {
    t.made("pods", &gated()).await;
    let on = |key: &str| doc!({ "key": key, "operator": "Exists" });
    let affinity = |terms: Doc| {
        let required = doc!({ "nodeSelectorTerms": terms });
        doc!({ "spec": { "affinity": { "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": required
        } } } })
    };
    let ask = async |terms: Doc| t.merge("pods/a", &affinity(terms)).await;
    ask(doc!([{ "matchExpressions": [(on("a"))] }]))
        .await
        .is(200);
    ask(doc!([{ "matchExpressions": [(on("a")), (on("b"))] }]))
        .await
        .is(200);
    let terms = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    let more = doc!([
        { "matchExpressions": [(on("a")), (on("b"))] }, { "matchExpressions": [(on("c"))] }
    ]);
    ask(more)
        .await
        .fails(422, "Invalid")
        .because("FieldValueInvalid", terms)
        .mentions("no additions/deletions to non-empty NodeSelectorTerms list are allowed");
    let first = format!("{terms}[0]");
    for wrong in [doc!([(on("a"))]), doc!([(on("b")), (on("a"))])] {
        ask(doc!([{ "matchExpressions": wrong }]))
            .await
            .fails(422, "Invalid")
            .because("FieldValueInvalid", &first)
            .mentions("only additions are allowed (no mutations or deletions)");
    }
    let none = t
        .merge("pods/a", &doc!({ "spec": { "affinity": null } }))
        .await;
    none.fails(422, "Invalid")
        .because("FieldValueInvalid", terms);
}

async fn gated_pod_may_not_ask_for_company(t: &Scope) {
    t.made("pods", &gated()).await;
    let term = doc!({ "topologyKey": "zone", "labelSelector": {} });
    let company = doc!({ "spec": { "affinity": { "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [term]
    } } } });
    let answer = t.merge("pods/a", &company).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueForbidden", "spec")
        .mentions("pod updates may not change fields other than");
}

async fn pod_without_gates_may_not_become_choosier(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let patch = doc!({ "spec": { "nodeSelector": { "disk": "ssd" } } });
    let answer = t.merge("pods/a", &patch).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueForbidden", "spec");
}

async fn quality_of_service_may_not_change(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let answer = t
        .merge(
            "pods/a/status",
            &doc!({ "status": { "qosClass": "Guaranteed" } }),
        )
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "status.qosClass")
        .mentions("field is immutable");
}

async fn labels_may_change_without_a_generation(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let patch = doc!({ "metadata": { "labels": { "a": "b" }, "annotations": { "c": "d" } } });
    let patched = t.merge("pods/a", &patch).await.is(200);
    assert_eq!(patched.at("/metadata/generation"), 1);
}

async fn template_with_a_deadline_is_refused(t: &Scope) {
    let object = deployment("a").set("/spec/template/spec/activeDeadlineSeconds", 5);
    let answer = t.create("deployments", &object).await;
    let field = "spec.template.spec.activeDeadlineSeconds";
    answer
        .fails(422, "Invalid")
        .because("FieldValueForbidden", field);
}

async fn template_without_the_selected_label_is_refused(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let patch = doc!({ "spec": { "template": { "metadata": { "labels": { "app": null } } } } });
    let answer = t.merge("deployments/a", &patch).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "spec.template.metadata.labels");
}

async fn negative_history_is_refused(t: &Scope) {
    let object = deployment("a").set("/spec/revisionHistoryLimit", -1);
    let refusal = t.create("deployments", &object).await.fails(422, "Invalid");
    refusal.because("FieldValueInvalid", "spec.revisionHistoryLimit");
}

async fn deployment_name_with_a_dot_is_a_warning(t: &Scope) {
    let answer = t.create("deployments", &deployment("a.b")).await;
    let warning = answer.header("warning");
    assert!(
        warning.contains("a DNS label is recommended: [must not contain dots]"),
        "{warning}"
    );
    answer.is(201);
}

async fn stateful_set_name_with_a_dot_is_refused(t: &Scope) {
    let answer = t.create("statefulsets", &stateful_set("a.b")).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "metadata.name")
        .mentions("must not contain dots");
}

async fn job_may_be_suspended(t: &Scope) {
    t.made("jobs", &job("a")).await;
    let patch = doc!({ "spec": { "suspend": true, "parallelism": 3 } });
    let patched = t.merge("jobs/a", &patch).await.is(200);
    assert_eq!(patched.at("/spec/suspend"), true);
    assert_eq!(patched.at("/metadata/generation"), 2);
}
