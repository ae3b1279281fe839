//! Discovery and OpenAPI of custom resources.

use windlass_contract::{Scope, cases};
use windlass_core::{Doc, doc};

use super::support::{DEFINITIONS, GROUP, definition, install, own_group, until, widget_path};

cases![
    discovery_lists_the_resource_and_its_parts,
    aggregated_discovery_lists_the_resource,
    group_is_listed,
    openapi_index_has_the_group,
    openapi_document_has_the_schema,
    openapi_document_has_patch_operations,
    openapi_document_has_a_tag,
    openapi_of_built_in_kinds_has_schemas,
    openapi_hash_must_be_current,
    group_version_is_registered_as_long_as_it_is_served,
];

async fn discovery_lists_the_resource_and_its_parts(t: &Scope) {
    widget_path(t).await;
    let path = format!("/apis/{GROUP}/v1");
    let list = until(t, &path, |code, list| {
        code == 200 && list.at("/resources").items().len() == 3
    })
    .await;
    let widgets = &list.at("/resources").items()[0];
    assert_eq!(widgets.at("/name"), "widgets");
    assert_eq!(widgets.at("/singularName"), "widget");
    assert_eq!(*widgets.at("/shortNames"), doc!(["wd"]));
    assert_eq!(*widgets.at("/categories"), doc!(["all"]));
    let verbs = doc!([
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "create",
        "update",
        "watch"
    ]);
    assert_eq!(*widgets.at("/verbs"), verbs);
    assert!(!widgets.str_at("/storageVersionHash").is_empty());
    let names: Vec<&str> = list
        .at("/resources")
        .items()
        .iter()
        .map(|resource| resource.str_at("/name"))
        .collect();
    assert_eq!(names, ["widgets", "widgets/status", "widgets/scale"]);
    let scale = &list.at("/resources").items()[2];
    assert_eq!(
        (
            scale.str_at("/group"),
            scale.str_at("/version"),
            scale.str_at("/kind")
        ),
        ("autoscaling", "v1", "Scale")
    );
}

async fn aggregated_discovery_lists_the_resource(t: &Scope) {
    widget_path(t).await;
    let t = t.with_header(
        "accept",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    );
    let is_listed = |_: u16, list: &Doc| {
        let mut groups = list.at("/items").items().iter();
        groups.any(|group| {
            *group.at("/metadata/name") == GROUP
                && *group.at("/versions/0/resources/0/resource") == "widgets"
        })
    };
    until(&t, "/apis", is_listed).await;
}

async fn group_is_listed(t: &Scope) {
    widget_path(t).await;
    let group = until(t, &format!("/apis/{GROUP}"), |code, _| code == 200).await;
    let version = doc!({ "groupVersion": (format!("{GROUP}/v1")), "version": "v1" });
    assert_eq!(*group.at("/preferredVersion"), version);
    assert_eq!(*group.at("/versions"), doc!([version]));
}

async fn index_url(t: &Scope, key: &str) -> String {
    let pointer = format!("/paths/{}/serverRelativeURL", key.replace('/', "~1"));
    let index = until(t, "/openapi/v3", |_, index| !index.at(&pointer).is_null()).await;
    index.str_at(&pointer).to_owned()
}

async fn document(t: &Scope, key: &str) -> Doc {
    let url = index_url(t, key).await;
    let answer = t.get(&url).await;
    answer.is(200)
}

fn gvk() -> Doc {
    doc!({ "group": GROUP, "version": "v1", "kind": "Widget" })
}

async fn openapi_index_has_the_group(t: &Scope) {
    widget_path(t).await;
    let url = index_url(t, &format!("apis/{GROUP}/v1")).await;
    assert!(
        url.starts_with(&format!("/openapi/v3/apis/{GROUP}/v1?hash=")),
        "{url}"
    );
}

async fn openapi_document_has_the_schema(t: &Scope) {
    widget_path(t).await;
    let doc = document(t, &format!("apis/{GROUP}/v1")).await;
    assert!(doc.str_at("/openapi").starts_with("3.0"));
    let schema = doc.at("/components/schemas/com.example.contract.v1.Widget");
    assert_eq!(
        *schema.at("/x-kubernetes-group-version-kind"),
        doc!([(gvk())])
    );
    let spec = schema.at("/properties/spec");
    assert_eq!(spec.at("/properties/color/type"), "string");
    assert_eq!(
        *spec.at("/properties/color/enum"),
        doc!(["red", "blue", "black"])
    );
    assert_eq!(spec.at("/properties/ports/x-kubernetes-list-type"), "map");
    assert_eq!(*spec.at("/required"), doc!(["color"]));
    assert!(schema.at("/properties").get("metadata").is_some());
    assert!(
        doc.at("/components/schemas")
            .get("com.example.contract.v1.WidgetList")
            .is_some()
    );
}

async fn openapi_document_has_patch_operations(t: &Scope) {
    widget_path(t).await;
    let doc = document(t, &format!("apis/{GROUP}/v1")).await;
    let path = format!("/apis/{GROUP}/v1/namespaces/{{namespace}}/widgets/{{name}}");
    let patch = doc
        .at("/paths")
        .get(&path)
        .expect("the path is there")
        .at("/patch")
        .clone();
    assert_eq!(*patch.at("/x-kubernetes-group-version-kind"), gvk());
    assert_eq!(patch.at("/x-kubernetes-action"), "patch");
    let content = patch
        .at("/requestBody/content")
        .as_object()
        .expect("contents");
    let types: Vec<&str> = content
        .keys()
        .iter()
        .map(windlass_core::Str::as_str)
        .collect();
    assert!(types.contains(&"application/merge-patch+json"));
    assert!(types.contains(&"application/json-patch+json"));
    assert!(types.contains(&"application/apply-patch+yaml"));
    assert!(!types.contains(&"application/strategic-merge-patch+json"));
    let mut parameters = patch.at("/parameters").items().iter();
    assert!(parameters.any(|parameter| *parameter.at("/name") == "fieldValidation"));
}

async fn openapi_document_has_a_tag(t: &Scope) {
    widget_path(t).await;
    let url = index_url(t, "apis/apps/v1").await;
    let answer = t.get(&url).await;
    let tag = answer.header("etag").to_owned();
    assert!(!tag.is_empty());
    let again = t.with_header("if-none-match", &tag).get(&url).await;
    assert_eq!(again.code(), 304);
}

async fn openapi_of_built_in_kinds_has_schemas(t: &Scope) {
    let doc = document(t, "apis/apps/v1").await;
    let schema = doc.at("/components/schemas/io.k8s.api.apps.v1.Deployment");
    let gvk = doc!({ "group": "apps", "version": "v1", "kind": "Deployment" });
    assert_eq!(*schema.at("/x-kubernetes-group-version-kind"), doc!([gvk]));
    let reference = doc!([{ "$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec" }]);
    assert_eq!(*schema.at("/properties/spec/allOf"), reference);
    let containers = doc.at("/components/schemas/io.k8s.api.core.v1.PodSpec/properties/containers");
    assert_eq!(containers.at("/x-kubernetes-list-type"), "map");
    assert_eq!(
        *containers.at("/x-kubernetes-list-map-keys"),
        doc!(["name"])
    );
    assert_eq!(containers.at("/x-kubernetes-patch-merge-key"), "name");
    assert_eq!(containers.at("/x-kubernetes-patch-strategy"), "merge");
    assert_eq!(
        *doc.at("/components/schemas/io.k8s.api.core.v1.PodSpec/required"),
        doc!(["containers"])
    );
    let quantity = doc.at("/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity");
    assert!(quantity.as_object().is_some());
}

async fn openapi_hash_must_be_current(t: &Scope) {
    let answer = t.get("/openapi/v3/apis/apps/v1?hash=OLD").await;
    assert_eq!(answer.code(), 301);
    assert!(
        answer
            .header("location")
            .starts_with("/openapi/v3/apis/apps/v1?hash="),
        "{}",
        answer.header("location")
    );
}

async fn group_version_is_registered_as_long_as_it_is_served(t: &Scope) {
    let group = own_group(t);
    let definition = definition(&group, "gears", "Gear", &doc!({ "type": "object" }));
    install(t, &definition).await;
    let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/v1.{group}");
    let service = until(t, &path, |code, _| code == 200).await;
    let spec = doc!({
        "group": (group.as_str()), "version": "v1", "groupPriorityMinimum": 1000,
        "versionPriority": 100
    });
    assert_eq!(*service.at("/spec"), spec);
    let labels = doc!({ "kube-aggregator.kubernetes.io/automanaged": "true" });
    assert_eq!(*service.at("/metadata/labels"), labels);
    let name = definition.str_at("/metadata/name");
    t.delete(&format!("{DEFINITIONS}/{name}")).await.is(200);
    until(t, &path, |code, _| code == 404).await;
}
