//! Protobuf bodies against what upstream makes of the same bytes.

use proptest::prelude::*;
use windlass_atlas::{
    Atlas, ObjectEncoder, ProtobufDecoder, ProtobufEncoder, ProtobufError, canonical,
    decode_protobuf, unknown_fields,
};
use windlass_core::{Doc, Prune, doc};

/// Objects encoded by upstream: kind, protobuf in hex, JSON. Made by `cargo xtask atlas`.
const GOLDENS: &str = include_str!("data/protobuf.txt");

struct Golden {
    kind: &'static str,
    body: Vec<u8>,
    json: Doc,
}

fn goldens() -> Vec<Golden> {
    GOLDENS.lines().map(read).collect()
}

fn read(line: &'static str) -> Golden {
    let mut parts = line.splitn(3, '\t');
    let mut next = || parts.next().expect("three parts");
    let kind = next();
    let body = from_hex(next());
    let json = Doc::parse(next().as_bytes()).expect("upstream's JSON is JSON");
    Golden { kind, body, json }
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    let digits = digits.map(|pair| std::str::from_utf8(pair).expect("digits"));
    digits
        .map(|pair| u8::from_str_radix(pair, 16).expect("digits"))
        .collect()
}

#[test]
fn bodies_decode_to_the_json_of_upstream() {
    let goldens = goldens();
    assert!(goldens.len() >= 30);
    for golden in goldens {
        let decoded = decode_protobuf(&golden.body)
            .unwrap_or_else(|error| panic!("{}: {error}\n{}", golden.kind, golden.json));
        let said = format!("{} {}", decoded.gvk.api_version(), decoded.gvk.kind());
        assert_eq!(said, golden.kind);
        let difference = golden.json.diff(&decoded.doc);
        assert!(difference.is_empty(), "{}: {difference:?}", golden.kind);
    }
}

#[test]
fn what_upstream_writes_has_no_unknown_fields() {
    for golden in goldens() {
        let decoded = decode_protobuf(&golden.body).expect("a sound body");
        let kind = Atlas::kind(&decoded.gvk).expect("a built-in kind");
        assert_eq!(unknown_fields(kind, &golden.json), [], "{}", golden.kind);
    }
}

#[test]
fn what_upstream_writes_is_canonical() {
    for golden in goldens() {
        let decoded = decode_protobuf(&golden.body).expect("a sound body");
        let kind = Atlas::kind(&decoded.gvk).expect("a built-in kind");
        let difference = golden.json.diff(&canonical(kind, &golden.json));
        assert!(difference.is_empty(), "{}: {difference:?}", golden.kind);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]


    #[test]
    fn changed_bytes_never_panic(
        at in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let goldens = GOLDENS.lines().count();
        let mut body = read(GOLDENS.lines().nth(at.index(goldens)).expect("a line")).body;
        for (place, byte) in &changes {
            let place = place.index(body.len());
            body[place] = *byte;
        }
        let _ = decode_protobuf(&body);
        body.truncate(cut.index(body.len()));
        let _ = decode_protobuf(&body);
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode_protobuf(&bytes);
        let mut body = b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12".to_vec();
        body.push(bytes.len().min(127) as u8);
        body.extend(&bytes[..bytes.len().min(127)]);
        let _ = decode_protobuf(&body);
    }
}

#[test]
fn a_decoder_of_many_objects_leaves_out_what_is_pruned() {
    let paths = [
        "metadata.managedFields",
        "metadata.labels.app",
        "spec.template.spec.containers[].env",
        "spec.containers[].resources.limits",
        "status",
        "data",
        "rules[]",
    ];
    for prune in [
        Prune::nothing(),
        paths.into_iter().fold(Prune::nothing(), Prune::and),
    ] {
        let mut decoder = ProtobufDecoder::new(prune.clone()).strict();
        // Twice: the second time values come from memory.
        for golden in goldens().into_iter().chain(goldens()) {
            let decoded = match decoder.decode(&golden.body) {
                Err(ProtobufError::KindInside { .. }) if has_objects(golden.kind) => continue,
                decoded => decoded.expect("a sound body"),
            };
            let difference = prune.apply(&golden.json).diff(&decoded);
            assert!(difference.is_empty(), "{}: {difference:?}", golden.kind);
        }
    }
}

/// Returns true if objects of a kind have objects of another kind in them.
fn has_objects(kind: &str) -> bool {
    kind.ends_with("StatefulSet") || kind.ends_with("List")
}

#[test]
fn the_memory_of_a_decoder_is_bounded() {
    let mut decoder = ProtobufDecoder::new(Prune::nothing());
    let mut encoder = ProtobufEncoder::new();
    for number in 0..60 {
        let text = format!("{number}-{}", "y".repeat(20 << 10));
        let pod = doc!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "labels": { "a": (text.as_str()) } }, "spec": { "nodeName": text }
        });
        let body = encode(&mut encoder, &pod).expect("a plain pod");
        let decoded = decoder.decode(&body).expect("a sound body");
        assert_eq!(decoded.at("/spec/nodeName"), pod.at("/spec/nodeName"));
    }
    let held = bytes_held(&format!("{decoder:?}"), "\"spec\": ");
    assert!((1..=64 << 10).contains(&held), "{held}");
}

/// The number behind a word in the debug form of what remembers.
fn bytes_held(debug: &str, word: &str) -> usize {
    let digits = debug.split(word).nth(1).expect("the word");
    let end = digits.find(|c: char| !c.is_ascii_digit());
    digits[..end.unwrap_or(digits.len())]
        .parse()
        .expect("a number")
}

/// An object as protobuf; `None` if it cannot be said so.
fn encode(encoder: &mut ProtobufEncoder, doc: &Doc) -> Option<Vec<u8>> {
    let mut out = b"before".to_vec();
    match encoder.write(doc, &mut out) {
        true => Some(out.split_off(6)),
        false => {
            assert_eq!(out, b"before", "nothing is left of what cannot be said");
            None
        }
    }
}

#[test]
fn what_is_encoded_decodes_to_the_same() {
    let mut encoder = ProtobufEncoder::new();
    let mut encoded = 0;
    // Twice: the second time specs come from memory.
    for golden in goldens().into_iter().chain(goldens()) {
        let Some(body) = encode(&mut encoder, &golden.json) else {
            // Schemas have a form of their own.
            assert!(
                golden.kind.contains("CustomResourceDefinition"),
                "{}",
                golden.kind
            );
            continue;
        };
        encoded += 1;
        let decoded = decode_protobuf(&body).expect("a sound body");
        let difference = golden.json.diff(&decoded.doc);
        assert!(difference.is_empty(), "{}: {difference:?}", golden.kind);
    }
    assert!(encoded >= 60, "{encoded}");
}

#[test]
fn what_protobuf_cannot_say_is_not_encoded() {
    let pod = |metadata: Doc, spec: Doc| doc!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec });
    let mut encoder = ProtobufEncoder::new();
    let plain = pod(doc!({ "name": "a" }), doc!({ "nodeName": "n" }));
    assert!(encode(&mut encoder, &plain).is_some());
    let nulls = pod(doc!({ "name": "a", "creationTimestamp": null }), doc!({}));
    assert!(
        encode(&mut encoder, &nulls).is_some(),
        "null is as good as absent"
    );
    let long = "x".repeat(300);
    for (what, other) in [
        (
            "an unknown field",
            pod(doc!({ "name": "a" }), doc!({ "nodename": "n" })),
        ),
        ("a number for a text", pod(doc!({ "name": 1 }), doc!({}))),
        (
            "a text for a number",
            pod(doc!({}), doc!({ "priority": "1" })),
        ),
        (
            "a number of 33 bits",
            pod(doc!({}), doc!({ "priority": 4_294_967_296_i64 })),
        ),
        (
            "a number with a fraction",
            pod(doc!({}), doc!({ "priority": 1.5 })),
        ),
        ("an empty list", pod(doc!({}), doc!({ "containers": [] }))),
        ("an empty map", pod(doc!({ "labels": {} }), doc!({}))),
        (
            "null in a list",
            pod(doc!({ "finalizers": ["a", null] }), doc!({})),
        ),
        (
            "null in a map",
            pod(doc!({ "labels": { "a": null } }), doc!({})),
        ),
        ("a list for an object", pod(doc!({}), doc!([]))),
        (
            "a time in another form",
            pod(
                doc!({ "creationTimestamp": "2026-01-02T03:04:05.5Z" }),
                doc!({}),
            ),
        ),
        (
            "a time that is none",
            pod(doc!({ "creationTimestamp": long }), doc!({})),
        ),
        (
            "a custom resource",
            doc!({ "apiVersion": "example.com/v1", "kind": "Foo" }),
        ),
        ("no kind", doc!({ "apiVersion": "v1" })),
        ("no object", doc!([])),
    ] {
        assert_eq!(encode(&mut encoder, &other), None, "{what}");
    }
    let secret = |data: &str| doc!({ "apiVersion": "v1", "kind": "Secret", "data": { "a": data } });
    assert!(encode(&mut encoder, &secret("YWI=")).is_some());
    assert_eq!(encode(&mut encoder, &secret("YW")), None, "not base64");
}

#[test]
fn the_memory_of_an_encoder_is_bounded_and_right() {
    let mut encoder = ProtobufEncoder::new();
    let pod = |number: usize| {
        let text = format!("{number}-{}", "y".repeat(20 << 10));
        doc!({ "apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": { "nodeName": text }, "status": {} })
    };
    for number in (0..60).chain(0..60) {
        let body = encode(&mut encoder, &pod(number)).expect("a plain pod");
        let decoded = decode_protobuf(&body).expect("a sound body").doc;
        assert_eq!(
            decoded.at("/spec/nodeName"),
            pod(number).at("/spec/nodeName")
        );
    }
    let held = bytes_held(&format!("{encoder:?}"), "bytes: ");
    assert!((1..=512 << 10).contains(&held), "{held}");
}

#[test]
fn objects_are_written_byte_by_byte_as_upstream_does() {
    let mut encoder = ObjectEncoder::new();
    for golden in goldens() {
        for round in ["fresh", "memoized"] {
            let mut body = Vec::new();
            encoder
                .write(&golden.json, &mut body)
                .unwrap_or_else(|error| panic!("{}: {error}", golden.kind));
            let pairs = body.iter().zip(&golden.body);
            let at = pairs.take_while(|(ours, theirs)| ours == theirs).count();
            let shown = |bytes: &[u8]| {
                let shown = &bytes[at.saturating_sub(24)..(at + 24).min(bytes.len())];
                String::from_utf8_lossy(shown).into_owned()
            };
            assert!(
                body == golden.body,
                "{} ({round}) differs at {at}: {:?}, upstream has {:?}",
                golden.kind,
                shown(&body),
                shown(&golden.body),
            );
        }
    }
}
