use windlass_core::doc;

use super::*;

/// The envelope around the bytes of an object.
fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut type_meta = Vec::new();
    field(&mut type_meta, 1, api_version.as_bytes());
    field(&mut type_meta, 2, kind.as_bytes());
    let mut body = PROTOBUF_PREFIX.to_vec();
    field(&mut body, 1, &type_meta);
    field(&mut body, 2, raw);
    body
}

fn field(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    varint(out, u64::from(number << 3 | 2));
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Puts a schema into another.
type Step = fn(&[u8]) -> Vec<u8>;

fn message(fields: &[(u32, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, bytes) in fields {
        field(&mut out, *number, bytes);
    }
    out
}

fn decode(api_version: &str, kind: &str, raw: &[u8]) -> Result<Doc, String> {
    decode_protobuf(&body(api_version, kind, raw))
        .map(|decoded| decoded.doc)
        .map_err(|error| error.to_string())
}

#[test]
fn a_kind_that_is_not_said_is_implied_by_the_endpoint() {
    let scale = Gvk::constant("autoscaling", "v1", "Scale");
    let silent = body("", "", &[]);
    assert_eq!(decode_protobuf(&silent), Err(ProtobufError::MissingKind));
    assert_eq!(
        decode_protobuf_as(&silent, &scale).map(|it| it.gvk),
        Ok(scale.clone())
    );
    let no_version = body("", "Scale", &[]);
    assert_eq!(
        decode_protobuf(&no_version),
        Err(ProtobufError::MissingVersion)
    );
    let said = decode_protobuf_as(&body("v1", "Namespace", &[]), &scale);
    assert_eq!(
        said.map(|it| it.gvk),
        Ok(Gvk::constant("", "v1", "Namespace"))
    );
}

#[test]
fn what_is_not_an_enveloped_object_is_refused() {
    let refusal = |body: &[u8]| decode_protobuf(body).expect_err("refused").to_string();
    assert_eq!(
        refusal(b"{}"),
        "provided data does not appear to be a protobuf message, expected prefix [107, 56, 115, 0]"
    );
    assert_eq!(refusal(b"k8s\0"), "empty body");
    assert_eq!(refusal(b"k8s\0\x0a"), "protobuf: unexpected EOF");
    assert_eq!(
        refusal(&body("example.com/v1", "Foo", &[])),
        r#"no kind "Foo" is registered for version "example.com/v1""#
    );
    assert_eq!(
        refusal(&body("a/b/c", "Foo", &[])),
        "unexpected GroupVersion string: a/b/c"
    );
}

#[test]
fn a_fault_is_reported_with_its_place() {
    let spec = message(&[(2, &message(&[(1, b"a"), (8, &message(&[(1, &[0xff])]))]))]);
    let fault = decode("v1", "Pod", &message(&[(2, &spec)]));
    assert_eq!(
        fault,
        Err("protobuf: spec.containers.resources.limits: unexpected EOF".into())
    );
    // A number where a text belongs.
    let fault = decode("v1", "Pod", &message(&[(1, &[1 << 3, 5])]));
    let expected = "protobuf: metadata.name: wrong wire type, want length-delimited, got a varint";
    assert_eq!(fault, Err(expected.into()));
}

#[test]
fn unknown_fields_and_groups_are_skipped() {
    let mut raw = message(&[(15, b"new")]);
    raw.extend([
        14 << 3 | 3,
        1 << 3,
        1,
        13 << 3 | 3,
        13 << 3 | 4,
        14 << 3 | 4,
    ]);
    raw.extend(message(&[(1, &message(&[(1, b"demo")]))]));
    let namespace = decode("v1", "Namespace", &raw).expect("a namespace");
    assert_eq!(namespace.at("/metadata/name"), "demo");
}

#[test]
fn a_message_in_parts_is_one_message() {
    let raw = message(&[
        (1, &message(&[(1, b"old")])),
        (1, &message(&[(1, b"new"), (3, b"ns")])),
    ]);
    let pod = decode("v1", "Namespace", &raw).expect("a namespace");
    assert_eq!(
        pod.at("/metadata"),
        &doc!({ "name": "new", "namespace": "ns" })
    );
}

#[test]
fn packed_and_single_numbers_make_one_list() {
    // The numbers 1 and 2 packed, then 3 alone, in field 3.
    let values = [3 << 3 | 2, 2, 1, 2, 3 << 3, 3];
    let requirement = Atlas::named("batch/v1", "PodFailurePolicyOnExitCodesRequirement");
    let requirement = requirement.expect("a type");
    let fields = Decoder::new().object(requirement, &values, 1, None);
    let fields = fields.expect("a message");
    let object: Doc = windlass_core::Object::new(fields).into();
    assert_eq!(object.at("/values"), &doc!([1, 2, 3]));
}

#[test]
fn text_that_is_not_utf8_is_replaced_byte_by_byte() {
    let raw = message(&[(1, &message(&[(1, b"a\xf0\x9f\x92b\xff")]))]);
    let namespace = decode("v1", "Namespace", &raw).expect("a namespace");
    assert_eq!(
        namespace.at("/metadata/name"),
        "a\u{fffd}\u{fffd}\u{fffd}b\u{fffd}"
    );
}

#[test]
fn deep_and_many_messages_are_refused() {
    let steps: [Step; 4] = [
        |schema| message(&[(28, schema)]),                   // not
        |schema| message(&[(25, schema)]),                   // allOf
        |schema| message(&[(24, &message(&[(1, schema)]))]), // items
        |schema| message(&[(29, &message(&[(1, b"a"), (2, schema)]))]), // properties
    ];
    for step in steps {
        let schema = (0..2000).fold(Vec::new(), |schema, _| step(&schema));
        let version = message(&[(4, &message(&[(1, &schema)]))]);
        let fault = decode(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            &message(&[(2, &message(&[(7, &version)]))]),
        );
        let fault = fault.expect_err("refused");
        assert!(fault.ends_with("messages are nested too deep"), "{fault}");
    }

    // A list of pods, each with metadata, spec and status, and the list's own metadata.
    let pods = [2 << 3 | 2, 0].repeat(3);
    let kind = Atlas::kind(&Gvk::constant("", "v1", "PodList")).expect("a built-in kind");
    let decode = |limit| Decoder::new().object(kind, &pods, limit, None);
    assert!(decode(14).is_ok());
    let fault = decode(13).expect_err("refused").to_string();
    assert!(fault.ends_with("too many messages"), "{fault}");
}

#[test]
fn values_of_a_field_need_not_stand_together() {
    let label = |key: &[u8], value: &[u8]| message(&[(1, key), (2, value)]);
    let (one, two) = (label(b"a", b"1"), label(b"b", b"2"));
    let metadata = message(&[(11, &one), (1, b"name"), (11, &two), (5, b"uid")]);
    let namespace = decode("v1", "Namespace", &message(&[(1, &metadata)])).expect("a namespace");
    assert_eq!(
        namespace.at("/metadata"),
        &doc!({ "labels": { "a": "1", "b": "2" }, "name": "name", "uid": "uid" })
    );
}

#[test]
fn messages_in_parts_at_every_level_are_refused() {
    let padding = vec![b'x'; 1000];
    // `not` comes in two parts, or the fields around it are scattered.
    let steps: [Step; 2] = [
        |schema| message(&[(28, schema), (28, &[])]),
        |schema| message(&[(4, b"a"), (28, schema), (4, b"b")]),
    ];
    for step in steps {
        let padded = message(&[(4, &padding)]);
        let nested = |levels| (0..levels).fold(padded.clone(), |schema, _| step(&schema));
        let decode = |levels| {
            let version = message(&[(4, &message(&[(1, &nested(levels))]))]);
            decode(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                &message(&[(2, &message(&[(7, &version)]))]),
            )
        };
        assert!(decode(3).is_ok());
        let fault = decode(50).expect_err("refused");
        assert!(fault.ends_with("too many messages in parts"), "{fault}");
    }
}

#[test]
fn what_is_not_known_is_an_error_where_nothing_may_be_lost() {
    let raw = message(&[(1, &message(&[(1, b"name"), (99, b"new")]))]);
    assert!(decode("v1", "Namespace", &raw).is_ok(), "a request body");
    let body = body("v1", "Namespace", &raw);
    let fault = ProtobufDecoder::new(Prune::nothing())
        .strict()
        .decode(&body);
    let expected = ProtobufError::UnknownField {
        path: "metadata".to_owned(),
        number: 99,
    };
    assert_eq!(fault, Err(expected));
    let pruned = ProtobufDecoder::new(Prune::nothing().and("metadata"))
        .strict()
        .decode(&body);
    assert!(pruned.is_ok(), "what is passed over is not looked at");
    let lenient = ProtobufDecoder::new(Prune::nothing()).decode(&body);
    assert_eq!(lenient.expect("read").at("/metadata/name"), "name");
}

#[test]
fn an_event_has_a_type_and_an_object() {
    let object = body("v1", "Namespace", &[]);
    let event = message(&[(1, b"ADDED"), (2, &message(&[(1, &object)])), (9, b"")]);
    assert_eq!(protobuf_event(&event), Ok((&b"ADDED"[..], &object[..])));
    assert_eq!(protobuf_event(&[]), Ok((&b""[..], &b""[..])));
    assert!(protobuf_event(&event[..9]).is_err());
}

#[test]
fn times_outside_the_calendar_are_refused() {
    let latest = 253_402_300_799_u64;
    let with = |seconds: u64| {
        let mut time = vec![1 << 3];
        varint(&mut time, seconds);
        decode("v1", "Namespace", &message(&[(1, &message(&[(8, &time)]))]))
    };
    let last = with(latest).expect("a time");
    assert_eq!(
        last.at("/metadata/creationTimestamp"),
        "9999-12-31T23:59:59Z"
    );
    for seconds in [latest + 1, i64::MAX as u64, i64::MIN as u64] {
        let fault = with(seconds).expect_err("refused");
        assert!(
            fault.ends_with("is not a time of the years 0 to 9999"),
            "{fault}"
        );
    }
}

#[test]
fn an_object_inside_of_another_is_an_error_where_nothing_may_be_lost() {
    // spec.volumeClaimTemplates of a StatefulSet.
    let raw = message(&[(2, &message(&[(4, &message(&[(1, b"")]))]))]);
    let body = body("apps/v1", "StatefulSet", &raw);
    assert!(decode_protobuf(&body).is_ok());
    let fault = ProtobufDecoder::new(Prune::nothing())
        .strict()
        .decode(&body);
    let path = "spec.volumeClaimTemplates".to_owned();
    assert_eq!(fault, Err(ProtobufError::KindInside { path }));
}
