//! Requests in protobuf, and those that stay JSON.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use windlass_atlas::{Atlas, ObjectEncoder, ProtobufEncoder, decode_protobuf};
use windlass_client::{
    DynamicClient, Encoding, ListOptions, Patch, RestClient, RestOptions, WatchOptions,
    WriteOptions,
};
use windlass_core::{Doc, Gvk, Gvr, doc};

use crate::script::plain;

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const FOOS: Gvr = Gvr::constant("example.com", "v1", "foos");
const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A request as the server sees it: content type, what it accepts, body.
type Seen = (String, String, Vec<u8>);

/// A client that speaks protobuf, of a server that gives one answer to all, and what that saw.
fn client(
    code: u16,
    content_type: &'static str,
    body: Vec<u8>,
) -> (RestClient, Arc<Mutex<Vec<Seen>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let options = RestOptions {
        encoding: Encoding::Protobuf,
        ..RestOptions::default()
    };
    let client = plain(options, move |request: http::Request<Full<Bytes>>| {
        let (log, body) = (Arc::clone(&log), body.clone());
        async move {
            let (head, content) = request.into_parts();
            let header = |name: &str| {
                let value = head.headers.get(name).map(|it| it.to_str().unwrap());
                value.unwrap_or_default().to_owned()
            };
            let content = content.collect().await.unwrap().to_bytes().to_vec();
            log.lock()
                .unwrap()
                .push((header("content-type"), header("accept"), content));
            let answer = http::Response::builder().status(code);
            let answer = answer.header("content-type", content_type);
            answer.body(Full::new(Bytes::from(body))).unwrap()
        }
    });
    (client, seen)
}

fn protobuf(doc: &Doc) -> Vec<u8> {
    let mut body = Vec::new();
    assert!(ProtobufEncoder::new().write(doc, &mut body), "{doc:?}");
    body
}

fn pod() -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" },
        "spec": { "containers": [{ "name": "c", "image": "i", "resources": {} }] }, "status": {}
    })
}

#[tokio::test]
async fn built_in_kinds_are_written_in_protobuf_and_all_else_in_json() {
    let (rest, seen) = client(200, JSON, b"{}".to_vec());
    let client = DynamicClient::new(rest);
    let (pods, foos) = (
        client.resource(PODS).namespaced("x"),
        client.resource(FOOS).namespaced("x"),
    );
    let foo = doc!({ "apiVersion": "example.com/v1", "kind": "Foo", "metadata": { "name": "a" } });
    let odd = pod().with("/spec/notYetKnown", 1).unwrap();
    let options = WriteOptions::default();
    pods.create(&pod(), &options).await.unwrap();
    pods.update(&pod(), &options).await.unwrap();
    pods.create(&odd, &options).await.unwrap();
    foos.create(&foo, &options).await.unwrap();
    let patch = Patch::Merge(doc!({ "metadata": { "labels": { "a": "b" } } }));
    pods.patch("a", &patch, &options).await.unwrap();

    let seen = seen.lock().unwrap();
    let types: Vec<&str> = seen.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(
        types,
        [
            PROTOBUF,
            PROTOBUF,
            JSON,
            JSON,
            "application/merge-patch+json"
        ]
    );
    for (_, accepted, body) in &seen[..2] {
        assert_eq!(decode_protobuf(body).unwrap().doc, pod());
        assert_eq!(accepted, JSON, "an answer that is read as a whole");
    }
    assert_eq!(Doc::parse(&seen[2].2).unwrap(), odd);
}

#[tokio::test]
async fn metadata_is_read_in_protobuf() {
    let metadata = doc!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": { "name": "a", "uid": "u", "resourceVersion": "7",
            "managedFields": [{ "manager": "m", "fieldsV1": { "f:spec": {} } }] }
    });
    let (rest, seen) = client(201, PROTOBUF, protobuf(&metadata));
    let pods = DynamicClient::new(rest).resource(PODS).namespaced("x");
    let options = WriteOptions::default().metadata_only();
    let answer = pods.create(&pod(), &options).await.unwrap();
    assert_eq!(
        answer.at("/metadata"),
        &doc!({ "name": "a", "uid": "u", "resourceVersion": "7" })
    );
    let accepted = &seen.lock().unwrap()[0].1;
    assert!(
        accepted.starts_with(&format!("{PROTOBUF};as=PartialObjectMetadata;")),
        "{accepted}"
    );
    assert!(accepted.ends_with(",application/json"), "{accepted}");
}

#[tokio::test]
async fn a_refusal_in_protobuf_is_understood() {
    let status = doc!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": 409,
        "reason": "AlreadyExists", "message": "pods \"a\" already exists"
    });
    let (rest, _) = client(409, PROTOBUF, protobuf(&status));
    let pods = DynamicClient::new(rest).resource(PODS).namespaced("x");
    let options = WriteOptions::default().metadata_only();
    let refusal = pods.create(&pod(), &options).await.unwrap_err();
    let status = refusal.status().unwrap();
    assert_eq!(
        (status.code, status.reason.as_str()),
        (409, "AlreadyExists")
    );
    assert_eq!(status.message, "pods \"a\" already exists");
}

#[tokio::test]
async fn a_watch_with_fields_that_are_not_known_goes_on_in_json() {
    // An event of a namespace that has a field 99.
    let object = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x03\x9a\x06\x00";
    let raw = [&[0x0a, object.len() as u8], &object[..]].concat();
    let event = [&b"\x0a\x05ADDED\x12"[..], &[raw.len() as u8], &raw].concat();
    let frame = [&(event.len() as u32).to_be_bytes()[..], &event].concat();
    let (rest, seen) = client(
        200,
        "application/vnd.kubernetes.protobuf;stream=watch",
        frame,
    );
    let options = WatchOptions::default();
    let mut watch = rest.watch(&PODS, None, &options).await.unwrap();
    let ended = watch.next().await.unwrap().unwrap_err();
    assert!(ended.is_final());
    assert!(
        ended.to_string().contains("field 99 is not known"),
        "{ended}"
    );
    drop(rest.watch(&PODS, None, &options).await.unwrap());
    drop(rest.watch(&FOOS, None, &options).await.unwrap());
    let seen = seen.lock().unwrap();
    let both = format!("{PROTOBUF},{JSON}");
    let accepted: Vec<&str> = seen.iter().map(|it| it.1.as_str()).collect();
    assert_eq!(accepted, [both.as_str(), JSON, both.as_str()]);
}

#[tokio::test]
async fn a_list_is_read_in_protobuf() {
    let of = Atlas::kind(&Gvk::constant("", "v1", "Pod")).unwrap();
    let (mut encoder, mut items, mut body) = (ObjectEncoder::new(), Vec::new(), Vec::new());
    encoder.write_item(of, &pod(), &mut items).unwrap();
    let metadata = doc!({ "resourceVersion": "9" });
    let kind = ("v1", "PodList");
    encoder
        .write_list_start(kind, &metadata, items.len(), &mut body)
        .unwrap();
    body.extend_from_slice(&items);
    ObjectEncoder::write_list_end(&mut body);
    let (rest, seen) = client(200, PROTOBUF, body);
    let list = rest.list(&PODS, None, &ListOptions::default()).await;
    let list = list.unwrap().collect().await.unwrap();
    assert_eq!(list.head.resource_version(), "9");
    let [read] = &list.items[..] else {
        panic!("one pod: {:?}", list.items);
    };
    assert_eq!(read.str_at("/metadata/name"), "a");
    assert_eq!(read.at("/spec"), pod().at("/spec"));
    assert_eq!(read.at("/kind"), "Pod");
    assert_eq!(seen.lock().unwrap()[0].1, format!("{PROTOBUF},{JSON}"));
}

#[tokio::test]
async fn a_list_with_fields_that_are_not_known_is_read_in_json_the_next_time() {
    // A list of one pod that has a field 99.
    let body = b"k8s\0\x0a\x0d\x0a\x02v1\x12\x07PodList\x12\x05\x12\x03\x9a\x06\x00";
    let (rest, seen) = client(200, PROTOBUF, body.to_vec());
    let options = ListOptions::default();
    let list = rest.list(&PODS, None, &options).await.unwrap();
    let ended = list.collect().await.unwrap_err();
    assert!(
        ended.to_string().contains("field 99 is not known"),
        "{ended}"
    );
    drop(rest.list(&PODS, None, &options).await);
    let seen = seen.lock().unwrap();
    let accepted: Vec<&str> = seen.iter().map(|it| it.1.as_str()).collect();
    assert_eq!(accepted, [format!("{PROTOBUF},{JSON}").as_str(), JSON]);
}

#[test]
fn encodings_are_named_by_their_content_types() {
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        assert_eq!(encoding.to_string().parse(), Ok(encoding));
    }
    let refused = "application/yaml".parse::<Encoding>().unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("neither {JSON} nor {PROTOBUF}")
    );
}
