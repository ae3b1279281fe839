//! Custom resources and protobuf: they have no form in it, but their metadata has.

use http::Method;
use windlass_atlas::ProtobufEncoder;
use windlass_contract::{Answer, Edit, Scope, cases};
use windlass_core::{Doc, doc};

use crate::support::{definition, install, own_group};

cases![
    custom_resource_has_no_protobuf,
    custom_resource_is_sent_as_json_where_protobuf_is_preferred,
    list_of_custom_resources_has_no_protobuf,
    metadata_of_a_custom_resource_is_sent_in_protobuf,
    list_of_metadata_of_custom_resources_is_sent_in_protobuf,
    watch_of_metadata_of_custom_resources_is_sent_in_protobuf,
    watch_of_custom_resources_has_no_protobuf,
    watch_of_custom_resources_is_sent_as_json_where_protobuf_is_preferred,
    custom_resource_of_an_unknown_media_type_is_refused,
    refusal_about_a_custom_resource_is_sent_in_protobuf,
    scale_of_a_custom_resource_has_no_protobuf,
    custom_resource_is_deleted_with_options_in_protobuf,
    list_of_custom_resources_is_no_object,
    definition_is_sent_in_protobuf,
];

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const METADATA: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const ACCEPTED: &str = "only the following media types are accepted: application/json, \
     application/yaml, application/vnd.kubernetes.protobuf";

/// Makes a kind with a scale and an object of it, and returns the path of its objects and the
/// object.
async fn foo(t: &Scope) -> (String, Doc) {
    let group = own_group(t);
    let numbers = doc!({ "type": "object", "properties": { "replicas": { "type": "integer" } } });
    let crd = definition(&group, "foos", "Foo", &numbers);
    let properties = crd.at("/spec/versions/0/schema/openAPIV3Schema/properties");
    let properties = properties.set("/status", numbers.clone());
    let crd = crd.set(
        "/spec/versions/0/schema/openAPIV3Schema/properties",
        properties,
    );
    let scale = doc!({
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"
    });
    let crd = crd.set("/spec/versions/0/subresources", doc!({ "scale": scale }));
    install(t, &crd).await;
    let path = format!("/apis/{group}/v1/namespaces/{}/foos", t.namespace());
    let object = doc!({
        "apiVersion": (format!("{group}/v1")), "kind": "Foo", "metadata": { "name": "a" },
        "spec": { "replicas": 2 }
    });
    let made = t.made(&path, &object).await;
    (path, made)
}

fn accepting(t: &Scope, accept: &str) -> Scope {
    t.with_header("accept", accept)
}

/// Demands a refusal in protobuf, and returns its message.
#[track_caller]
fn is_refused(answer: &Answer, code: u16, reason: &str) -> String {
    let status = answer.is_protobuf(code);
    assert_eq!(status.at("/reason"), reason);
    status.str_at("/message").to_owned()
}

async fn custom_resource_has_no_protobuf(t: &Scope) {
    let (path, _) = foo(t).await;
    let answer = accepting(t, PROTOBUF).get(&format!("{path}/a")).await;
    assert_eq!(is_refused(&answer, 406, "NotAcceptable"), ACCEPTED);
}

async fn custom_resource_is_sent_as_json_where_protobuf_is_preferred(t: &Scope) {
    let (path, made) = foo(t).await;
    for accept in [
        "application/vnd.kubernetes.protobuf, application/json",
        "application/vnd.kubernetes.protobuf, */*",
        "application/vnd.kubernetes.protobuf, application/json;q=0.1",
    ] {
        let answer = accepting(t, accept).get(&format!("{path}/a")).await;
        assert_eq!(
            answer.header("content-type"),
            "application/json",
            "{accept}"
        );
        assert_eq!(answer.is(200), made);
    }
}

async fn list_of_custom_resources_has_no_protobuf(t: &Scope) {
    let (path, _) = foo(t).await;
    let answer = accepting(t, PROTOBUF).get(&path).await;
    assert_eq!(is_refused(&answer, 406, "NotAcceptable"), ACCEPTED);
}

async fn metadata_of_a_custom_resource_is_sent_in_protobuf(t: &Scope) {
    let (path, made) = foo(t).await;
    let answer = accepting(t, METADATA).get(&format!("{path}/a")).await;
    let metadata = answer.is_protobuf(200);
    assert_eq!(metadata.at("/kind"), "PartialObjectMetadata");
    assert_eq!(metadata.at("/metadata"), made.at("/metadata"));
}

async fn list_of_metadata_of_custom_resources_is_sent_in_protobuf(t: &Scope) {
    let (path, made) = foo(t).await;
    let list = accepting(t, METADATA_LIST)
        .get(&path)
        .await
        .is_protobuf(200);
    assert_eq!(list.at("/kind"), "PartialObjectMetadataList");
    assert_eq!(list.at("/items/0/metadata"), made.at("/metadata"));
}

async fn watch_of_metadata_of_custom_resources_is_sent_in_protobuf(t: &Scope) {
    let (path, made) = foo(t).await;
    let mut watch = accepting(t, METADATA).watch(&path, "").await;
    let added = watch.expect("ADDED", "a").await;
    assert_eq!(added.at("/metadata"), made.at("/metadata"));
}

async fn watch_of_custom_resources_has_no_protobuf(t: &Scope) {
    let (path, _) = foo(t).await;
    let answer = accepting(t, PROTOBUF)
        .get(&format!("{path}?watch=true"))
        .await;
    is_refused(&answer, 406, "NotAcceptable");
}

async fn watch_of_custom_resources_is_sent_as_json_where_protobuf_is_preferred(t: &Scope) {
    let (path, made) = foo(t).await;
    let accept = "application/vnd.kubernetes.protobuf;stream=watch, application/json";
    let mut watch = accepting(t, accept).watch(&path, "").await;
    assert_eq!(watch.expect("ADDED", "a").await, made);
}

async fn custom_resource_of_an_unknown_media_type_is_refused(t: &Scope) {
    let (path, made) = foo(t).await;
    let request = t
        .request(Method::POST, &path)
        .body("text/plain", made.to_json());
    t.send(request).await.fails(415, "UnsupportedMediaType");
}

async fn refusal_about_a_custom_resource_is_sent_in_protobuf(t: &Scope) {
    let (path, _) = foo(t).await;
    let accept = "application/vnd.kubernetes.protobuf, application/json";
    let answer = accepting(t, accept).get(&format!("{path}/none")).await;
    is_refused(&answer, 404, "NotFound");
}

async fn scale_of_a_custom_resource_has_no_protobuf(t: &Scope) {
    let (path, _) = foo(t).await;
    let path = format!("{path}/a/scale");
    assert_eq!(t.get(&path).await.is(200).at("/spec/replicas"), 2);
    let answer = accepting(t, PROTOBUF).get(&path).await;
    assert_eq!(is_refused(&answer, 406, "NotAcceptable"), ACCEPTED);
}

async fn custom_resource_is_deleted_with_options_in_protobuf(t: &Scope) {
    let (path, _) = foo(t).await;
    let options = doc!({
        "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"
    });
    let mut body = Vec::new();
    assert!(ProtobufEncoder::new().write(&options, &mut body));
    let path = format!("{path}/a");
    let answer = t
        .send(t.request(Method::DELETE, &path).body(PROTOBUF, body))
        .await;
    answer.is(200);
    t.get(&path).await.fails(404, "NotFound");
}

async fn list_of_custom_resources_is_no_object(t: &Scope) {
    let (path, _) = foo(t).await;
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let answer = accepting(t, accept).get(&path).await;
    answer.fails(406, "NotAcceptable").says(
        "you requested PartialObjectMetadata, but the requested object is a list \
         (*unstructured.UnstructuredList)",
    );
}

async fn definition_is_sent_in_protobuf(t: &Scope) {
    foo(t).await;
    let path = format!(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.{}",
        own_group(t)
    );
    let answer = accepting(t, PROTOBUF).get(&path).await;
    assert_eq!(answer.is_protobuf(200), t.get(&path).await.is(200));
}
