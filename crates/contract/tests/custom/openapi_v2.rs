//! OpenAPI v2: what clients that know no v3 learn about kinds, and what conformance demands of
//! custom resources (upstream's `test/e2e/apimachinery/crd_publish_openapi.go`).

use http::Method;
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

use crate::support::{DEFINITIONS, definition, install, own_group, until};

cases![
    document_has_the_parts_of_swagger,
    document_has_a_tag_that_changes_with_definitions,
    document_known_to_the_client_is_not_sent,
    document_is_sent_in_protobuf,
    protobuf_has_a_second_name,
    other_media_types_are_refused,
    head_is_answered,
    built_in_definitions_have_merge_keys,
    built_in_definitions_refer_to_each_other,
    definitions_have_a_list_of_kinds,
    operations_have_one_kind,
    definitions_have_no_defaults,
    operations_of_a_built_in_kind,
    operations_of_a_custom_resource,
    options_are_kinds_of_every_group,
    schema_of_a_definition_is_published,
    schema_that_keeps_unknown_fields_at_its_root_says_nothing,
    schema_that_keeps_unknown_fields_inside_is_untyped_there,
    kinds_of_two_groups_are_published,
    kinds_of_two_versions_are_published,
    kinds_of_one_group_and_version_are_published,
    renamed_version_is_published_under_its_new_name,
    version_that_is_not_served_is_not_published,
    deleted_definition_is_not_published,
    nullable_property_is_untyped_and_not_required,
    int_or_string_is_untyped,
    embedded_resource_has_its_type,
    selectable_fields_are_published,
    list_kind_is_published,
    subresources_are_published,
];

const PAGE: &str = "/openapi/v2";
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const PROTOBUF_SENT: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const DEPLOYMENTS: &str = "/paths/~1apis~1apps~1v1~1namespaces~1{namespace}~1deployments";

/// The name of a kind of custom resources in documents.
fn name_of(group: &str, version: &str, kind: &str) -> String {
    let domain: Vec<&str> = group.split('.').rev().collect();
    format!("{}.{version}.{kind}", domain.join("."))
}

/// The definition of that name in the document, once it is there.
async fn published(t: &Scope, name: &str) -> Doc {
    let pointer = format!("/definitions/{name}");
    let document = until(t, PAGE, |_, document| !document.at(&pointer).is_null()).await;
    document.at(&pointer).clone()
}

/// Waits until the document has no definition of that name.
async fn vanished(t: &Scope, name: &str) {
    let pointer = format!("/definitions/{name}");
    until(t, PAGE, |code, document| {
        code == 200 && document.at(&pointer).is_null()
    })
    .await;
}

/// Installs a definition with one version and a schema, and returns what is published of it.
async fn published_schema(t: &Scope, schema: &Doc) -> Doc {
    let group = own_group(t);
    let crd = definition(&group, "foos", "Foo", &doc!({ "type": "object" }));
    let crd = crd.set("/spec/versions/0/schema/openAPIV3Schema", schema.clone());
    install(t, &crd).await;
    published(t, &name_of(&group, "v1", "Foo")).await
}

/// A published schema without what the server adds.
fn bare(schema: &Doc) -> Doc {
    let mut schema = schema.cut("/x-kubernetes-group-version-kind");
    for field in ["apiVersion", "kind", "metadata"] {
        schema = schema.cut(&format!("/properties/{field}"));
    }
    schema
}

async fn document_has_the_parts_of_swagger(t: &Scope) {
    let document = t.get(PAGE).await.is(200);
    assert_eq!(document.at("/swagger"), "2.0");
    assert_eq!(
        document.at("/info"),
        &doc!({ "title": "Kubernetes", "version": "1.36" })
    );
    assert_eq!(document.at("/security"), &doc!([{ "BearerToken": [] }]));
    assert_eq!(
        document.at("/securityDefinitions"),
        &doc!({ "BearerToken": {
            "type": "apiKey", "name": "authorization", "in": "header",
            "description": "Bearer Token authentication"
        } })
    );
    for part in ["paths", "definitions", "parameters"] {
        assert!(
            document
                .get(part)
                .is_some_and(|it| it.as_object().is_some()),
            "{part}"
        );
    }
}

async fn document_has_a_tag_that_changes_with_definitions(t: &Scope) {
    let group = own_group(t);
    let crd = definition(&group, "foos", "Foo", &doc!({ "type": "object" }));
    install(t, &crd).await;
    let name = name_of(&group, "v1", "Foo");
    published(t, &name).await;
    let first = t.get(PAGE).await.header("etag").to_owned();
    assert!(first.starts_with('"') && first.len() == 130, "{first}");
    t.delete(&format!("{DEFINITIONS}/foos.{group}"))
        .await
        .is(200);
    vanished(t, &name).await;
    assert_ne!(t.get(PAGE).await.header("etag"), first);
}

async fn document_known_to_the_client_is_not_sent(t: &Scope) {
    // Other cases change definitions at the same time.
    for _ in 0..100 {
        let answer = t.get(PAGE).await;
        assert!(answer.headers("vary").contains(&"Accept"));
        assert!(answer.header("last-modified").ends_with(" GMT"));
        let known = t
            .with_header("if-none-match", answer.header("etag"))
            .get(PAGE)
            .await;
        if known.code() == 304 {
            assert!(known.bytes().is_empty());
            return;
        }
    }
    panic!("the document was sent each time");
}

async fn document_is_sent_in_protobuf(t: &Scope) {
    let answer = t.with_header("accept", PROTOBUF).get(PAGE).await;
    assert_eq!(
        (answer.code(), answer.header("content-type")),
        (200, PROTOBUF_SENT)
    );
    // The version of Swagger, the title, and the version of the server.
    let start = b"\x0a\x032.0\x12\x12\x0a\x0aKubernetes\x12\x041.36";
    assert!(answer.bytes().starts_with(start));
    let names = definition_names(answer.bytes());
    let document = t.get(PAGE).await.is(200);
    for name in [
        "io.k8s.api.apps.v1.Deployment",
        "io.k8s.api.core.v1.Container",
    ] {
        assert!(names.iter().any(|known| known == name), "{name}");
        assert!(!document.at(&format!("/definitions/{name}")).is_null());
    }
}

/// The names of the definitions in a document in protobuf: those are field 9, each with a name.
fn definition_names(bytes: &[u8]) -> Vec<String> {
    let definitions = fields(bytes).into_iter().filter(|(number, _)| *number == 9);
    let named = definitions.flat_map(|(_, definitions)| fields(definitions));
    let names = named.flat_map(|(_, named)| fields(named).into_iter().find(|it| it.0 == 1));
    names
        .map(|(_, name)| String::from_utf8(name.to_vec()).expect("a name"))
        .collect()
}

/// The fields of a message that are messages or texts.
fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    let mut found = Vec::new();
    let varint = |bytes: &mut &[u8]| {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let (&first, rest) = bytes.split_first().expect("more bytes");
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            shift += 7;
            if first < 0x80 {
                return value;
            }
        }
    };
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        match tag & 7 {
            0 => {
                varint(&mut bytes);
            }
            1 => bytes = &bytes[8..],
            _ => {
                let length = usize::try_from(varint(&mut bytes)).expect("a length");
                let (value, rest) = bytes.split_at(length);
                found.push((tag >> 3, value));
                bytes = rest;
            }
        }
    }
    found
}

async fn protobuf_has_a_second_name(t: &Scope) {
    let answer = t.with_header("accept", PROTOBUF_SENT).get(PAGE).await;
    assert_eq!(
        (answer.code(), answer.header("content-type")),
        (200, PROTOBUF_SENT)
    );
}

async fn other_media_types_are_refused(t: &Scope) {
    let answer = t.with_header("accept", "text/html").get(PAGE).await;
    assert_eq!((answer.code(), answer.text()), (406, ""));
}

async fn head_is_answered(t: &Scope) {
    let answer = t.send(t.request(Method::HEAD, PAGE)).await;
    assert_eq!(answer.code(), 200);
    assert!(!answer.header("etag").is_empty());
    assert!(answer.bytes().is_empty());
}

async fn built_in_definitions_have_merge_keys(t: &Scope) {
    let document = t.get(PAGE).await.is(200);
    let containers = document.at("/definitions/io.k8s.api.core.v1.PodSpec/properties/containers");
    assert_eq!(containers.at("/type"), "array");
    assert_eq!(containers.at("/x-kubernetes-patch-merge-key"), "name");
    assert_eq!(containers.at("/x-kubernetes-patch-strategy"), "merge");
    assert_eq!(containers.at("/x-kubernetes-list-type"), "map");
    assert_eq!(
        containers.at("/x-kubernetes-list-map-keys"),
        &doc!(["name"])
    );
    assert_eq!(
        containers.at("/items"),
        &doc!({ "$ref": "#/definitions/io.k8s.api.core.v1.Container" })
    );
}

async fn built_in_definitions_refer_to_each_other(t: &Scope) {
    let document = t.get(PAGE).await.is(200);
    let spec = document.at("/definitions/io.k8s.api.apps.v1.Deployment/properties/spec");
    assert_eq!(
        spec.at("/$ref"),
        "#/definitions/io.k8s.api.apps.v1.DeploymentSpec"
    );
    assert!(!spec.str_at("/description").is_empty());
    for (name, schema) in [
        (
            "io.k8s.apimachinery.pkg.api.resource.Quantity",
            doc!({ "type": "string" }),
        ),
        (
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
            doc!({ "type": "string", "format": "int-or-string" }),
        ),
        (
            "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
            doc!({ "type": "string", "format": "date-time" }),
        ),
    ] {
        let found = document.at(&format!("/definitions/{name}"));
        assert_eq!(found.cut("/description"), schema, "{name}");
    }
}

async fn definitions_have_a_list_of_kinds(t: &Scope) {
    let document = t.get(PAGE).await.is(200);
    let kinds =
        document.at("/definitions/io.k8s.api.apps.v1.Deployment/x-kubernetes-group-version-kind");
    assert_eq!(
        kinds,
        &doc!([{ "group": "apps", "kind": "Deployment", "version": "v1" }])
    );
}

async fn operations_have_one_kind(t: &Scope) {
    let document = t.get(PAGE).await.is(200);
    let operation = document.at(&format!("{DEPLOYMENTS}/get"));
    assert_eq!(
        operation.at("/x-kubernetes-group-version-kind"),
        &doc!({ "group": "apps", "kind": "Deployment", "version": "v1" })
    );
    assert_eq!(operation.at("/x-kubernetes-action"), "list");
}

async fn definitions_have_no_defaults(t: &Scope) {
    fn check(schema: &Doc, path: &str) {
        let Some(fields) = schema.as_object() else {
            return;
        };
        for (key, value) in fields.iter() {
            assert_ne!(key.as_str(), "default", "{path}");
            match key.as_str() {
                "properties" => {
                    for (name, value) in value.as_object().expect("properties").iter() {
                        check(value, &format!("{path}.{name}"));
                    }
                }
                "items" | "additionalProperties" => check(value, path),
                _ => {}
            }
        }
    }
    let document = t.get(PAGE).await.is(200);
    let definitions = document
        .at("/definitions")
        .as_object()
        .expect("definitions");
    for (name, schema) in definitions.iter() {
        check(schema, name);
    }
}

async fn operations_of_a_built_in_kind(t: &Scope) {
    let document = t.get(PAGE).await.is(200);
    for (path, method, id, action, description) in [
        (
            DEPLOYMENTS,
            "get",
            "listAppsV1NamespacedDeployment",
            "list",
            "list or watch objects of kind Deployment",
        ),
        (
            DEPLOYMENTS,
            "post",
            "createAppsV1NamespacedDeployment",
            "post",
            "create a Deployment",
        ),
        (
            DEPLOYMENTS,
            "delete",
            "deleteAppsV1CollectionNamespacedDeployment",
            "deletecollection",
            "delete collection of Deployment",
        ),
        (
            "/paths/~1apis~1apps~1v1~1deployments",
            "get",
            "listAppsV1DeploymentForAllNamespaces",
            "list",
            "list or watch objects of kind Deployment",
        ),
        (
            "/paths/~1api~1v1~1nodes~1{name}",
            "get",
            "readCoreV1Node",
            "get",
            "read the specified Node",
        ),
        (
            "/paths/~1api~1v1~1nodes~1{name}~1status",
            "patch",
            "patchCoreV1NodeStatus",
            "patch",
            "partially update status of the specified Node",
        ),
        (
            "/paths/~1api~1v1~1namespaces~1{namespace}~1endpoints~1{name}",
            "delete",
            "deleteCoreV1NamespacedEndpoints",
            "delete",
            "delete Endpoints",
        ),
        (
            "/paths/~1apis~1networking.k8s.io~1v1~1namespaces~1{namespace}~1ingresses~1{name}",
            "put",
            "replaceNetworkingV1NamespacedIngress",
            "put",
            "replace the specified Ingress",
        ),
        (
            "/paths/~1apis~1rbac.authorization.k8s.io~1v1~1clusterroles",
            "post",
            "createRbacAuthorizationV1ClusterRole",
            "post",
            "create a ClusterRole",
        ),
        (
            "/paths/~1api~1v1~1watch~1pods",
            "get",
            "watchCoreV1PodListForAllNamespaces",
            "watchlist",
            "watch individual changes to a list of Pod. deprecated: use the 'watch' parameter with a list operation instead.",
        ),
        (
            "/paths/~1api~1v1~1namespaces~1{namespace}~1pods~1{name}~1eviction",
            "post",
            "createCoreV1NamespacedPodEviction",
            "post",
            "create eviction of a Pod",
        ),
    ] {
        let operation = document.at(&format!("{path}/{method}"));
        assert_eq!(operation.at("/operationId"), id);
        assert_eq!(operation.at("/x-kubernetes-action"), action, "{id}");
        assert_eq!(operation.at("/description"), description, "{id}");
        assert_eq!(operation.at("/schemes"), &doc!(["https"]), "{id}");
    }
    let create = document.at(&format!("{DEPLOYMENTS}/post"));
    assert_eq!(create.at("/consumes"), &doc!(["*/*"]));
    assert_eq!(
        create.at("/produces"),
        &doc!([
            "application/json",
            "application/yaml",
            "application/vnd.kubernetes.protobuf"
        ])
    );
    let schema = doc!({ "$ref": "#/definitions/io.k8s.api.apps.v1.Deployment" });
    for code in ["200", "201", "202"] {
        assert_eq!(create.at(&format!("/responses/{code}/schema")), &schema);
    }
    assert_eq!(create.at("/parameters/0/schema"), &schema);
    assert_eq!(create.at("/tags"), &doc!(["apps_v1"]));
}

async fn operations_of_a_custom_resource(t: &Scope) {
    let group = own_group(t);
    let crd = definition(&group, "foos", "Foo", &doc!({ "type": "object" }));
    install(t, &crd).await;
    let name = name_of(&group, "v1", "Foo");
    let pointer = format!("/definitions/{name}");
    let document = until(t, PAGE, |_, document| !document.at(&pointer).is_null()).await;
    let all = format!("/paths/~1apis~1{group}~1v1~1namespaces~1{{namespace}}~1foos");
    let one = format!("{all}~1{{name}}");
    let mut camel = String::new();
    for part in group.split(['.', '-']) {
        let (first, rest) = part.split_at(1);
        camel += &format!("{}{rest}", first.to_ascii_uppercase());
    }
    let schema = doc!({ "$ref": (format!("#/definitions/{name}")) });
    for (path, method, id, action, description) in [
        (
            &all,
            "get",
            format!("list{camel}V1NamespacedFoo"),
            "list",
            "list objects of kind Foo",
        ),
        (
            &all,
            "post",
            format!("create{camel}V1NamespacedFoo"),
            "post",
            "create a Foo",
        ),
        (
            &all,
            "delete",
            format!("delete{camel}V1CollectionNamespacedFoo"),
            "deletecollection",
            "delete collection of Foo",
        ),
        (
            &one,
            "get",
            format!("read{camel}V1NamespacedFoo"),
            "get",
            "read the specified Foo",
        ),
        (
            &one,
            "put",
            format!("replace{camel}V1NamespacedFoo"),
            "put",
            "replace the specified Foo",
        ),
        (
            &one,
            "patch",
            format!("patch{camel}V1NamespacedFoo"),
            "patch",
            "partially update the specified Foo",
        ),
        (
            &one,
            "delete",
            format!("delete{camel}V1NamespacedFoo"),
            "delete",
            "delete a Foo",
        ),
    ] {
        let operation = document.at(&format!("{path}/{method}"));
        assert_eq!(operation.at("/operationId"), id.as_str());
        assert_eq!(operation.at("/x-kubernetes-action"), action, "{id}");
        assert_eq!(operation.at("/description"), description, "{id}");
        assert_eq!(
            operation.at("/produces"),
            &doc!(["application/json", "application/yaml"]),
            "{id}"
        );
    }
    assert_eq!(
        document.at(&format!("{one}/patch/consumes")),
        &doc!([
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/apply-patch+yaml"
        ])
    );
    assert_eq!(
        document.at(&format!("{one}/get/responses/200/schema")),
        &schema
    );
    let everywhere = document.at(&format!("/paths/~1apis~1{group}~1v1~1foos/get/operationId"));
    assert_eq!(
        everywhere,
        format!("list{camel}V1FooForAllNamespaces").as_str()
    );
}

async fn options_are_kinds_of_every_group(t: &Scope) {
    let document = t.get(PAGE).await.is(200);
    for kind in ["DeleteOptions", "WatchEvent"] {
        let pointer = format!("/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.{kind}");
        let kinds = document.at(&pointer).at("/x-kubernetes-group-version-kind");
        assert_eq!(kinds.items().len(), 60, "{kind}");
        assert_eq!(
            kinds.at("/0"),
            &doc!({ "group": "", "version": "v1", "kind": kind })
        );
    }
}

/// The schema of upstream's test.
fn schema_foo() -> Doc {
    doc!({
        "description": "Foo CRD for Testing", "type": "object",
        "properties": {
            "spec": {
                "type": "object", "description": "Specification of Foo",
                "properties": { "bars": {
                    "description": "List of Bars and their specs.", "type": "array",
                    "items": {
                        "type": "object", "required": ["name"],
                        "properties": {
                            "name": { "description": "Name of Bar.", "type": "string" },
                            "age": { "description": "Age of Bar.", "type": "string" },
                            "feeling": {
                                "description": "Whether Bar is feeling great.", "type": "string",
                                "enum": ["Great", "Down"]
                            },
                            "bazs": {
                                "description": "List of Bazs.", "type": "array",
                                "items": { "type": "string" }
                            }
                        }
                    }
                } }
            },
            "status": {
                "description": "Status of Foo", "type": "object",
                "properties": { "bars": {
                    "description": "List of Bars and their statuses.", "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": { "description": "Name of Bar.", "type": "string" },
                            "available": { "description": "Whether the Bar is installed.", "type": "boolean" },
                            "quxType": {
                                "description": "Indicates to external qux type.", "type": "string",
                                "pattern": "in-tree|out-of-tree"
                            }
                        }
                    }
                } }
            }
        }
    })
}

async fn schema_of_a_definition_is_published(t: &Scope) {
    let schema = published_schema(t, &schema_foo()).await;
    assert_eq!(bare(&schema), schema_foo());
    let group = own_group(t);
    assert_eq!(
        schema.at("/x-kubernetes-group-version-kind"),
        &doc!([{ "group": (group.as_str()), "version": "v1", "kind": "Foo" }])
    );
    let metadata = schema.at("/properties/metadata");
    assert_eq!(
        metadata,
        &doc!({
            "$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
            "description": "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
        })
    );
    for field in ["apiVersion", "kind"] {
        let field = schema
            .at("/properties")
            .get(field)
            .expect("a field of every object");
        assert_eq!(field.at("/type"), "string");
        assert!(!field.str_at("/description").is_empty());
    }
}

async fn schema_that_keeps_unknown_fields_at_its_root_says_nothing(t: &Scope) {
    let keeps = doc!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let schema = published_schema(t, &keeps).await;
    assert_eq!(
        schema.cut("/x-kubernetes-group-version-kind"),
        doc!({ "type": "object" })
    );
}

async fn schema_that_keeps_unknown_fields_inside_is_untyped_there(t: &Scope) {
    let keeps = doc!({
        "description": "preserve-unknown-properties in nested field for Testing", "type": "object",
        "properties": {
            "spec": {
                "type": "object", "description": "Specification of Waldo",
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": { "dummy": { "description": "Dummy property.", "type": "object" } }
            },
            "status": {
                "type": "object", "description": "Status of Waldo",
                "properties": { "bars": { "description": "List of Bars and their statuses.", "type": "array", "items": { "type": "object" } } }
            }
        }
    });
    let schema = published_schema(t, &keeps).await;
    assert_eq!(
        schema.at("/properties/spec"),
        &doc!({ "description": "Specification of Waldo", "x-kubernetes-preserve-unknown-fields": true })
    );
    assert_eq!(
        schema.at("/properties/status"),
        keeps.at("/properties/status")
    );
}

async fn kinds_of_two_groups_are_published(t: &Scope) {
    let (one, two) = (own_group(t), format!("other.{}", own_group(t)));
    for group in [&one, &two] {
        install(
            t,
            &definition(group, "foos", "Foo", &doc!({ "type": "object" })),
        )
        .await;
    }
    for group in [&one, &two] {
        published(t, &name_of(group, "v1", "Foo")).await;
    }
}

async fn kinds_of_two_versions_are_published(t: &Scope) {
    let group = own_group(t);
    let crd = definition(&group, "foos", "Foo", &doc!({ "type": "object" }));
    let second = crd
        .at("/spec/versions/0")
        .set("/name", "v2")
        .set("/storage", false);
    let first = crd.at("/spec/versions/0").clone();
    install(t, &crd.set("/spec/versions", doc!([first, second]))).await;
    published(t, &name_of(&group, "v1", "Foo")).await;
    published(t, &name_of(&group, "v2", "Foo")).await;
}

async fn kinds_of_one_group_and_version_are_published(t: &Scope) {
    let group = own_group(t);
    install(
        t,
        &definition(&group, "foos", "Foo", &doc!({ "type": "object" })),
    )
    .await;
    install(
        t,
        &definition(&group, "bars", "Bar", &doc!({ "type": "object" })),
    )
    .await;
    published(t, &name_of(&group, "v1", "Foo")).await;
    published(t, &name_of(&group, "v1", "Bar")).await;
}

async fn renamed_version_is_published_under_its_new_name(t: &Scope) {
    let group = own_group(t);
    let crd = definition(&group, "foos", "Foo", &doc!({ "type": "object" }));
    let other = crd
        .at("/spec/versions/0")
        .set("/name", "v3")
        .set("/storage", false);
    let first = crd.at("/spec/versions/0").clone();
    install(t, &crd.set("/spec/versions", doc!([first, other]))).await;
    published(t, &name_of(&group, "v3", "Foo")).await;
    let patch = doc!([{ "op": "replace", "path": "/spec/versions/1/name", "value": "v4" }]);
    t.edit(&format!("{DEFINITIONS}/foos.{group}"), &patch)
        .await
        .is(200);
    published(t, &name_of(&group, "v4", "Foo")).await;
    vanished(t, &name_of(&group, "v3", "Foo")).await;
    published(t, &name_of(&group, "v1", "Foo")).await;
}

async fn version_that_is_not_served_is_not_published(t: &Scope) {
    let group = own_group(t);
    let crd = definition(&group, "foos", "Foo", &doc!({ "type": "object" }));
    let other = crd
        .at("/spec/versions/0")
        .set("/name", "v2")
        .set("/storage", false);
    let first = crd.at("/spec/versions/0").clone();
    install(t, &crd.set("/spec/versions", doc!([first, other]))).await;
    published(t, &name_of(&group, "v2", "Foo")).await;
    let patch = doc!([{ "op": "replace", "path": "/spec/versions/1/served", "value": false }]);
    t.edit(&format!("{DEFINITIONS}/foos.{group}"), &patch)
        .await
        .is(200);
    vanished(t, &name_of(&group, "v2", "Foo")).await;
    published(t, &name_of(&group, "v1", "Foo")).await;
}

async fn deleted_definition_is_not_published(t: &Scope) {
    let group = own_group(t);
    install(
        t,
        &definition(&group, "foos", "Foo", &doc!({ "type": "object" })),
    )
    .await;
    let name = name_of(&group, "v1", "Foo");
    published(t, &name).await;
    t.delete(&format!("{DEFINITIONS}/foos.{group}"))
        .await
        .is(200);
    vanished(t, &name).await;
    let document = t.get(PAGE).await.is(200);
    assert!(
        document
            .at(&format!("/paths/~1apis~1{group}~1v1~1foos"))
            .is_null()
    );
}

async fn nullable_property_is_untyped_and_not_required(t: &Scope) {
    let schema = doc!({
        "type": "object", "required": ["a", "b"],
        "properties": {
            "a": { "type": "object", "nullable": true, "description": "an a", "properties": { "x": { "type": "string" } } },
            "b": { "type": "string", "minLength": 1 }
        }
    });
    let schema = published_schema(t, &schema).await;
    assert_eq!(schema.at("/required"), &doc!(["b"]));
    assert_eq!(schema.at("/properties/a"), &doc!({ "description": "an a" }));
    assert_eq!(
        schema.at("/properties/b"),
        &doc!({ "type": "string", "minLength": 1 })
    );
}

async fn int_or_string_is_untyped(t: &Scope) {
    let schema = doc!({
        "type": "object",
        "properties": {
            "a": { "x-kubernetes-int-or-string": true },
            "b": { "type": "string", "anyOf": [{ "minLength": 1 }], "default": "x" }
        }
    });
    let schema = published_schema(t, &schema).await;
    assert_eq!(
        schema.at("/properties/a"),
        &doc!({ "x-kubernetes-int-or-string": true })
    );
    assert_eq!(schema.at("/properties/b"), &doc!({ "type": "string" }));
}

async fn embedded_resource_has_its_type(t: &Scope) {
    let schema = doc!({
        "type": "object",
        "properties": { "object": { "type": "object", "x-kubernetes-embedded-resource": true, "properties": { "spec": { "type": "object" } } } }
    });
    let schema = published_schema(t, &schema).await;
    let object = schema.at("/properties/object");
    assert_eq!(object.at("/required"), &doc!(["kind", "apiVersion"]));
    assert_eq!(
        object.at("/properties/metadata/$ref"),
        "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );
    let described = object.str_at("/properties/kind/description");
    assert!(
        described.starts_with("kind is a string value"),
        "{described}"
    );
}

async fn selectable_fields_are_published(t: &Scope) {
    let group = own_group(t);
    let spec = doc!({ "type": "object", "properties": { "color": { "type": "string" } } });
    let crd = definition(&group, "foos", "Foo", &spec);
    let crd = crd.set(
        "/spec/versions/0/selectableFields",
        doc!([{ "jsonPath": ".spec.color" }]),
    );
    install(t, &crd).await;
    let schema = published(t, &name_of(&group, "v1", "Foo")).await;
    assert_eq!(
        schema.at("/x-kubernetes-selectable-fields"),
        &doc!([{ "fieldPath": "spec.color" }])
    );
}

async fn list_kind_is_published(t: &Scope) {
    let group = own_group(t);
    install(
        t,
        &definition(&group, "foos", "Foo", &doc!({ "type": "object" })),
    )
    .await;
    let list = published(t, &name_of(&group, "v1", "FooList")).await;
    assert_eq!(list.at("/description"), "FooList is a list of Foo");
    assert_eq!(list.at("/required"), &doc!(["items"]));
    assert_eq!(
        list.at("/properties/items"),
        &doc!({
            "type": "array",
            "description": "List of foos. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md",
            "items": { "$ref": (format!("#/definitions/{}", name_of(&group, "v1", "Foo"))) }
        })
    );
}

async fn subresources_are_published(t: &Scope) {
    let group = own_group(t);
    let spec = doc!({ "type": "object", "properties": { "replicas": { "type": "integer" } } });
    let crd = definition(&group, "foos", "Foo", &spec);
    let schema = crd
        .at("/spec/versions/0/schema/openAPIV3Schema/properties")
        .set("/status", spec.clone());
    let crd = crd.set("/spec/versions/0/schema/openAPIV3Schema/properties", schema);
    let scale =
        doc!({ "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" });
    let crd = crd.set(
        "/spec/versions/0/subresources",
        doc!({ "status": {}, "scale": scale }),
    );
    install(t, &crd).await;
    published(t, &name_of(&group, "v1", "Foo")).await;
    let document = t.get(PAGE).await.is(200);
    let one = format!("/paths/~1apis~1{group}~1v1~1namespaces~1{{namespace}}~1foos~1{{name}}");
    let operation = document.at(&format!("{one}~1status/get"));
    assert_eq!(
        operation.at("/description"),
        "read status of the specified Foo"
    );
    assert!(
        operation
            .str_at("/operationId")
            .ends_with("NamespacedFooStatus")
    );
    let scale = document.at(&format!("{one}~1scale/put"));
    assert_eq!(
        scale.at("/responses/200/schema/$ref"),
        "#/definitions/io.k8s.api.autoscaling.v1.Scale"
    );
}
