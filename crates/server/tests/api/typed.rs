//! What the types of built-in kinds decide: fields, protobuf bodies, strategic merge patches.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use windlass_core::{Doc, doc};

use crate::support::{Answer, Api, CONFIG_MAPS, PODS, config_map, pod};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

async fn send(api: &Api, method: Method, path: &str, body: Vec<u8>) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", PROTOBUF)
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    api.send(request).await
}

/// A field of a protobuf message whose value is short.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let length = u8::try_from(value.len()).unwrap();
    assert!(number < 16 && length < 128, "a longer form is needed");
    [&[number << 3 | 2, length], value].concat()
}

/// A protobuf body of some kind of the core group.
fn envelope(kind: &str, message: &[u8]) -> Vec<u8> {
    let said = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &said), field(2, message)].concat()
}

fn protobuf_config_map(name: &str) -> Vec<u8> {
    let entry = [field(1, b"a"), field(2, b"b")].concat();
    let metadata = field(1, name.as_bytes());
    envelope(
        "ConfigMap",
        &[field(1, &metadata), field(2, &entry)].concat(),
    )
}

#[tokio::test]
async fn a_protobuf_body_is_read() {
    let api = Api::new().await;
    let body = protobuf_config_map("a");
    let made = send(&api, Method::POST, CONFIG_MAPS, body)
        .await
        .expect(201);
    assert_eq!(made.str_at("/metadata/name"), "a");
    assert_eq!(*made.body.at("/data"), doc!({ "a": "b" }));
    let path = format!("{CONFIG_MAPS}/a");
    let updated = send(&api, Method::PUT, &path, protobuf_config_map("a")).await;
    updated.expect(200);
}

#[tokio::test]
async fn delete_options_may_be_protobuf() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let dry_run = envelope("DeleteOptions", &field(5, b"All"));
    let path = format!("{CONFIG_MAPS}/a");
    send(&api, Method::DELETE, &path, dry_run).await.expect(200);
    api.get(&path).await.expect(200);
}

#[tokio::test]
async fn a_broken_protobuf_body_is_refused() {
    let api = Api::new().await;
    let whole = protobuf_config_map("a");
    for body in [b"x".to_vec(), b"k8s\0".to_vec(), whole[..20].to_vec()] {
        let answer = send(&api, Method::POST, CONFIG_MAPS, body).await;
        answer.refused(400, "BadRequest");
    }
    let other = send(&api, Method::POST, PODS, whole).await;
    other.refused(400, "BadRequest");
}

#[tokio::test]
async fn a_strategic_merge_patch_merges_lists_by_their_key() {
    let api = Api::new().await;
    let labels = doc!({ "app": "web" });
    let object = doc!({
        "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": (labels.clone()) },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [
                    { "name": "web", "image": "web:1" }, { "name": "log", "image": "log:1" }
                ] }
            }
        }
    });
    api.post(DEPLOYMENTS, &object).await.expect(201);
    let patch = doc!({ "spec": { "template": { "spec": { "containers": [
        { "name": "log", "image": "log:2" }
    ] } } } });
    let path = format!("{DEPLOYMENTS}/web");
    let patched = api.patch(&path, STRATEGIC, &patch.to_string()).await;
    let patched = patched.expect(200);
    let containers = patched.body.at("/spec/template/spec/containers").items();
    let images: Vec<&str> = containers.iter().map(|one| one.str_at("/image")).collect();
    assert_eq!(images, ["web:1", "log:2"]);
}

#[tokio::test]
async fn a_strategic_merge_patch_of_no_sense_is_refused() {
    let api = Api::new().await;
    api.post(PODS, &pod("a")).await.expect(201);
    let path = format!("{PODS}/a");
    let patch = r#"{"metadata":{"$retainKeys":1}}"#;
    let answer = api.patch(&path, STRATEGIC, patch).await;
    answer.refused(400, "BadRequest");
}

fn colored() -> Doc {
    config_map("a").with("/color", "green").unwrap()
}

#[tokio::test]
async fn an_unknown_field_is_dropped_with_a_warning() {
    let api = Api::new().await;
    let made = api.post(CONFIG_MAPS, &colored()).await.expect(201);
    assert!(made.body.at("/color").is_null());
    assert_eq!(
        made.headers["warning"],
        "299 - \"unknown field \\\"color\\\"\""
    );
    let patch = doc!({ "metadata": { "size": 1 } });
    let patched = api.merge(&format!("{CONFIG_MAPS}/a"), &patch).await;
    let patched = patched.expect(200);
    assert!(patched.body.at("/metadata/size").is_null());
    assert_eq!(
        patched.headers["warning"],
        "299 - \"unknown field \\\"metadata.size\\\"\""
    );
}

#[tokio::test]
async fn an_unknown_field_is_refused_where_validation_is_strict() {
    let api = Api::new().await;
    let path = format!("{CONFIG_MAPS}?fieldValidation=Strict");
    let message = api.post(&path, &colored()).await.refused(400, "BadRequest");
    assert!(
        message.ends_with("strict decoding error: unknown field \"color\""),
        "{message}"
    );
}

#[tokio::test]
async fn an_empty_list_or_map_is_left_out() {
    let api = Api::new().await;
    let object = config_map("a")
        .with("/metadata/labels", Doc::empty_object())
        .and_then(|doc| doc.with("/metadata/finalizers", doc!([])))
        .unwrap();
    let made = api.post(CONFIG_MAPS, &object).await.expect(201);
    assert!(made.body.at("/metadata").get("labels").is_none());
    assert!(made.body.at("/metadata").get("finalizers").is_none());
}

#[tokio::test]
async fn a_quantity_is_kept_in_its_canonical_form() {
    let api = Api::new().await;
    let limits = doc!({ "cpu": 1.5, "memory": "1024Mi", "example.com/gpu": 2 });
    let object = pod("a")
        .with("/spec/containers/0/resources", doc!({ "limits": limits }))
        .unwrap();
    let made = api.post(PODS, &object).await.expect(201);
    assert_eq!(
        *made.body.at("/spec/containers/0/resources/limits"),
        doc!({ "cpu": "1500m", "memory": "1Gi", "example.com/gpu": "2" })
    );
}

#[tokio::test]
async fn a_service_has_node_ports_as_long_as_its_type_asks_for_them() {
    let api = Api::new().await;
    let services = "/api/v1/namespaces/default/services";
    let object = doc!({
        "metadata": { "name": "web" }, "spec": { "type": "NodePort", "ports": [{ "port": 80 }] }
    });
    let made = api.post(services, &object).await.expect(201);
    let port = made.body.at("/spec/ports/0/nodePort").as_i64().unwrap();
    assert!((30_000..=32_767).contains(&port), "{port}");
    let path = format!("{services}/web");
    let change = async |kind: &str| {
        let patch = doc!({ "spec": { "type": kind } });
        let patched = api.merge(&path, &patch).await.expect(200);
        patched.body.at("/spec/ports/0/nodePort").as_i64()
    };
    assert_eq!(change("NodePort").await, Some(port));
    assert_eq!(change("ClusterIP").await, None);
    assert!(change("NodePort").await.is_some());
}

#[tokio::test]
async fn a_value_of_the_wrong_type_is_refused() {
    let api = Api::new().await;
    let check = async |pointer: &str, value: Doc, expected: &str| {
        let object = pod("a").with(pointer, value).unwrap();
        let message = api.post(PODS, &object).await.refused(400, "BadRequest");
        assert!(message.ends_with(expected), "{message}");
    };
    check(
        "/spec/nodeName",
        1.into(),
        "json: cannot unmarshal number into Go struct field PodSpec.spec.nodeName of type string",
    )
    .await;
    check(
        "/spec/containers",
        "x".into(),
        "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type \
         []v1.Container",
    )
    .await;
    check(
        "/spec/containers/0/ports",
        doc!([{ "containerPort": 1.5 }]),
        "cannot unmarshal number 1.5 into Go struct field \
         ContainerPort.spec.containers.ports.containerPort of type int32",
    )
    .await;
    check(
        "/metadata/name",
        doc!([]),
        "cannot unmarshal array into Go struct field ObjectMeta.metadata.name of type string",
    )
    .await;
    check(
        "/spec/containers/0/resources",
        doc!({ "limits": { "cpu": "much" } }),
        "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    )
    .await;
}
