//! Protobuf bodies against what upstream makes of the same bytes.

use proptest::prelude::*;
use windlass_atlas::{Atlas, canonical, decode_protobuf, unknown_fields};
use windlass_core::Doc;

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
