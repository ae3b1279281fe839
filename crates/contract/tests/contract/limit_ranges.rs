//! Limit ranges: their own validity, and what they do to pods and claims.

use windlass_contract::objects::pod;
use windlass_contract::{Answer, Edit, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    default_limit_follows_from_the_maximum,
    default_request_follows_from_the_limit_and_the_minimum,
    pods_have_no_defaults,
    minimum_above_the_maximum_is_refused,
    default_above_the_maximum_is_refused,
    default_request_above_the_limit_is_refused,
    ratio_below_one_is_refused,
    same_type_twice_is_refused,
    claim_limits_need_a_bound,
    pod_gets_the_defaults,
    own_amounts_are_kept,
    init_containers_get_the_defaults,
    small_request_is_refused,
    large_limit_is_refused,
    small_limit_is_refused,
    request_is_needed_for_a_minimum,
    sum_of_the_pod_counts,
    ratio_of_the_pod_counts,
    small_claim_is_refused,
    large_claim_is_refused,
    fitting_claim_is_fine,
];

fn range(item: Doc) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": { "name": "range" },
        "spec": { "limits": [item] }
    })
}

async fn made_item(t: &Scope, item: Doc) -> Doc {
    let made = t.made("limitranges", &range(item)).await;
    made.at("/spec/limits/0").clone()
}

async fn default_limit_follows_from_the_maximum(t: &Scope) {
    let item = made_item(t, doc!({ "type": "Container", "max": { "cpu": "1" } })).await;
    assert_eq!(item.at("/default"), &doc!({ "cpu": "1" }));
    assert_eq!(item.at("/defaultRequest"), &doc!({ "cpu": "1" }));
}

async fn default_request_follows_from_the_limit_and_the_minimum(t: &Scope) {
    let item = doc!({
        "type": "Container", "default": { "cpu": "1" }, "min": { "cpu": "10m", "memory": "1Mi" }
    });
    let item = made_item(t, item).await;
    assert_eq!(item.at("/default"), &doc!({ "cpu": "1" }));
    let expected = doc!({ "cpu": "1", "memory": "1Mi" });
    assert_eq!(item.at("/defaultRequest"), &expected);
}

async fn pods_have_no_defaults(t: &Scope) {
    let item = doc!({ "type": "Pod", "default": { "cpu": "1" } });
    t.create("limitranges", &range(item))
        .await
        .fails(422, "Invalid")
        .because("FieldValueForbidden", "spec.limits[0].default");
}

async fn invalid(t: &Scope, item: Doc, message: &str) {
    let message = format!("LimitRange \"range\" is invalid: {message}");
    t.create("limitranges", &range(item))
        .await
        .fails(422, "Invalid")
        .says(&message);
}

async fn minimum_above_the_maximum_is_refused(t: &Scope) {
    let item = doc!({ "type": "Pod", "min": { "cpu": "2" }, "max": { "cpu": "1" } });
    let why = "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max \
               value 1";
    invalid(t, item, why).await;
}

async fn default_above_the_maximum_is_refused(t: &Scope) {
    let item = doc!({
        "type": "Container", "max": { "cpu": "1" }, "default": { "cpu": "2" },
        "defaultRequest": { "cpu": "1" }
    });
    let why = "spec.limits[0].default[cpu]: Invalid value: \"1\": default value 2 is greater than \
               max value 1";
    invalid(t, item, why).await;
}

async fn default_request_above_the_limit_is_refused(t: &Scope) {
    let item = doc!({
        "type": "Container", "default": { "cpu": "1" }, "defaultRequest": { "cpu": "2" }
    });
    let why = "spec.limits[0].defaultRequest[cpu]: Invalid value: \"2\": default request value 2 \
               is greater than default limit value 1";
    invalid(t, item, why).await;
}

async fn ratio_below_one_is_refused(t: &Scope) {
    let item = doc!({ "type": "Container", "maxLimitRequestRatio": { "cpu": "500m" } });
    let why = "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"500m\": ratio 500m is \
               less than 1";
    invalid(t, item, why).await;
}

async fn same_type_twice_is_refused(t: &Scope) {
    let item = doc!({ "type": "Pod", "max": { "cpu": "1" } });
    let object = range(item.clone()).set("/spec/limits", doc!([(&item), (&item)]));
    t.create("limitranges", &object)
        .await
        .fails(422, "Invalid")
        .because("FieldValueDuplicate", "spec.limits[1].type");
}

async fn claim_limits_need_a_bound(t: &Scope) {
    let item = doc!({ "type": "PersistentVolumeClaim" });
    let why = "spec.limits[0].limits: Required value: either minimum or maximum storage value is \
               required, but neither was provided";
    invalid(t, item, why).await;
}

/// A namespace with a limit range that is in force: the real server takes a moment to see one, and
/// longer where it has looked before.
async fn limited(t: &Scope, item: Doc) {
    t.made("limitranges", &range(item)).await;
}

fn with_resources(resources: Doc) -> Doc {
    pod("a").set("/spec/containers/0/resources", resources)
}

async fn container_limits(t: &Scope) {
    let item = doc!({
        "type": "Container", "default": { "cpu": "200m" },
        "defaultRequest": { "cpu": "100m", "memory": "64Mi" }, "max": { "cpu": "1" },
        "min": { "cpu": "50m" }
    });
    limited(t, item).await;
}

async fn pod_gets_the_defaults(t: &Scope) {
    container_limits(t).await;
    let made = t.made("pods", &pod("a")).await;
    let expected = doc!({
        "limits": { "cpu": "200m" }, "requests": { "cpu": "100m", "memory": "64Mi" }
    });
    assert_eq!(made.at("/spec/containers/0/resources"), &expected);
    assert_eq!(
        made.at("/metadata/annotations/kubernetes.io~1limit-ranger"),
        "LimitRanger plugin set: cpu, memory request for container main; cpu limit for container \
         main"
    );
}

async fn own_amounts_are_kept(t: &Scope) {
    container_limits(t).await;
    let own = doc!({ "limits": { "cpu": "1" }, "requests": { "cpu": "500m", "memory": "1Mi" } });
    let made = t.made("pods", &with_resources(own.clone())).await;
    assert_eq!(made.at("/spec/containers/0/resources"), &own);
    assert_eq!(made.at("/metadata/annotations"), &Doc::NULL);
}

async fn init_containers_get_the_defaults(t: &Scope) {
    container_limits(t).await;
    let init = doc!([{ "name": "first", "image": "first:1" }]);
    let made = t
        .made("pods", &pod("a").set("/spec/initContainers", init))
        .await;
    assert_eq!(
        made.at("/spec/initContainers/0/resources/limits/cpu"),
        "200m"
    );
}

/// Demands that a pod is refused for a reason.
async fn forbidden(t: &Scope, resources: Doc, why: &str) {
    let answer: Answer = t.create("pods", &with_resources(resources)).await;
    answer
        .fails(403, "Forbidden")
        .says(&format!("pods \"a\" is forbidden: {why}"));
}

async fn small_request_is_refused(t: &Scope) {
    container_limits(t).await;
    let resources = doc!({ "requests": { "cpu": "10m" } });
    let why = "minimum cpu usage per Container is 50m, but request is 10m";
    forbidden(t, resources, why).await;
}

async fn large_limit_is_refused(t: &Scope) {
    container_limits(t).await;
    let resources = doc!({ "limits": { "cpu": "2" }, "requests": { "cpu": "100m" } });
    let why = "maximum cpu usage per Container is 1, but limit is 2";
    forbidden(t, resources, why).await;
}

async fn small_limit_is_refused(t: &Scope) {
    limited(
        t,
        doc!({ "type": "Container", "min": { "memory": "10Mi" } }),
    )
    .await;
    let resources = doc!({ "limits": { "memory": "1Mi" }, "requests": { "memory": "1Mi" } });
    let why = "minimum memory usage per Container is 10Mi, but request is 1Mi";
    forbidden(t, resources, why).await;
}

async fn request_is_needed_for_a_minimum(t: &Scope) {
    limited(t, doc!({ "type": "Pod", "min": { "memory": "10Mi" } })).await;
    let why = "minimum memory usage per Pod is 10Mi.  No request is specified";
    forbidden(t, doc!({}), why).await;
}

async fn sum_of_the_pod_counts(t: &Scope) {
    limited(t, doc!({ "type": "Pod", "max": { "cpu": "1" } })).await;
    let side = doc!({
        "name": "side", "image": "side:1", "resources": { "limits": { "cpu": "600m" } }
    });
    let object =
        with_resources(doc!({ "limits": { "cpu": "600m" } })).set("/spec/containers/1", side);
    t.create("pods", &object)
        .await
        .fails(403, "Forbidden")
        .says("pods \"a\" is forbidden: maximum cpu usage per Pod is 1, but limit is 1200m");
}

async fn ratio_of_the_pod_counts(t: &Scope) {
    limited(
        t,
        doc!({ "type": "Pod", "maxLimitRequestRatio": { "cpu": "2" } }),
    )
    .await;
    let resources = doc!({ "limits": { "cpu": "1" }, "requests": { "cpu": "100m" } });
    let why = "cpu max limit to request ratio per Pod is 2, but provided ratio is 10.000000";
    forbidden(t, resources, why).await;
}

fn claim(storage: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "a" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": storage } }
        }
    })
}

async fn claim_limits(t: &Scope) {
    let item = doc!({
        "type": "PersistentVolumeClaim", "min": { "storage": "1Gi" }, "max": { "storage": "2Gi" }
    });
    limited(t, item).await;
}

async fn small_claim_is_refused(t: &Scope) {
    claim_limits(t).await;
    t.create("persistentvolumeclaims", &claim("500Mi"))
        .await
        .fails(403, "Forbidden")
        .says(
            "persistentvolumeclaims \"a\" is forbidden: minimum storage usage per \
             PersistentVolumeClaim is 1Gi, but request is 500Mi",
        );
}

async fn large_claim_is_refused(t: &Scope) {
    claim_limits(t).await;
    t.create("persistentvolumeclaims", &claim("3Gi"))
        .await
        .fails(403, "Forbidden")
        .says(
            "persistentvolumeclaims \"a\" is forbidden: maximum storage usage per \
             PersistentVolumeClaim is 2Gi, but request is 3Gi",
        );
}

async fn fitting_claim_is_fine(t: &Scope) {
    claim_limits(t).await;
    t.made("persistentvolumeclaims", &claim("1Gi")).await;
}
