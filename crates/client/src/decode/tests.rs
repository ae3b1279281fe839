use bytes::Bytes;
use proptest::prelude::*;
use windlass_core::{Doc, Prune, doc};

use super::*;
use crate::{WatchError, WatchEvent};

const LIST: &str = r#"{
  "kind": "PodList", "apiVersion": "v1",
  "metadata": {"resourceVersion": "12", "continue": "abc", "remainingItemCount": 7},
  "items": [
    {"metadata": {"name": "a", "namespace": "x", "managedFields": [{"manager": "m"}]}, "n": 1},
    {"metadata": {"name": "b\"]}\\", "namespace": "x"}, "text": "{[}]\\\"\u00e9 é"},
    {"metadata": {"name": "bad", "namespace": "x"}, "n": 1e999},
    {"metadata": {"name": "c"}, "nested": [[], {}, [{"k": null}], true, -1.5e3]}
  ],
  "later": {"anything": [1, 2]}
}"#;

/// The result of one way to cut a body into chunks.
#[derive(Debug, PartialEq)]
struct Listed {
    items: Vec<Result<Doc, Undecodable>>,
    end: Result<(), DecodeError>,
    head: ListHead,
}

fn list(body: &[u8], cuts: &[usize]) -> Listed {
    let mut decoder = ListDecoder::with_limit(Prune::managed_fields(), 4096);
    let mut items = Vec::new();
    let mut end = Ok(());
    'body: for chunk in chunks(body, cuts) {
        decoder.push(chunk);
        loop {
            match decoder.next_item() {
                Ok(Some(item)) => items.push(item),
                Ok(None) => break,
                Err(error) => {
                    end = Err(error);
                    break 'body;
                }
            }
        }
    }
    let end = end.and_then(|()| decoder.finish());
    Listed {
        items,
        end,
        head: decoder.head().clone(),
    }
}

fn chunks(body: &[u8], cuts: &[usize]) -> Vec<Bytes> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (body.len() + 1)).collect();
    cuts.extend([0, body.len()]);
    cuts.sort_unstable();
    cuts.windows(2)
        .map(|pair| Bytes::copy_from_slice(&body[pair[0]..pair[1]]))
        .collect()
}

fn names(listed: &Listed) -> Vec<String> {
    let name = |doc: &Doc| doc.str_at("/metadata/name").to_owned();
    listed
        .items
        .iter()
        .map(|item| item.as_ref().map_or("!".to_owned(), name))
        .collect()
}

#[test]
fn a_list_gives_its_items_and_its_head() {
    let listed = list(LIST.as_bytes(), &[]);
    assert_eq!(listed.end, Ok(()));
    assert_eq!(names(&listed), ["a", "b\"]}\\", "!", "c"]);
    assert_eq!(listed.head.resource_version(), "12");
    assert_eq!(listed.head.continue_token(), "abc");
    assert_eq!(listed.head.remaining(), Some(7));
}

#[test]
fn items_get_the_type_that_the_list_implies() {
    let listed = list(LIST.as_bytes(), &[]);
    let expected = doc!({
        "apiVersion": "v1", "kind": "Pod", "n": 1,
        "metadata": { "name": "a", "namespace": "x" },
    });
    assert_eq!(listed.items[0], Ok(expected));
}

#[test]
fn items_keep_the_type_that_they_tell() {
    let body =
        br#"{"kind":"FooList","apiVersion":"g/v1","items":[{"apiVersion":"g/v2","kind":"Bar"}]}"#;
    let listed = list(body, &[]);
    assert_eq!(
        listed.items[0],
        Ok(doc!({ "apiVersion": "g/v2", "kind": "Bar" }))
    );
}

#[test]
fn an_undecodable_item_is_named_and_the_rest_go_on() {
    let listed = list(LIST.as_bytes(), &[]);
    let error = listed.items[2].as_ref().unwrap_err();
    assert_eq!(error.key.as_ref().unwrap().as_str(), "x/bad");
    assert!(error.to_string().contains("number out of range"), "{error}");
}

#[test]
fn an_item_without_a_readable_name_is_reported_without_one() {
    let listed = list(
        br#"{"items":[{"metadata":{"name":7},"x":nope},{"a":1}]}"#,
        &[],
    );
    assert_eq!(listed.items[0].as_ref().unwrap_err().key, None);
    assert_eq!(listed.items[1], Ok(doc!({ "a": 1 })));
}

#[test]
fn a_null_or_empty_array_is_an_empty_list() {
    for body in [
        &br#"{"kind":"PodList","items":null}"#[..],
        br#"{"items":[ ],"kind":"PodList"}"#,
    ] {
        let listed = list(body, &[]);
        assert_eq!((listed.items.len(), listed.end), (0, Ok(())));
    }
}

#[test]
fn a_status_in_place_of_a_list_is_an_error() {
    let body = br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
        "message":"too old","reason":"Expired","code":410}"#;
    let Err(DecodeError::Status(status)) = list(body, &[]).end else {
        panic!("a status")
    };
    assert!(status.is_gone());
    assert_eq!(status.message, "too old");
}

#[test]
fn a_list_that_ends_early_is_cut() {
    for end in [0, 1, 30, 200, LIST.len() - 1] {
        let listed = list(&LIST.as_bytes()[..end], &[]);
        assert_eq!(
            listed.end,
            Err(DecodeError::Cut { bytes: end as u64 }),
            "{end}"
        );
    }
}

#[test]
fn what_is_not_a_list_is_refused_at_its_byte() {
    let cases: [(&str, u64); 6] = [
        ("<html>", 0),
        ("[1]", 0),
        (r#"{"items": {"a": 1}}"#, 18),
        (r#"{"kind" "x"}"#, 8),
        (r#"{"items":[1 2]}"#, 12),
        (r#"{"items":[]} x"#, 13),
    ];
    for (body, place) in cases {
        let end = list(body.as_bytes(), &[]).end;
        assert!(
            matches!(end, Err(DecodeError::Unexpected { at, .. }) if at == place),
            "{body} {end:?}"
        );
    }
}

#[test]
fn an_item_over_the_limit_is_an_error_and_not_an_allocation() {
    let mut decoder = ListDecoder::with_limit(Prune::nothing(), 1000);
    decoder.push(Bytes::from_static(br#"{"items":[{"x":""#));
    assert_eq!(decoder.next_item().unwrap(), None);
    let filler = Bytes::from(vec![b'a'; 100]);
    let ended = (0..100).find_map(|_| {
        decoder.push(filler.clone());
        decoder.next_item().err()
    });
    assert_eq!(ended, Some(DecodeError::TooLong { limit: 1000 }));
}

const WATCH: &str = r#"{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a","managedFields":[{}]}}}
{"object": {"metadata": {"name": "b"}, "text": "}{\n\\"}, "type": "MODIFIED"}

{"type":"DELETED","object":{"metadata":{"name":"bad","namespace":"y"},"n":01}}
{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}
{"type":"DELETED","object":{"metadata":{"name":"c"}}}
{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"old"}}
"#;

fn watch(body: &[u8], cuts: &[usize]) -> Vec<String> {
    let mut decoder = WatchDecoder::with_limit(Prune::managed_fields(), 4096);
    let mut events = Vec::new();
    for chunk in chunks(body, cuts) {
        decoder.push(chunk);
        while let Some(event) = decoder.next_event() {
            events.push(format!("{event:?}"));
        }
    }
    events.extend(decoder.finish().map(|event| format!("{event:?}")));
    events
}

fn events(body: &str) -> Vec<Result<WatchEvent, WatchError>> {
    let mut decoder = WatchDecoder::new(Prune::managed_fields());
    decoder.push(Bytes::copy_from_slice(body.as_bytes()));
    let mut events: Vec<_> = std::iter::from_fn(|| decoder.next_event()).collect();
    events.extend(decoder.finish());
    events
}

#[test]
fn a_watch_gives_its_events_in_order() {
    let mut events = events(WATCH).into_iter();
    let mut next = || events.next().unwrap();
    let pod = doc!({ "kind": "Pod", "metadata": { "name": "a" } });
    assert_eq!(next().unwrap(), WatchEvent::Added(pod));
    assert!(matches!(next(), Ok(WatchEvent::Modified(doc)) if doc.str_at("/text") == "}{\n\\"));
    let Err(WatchError::Undecodable(bad)) = next() else {
        panic!("a bad object")
    };
    assert_eq!(bad.key.unwrap().as_str(), "y/bad");
    let bookmark = next().unwrap();
    assert!(bookmark.is_initial_events_end());
    assert_eq!(bookmark.resource_version(), "9");
    assert!(matches!(next(), Ok(WatchEvent::Deleted(_))));
    assert!(matches!(next(), Err(error) if error.is_gone() && error.is_final()));
}

#[test]
fn half_a_line_at_the_end_is_cut_and_a_whole_one_counts() {
    let whole = r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#;
    assert!(matches!(&events(whole)[..], [Ok(WatchEvent::Added(_))]));
    let half = &whole[..whole.len() - 3];
    assert!(matches!(&events(half)[..], [Err(error)] if error.is_cut()));
}

#[test]
fn an_unknown_event_ends_the_watch() {
    for body in ["{\"type\":\"NEWS\",\"object\":{}}\n", "<html>\n", "{}\n"] {
        assert!(
            matches!(&events(body)[..], [Err(error)] if error.is_final()),
            "{body}"
        );
    }
}

#[test]
fn a_line_over_the_limit_is_an_error_and_not_an_allocation() {
    let mut decoder = WatchDecoder::with_limit(Prune::nothing(), 1000);
    let filler = Bytes::from(vec![b'a'; 300]);
    let ended = (0..100).find_map(|_| {
        decoder.push(filler.clone());
        decoder.next_event()
    });
    let ended = ended.unwrap().unwrap_err();
    assert!(matches!(
        ended,
        WatchError::Decode(DecodeError::TooLong { limit: 1000 })
    ));
}

/// A frame with a length of less than 128 twice: an event of a type, with an object in protobuf.
fn frame(sort: &str, object: &[u8]) -> Vec<u8> {
    let part = |number: u8, bytes: &[u8]| {
        let length = bytes.len();
        let (low, high) = ((length & 0x7f) as u8 | 0x80, (length >> 7) as u8);
        [&[number << 3 | 2, low, high], bytes].concat()
    };
    let event = [part(1, sort.as_bytes()), part(2, &part(1, object))].concat();
    [&(event.len() as u32).to_be_bytes()[..], &event].concat()
}

fn protobuf(doc: &Doc) -> Vec<u8> {
    let mut body = Vec::new();
    let is_written = windlass_atlas::ProtobufEncoder::new().write(doc, &mut body);
    assert!(is_written, "{doc:?}");
    body
}

fn namespace(name: &str) -> Doc {
    doc!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name }, "spec": {}, "status": {} })
}

fn frames() -> Vec<u8> {
    let managed = doc!([{ "manager": "m", "operation": "Update" }]);
    let gone = doc!({ "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "code": 410, "reason": "Expired", "message": "old" });
    [
        frame(
            "ADDED",
            &protobuf(
                &namespace("a")
                    .with("/metadata/managedFields", managed)
                    .unwrap(),
            ),
        ),
        frame("MODIFIED", &protobuf(&namespace(&"b".repeat(200)))),
        frame("DELETED", &protobuf(&namespace("a"))),
        frame(
            "BOOKMARK",
            &protobuf(
                &namespace("")
                    .with("/metadata/resourceVersion", "9")
                    .unwrap(),
            ),
        ),
        frame("ERROR", &protobuf(&gone)),
    ]
    .concat()
}

fn framed(body: &[u8], cuts: &[usize]) -> Vec<Result<WatchEvent, WatchError>> {
    let mut decoder = FrameDecoder::with_limit(Prune::managed_fields(), 4096);
    let mut events = Vec::new();
    for chunk in chunks(body, cuts) {
        decoder.push(chunk);
        events.extend(std::iter::from_fn(|| decoder.next_event()));
    }
    events.extend(decoder.finish());
    events
}

#[test]
fn a_watch_in_protobuf_gives_its_events_in_order() {
    let mut events = framed(&frames(), &[]).into_iter();
    let mut next = || events.next().unwrap();
    assert_eq!(next().unwrap(), WatchEvent::Added(namespace("a")));
    assert_eq!(
        next().unwrap(),
        WatchEvent::Modified(namespace(&"b".repeat(200)))
    );
    assert_eq!(next().unwrap(), WatchEvent::Deleted(namespace("a")));
    assert_eq!(next().unwrap().resource_version(), "9");
    assert!(matches!(next(), Err(error) if error.is_gone() && error.is_final()));
    assert!(events.next().is_none());
}

#[test]
fn a_status_with_a_field_that_is_not_known_is_understood() {
    let mut status = protobuf(&doc!({ "apiVersion": "v1", "kind": "Status", "code": 410 }));
    // The object stands last, three bytes long; it gets a field 15 without bytes.
    let length = status.len() - 4;
    assert_eq!(status[length], 3, "the length of the object");
    status[length] += 2;
    status.extend([0x7a, 0]);
    let events = framed(&frame("ERROR", &status), &[]);
    assert!(
        matches!(&events[..], [Err(error)] if error.is_gone()),
        "{events:?}"
    );
}

#[test]
fn half_a_frame_at_the_end_is_cut() {
    let whole = frame("ADDED", &protobuf(&namespace("a")));
    for length in 1..whole.len() {
        let events = framed(&whole[..length], &[]);
        assert!(
            matches!(&events[..], [Err(error)] if error.is_cut()),
            "{length}"
        );
    }
}

#[test]
fn a_frame_over_the_limit_or_of_another_sort_ends_the_watch() {
    let long = framed(&5000_u32.to_be_bytes(), &[]);
    let limit = WatchError::Decode(DecodeError::TooLong { limit: 4096 });
    assert_eq!(
        format!("{long:?}"),
        format!("{:?}", [Err::<WatchEvent, _>(limit)])
    );
    let unknown_field = [&protobuf(&namespace("a"))[..], &[0x92, 0x06, 0]].concat();
    let mut known = protobuf(&namespace("a"));
    // The last field of the object becomes one of another number.
    let at = known.len() - 2;
    known[at] = 0x7a;
    for object in [&known[..], b"k8s\0\xff", b"{}", b""] {
        let events = framed(&frame("ADDED", object), &[]);
        let [Err(WatchError::Decode(DecodeError::Protobuf(_)))] = &events[..] else {
            panic!("{object:?}: {events:?}")
        };
    }
    assert!(
        matches!(&framed(&frame("ADDED", &unknown_field), &[])[..], [Ok(_)]),
        "what stands around the object may grow"
    );
    let news = framed(&frame("NEWS", &protobuf(&namespace("a"))), &[]);
    assert!(matches!(&news[..], [Err(error)] if error.is_final()));
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "\\PC{0,12}".prop_map(Into::into),
        r#"[\\"{}\[\],:\n]{0,6}"#.prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
            prop::collection::btree_map("\\PC{0,5}", inner, 0..5)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_list_does_not_depend_on_how_it_is_cut(cuts in prop::collection::vec(0..2000_usize, 0..40)) {
        prop_assert_eq!(list(LIST.as_bytes(), &cuts), list(LIST.as_bytes(), &[]));
    }

    #[test]
    fn a_watch_does_not_depend_on_how_it_is_cut(cuts in prop::collection::vec(0..2000_usize, 0..40)) {
        prop_assert_eq!(watch(WATCH.as_bytes(), &cuts), watch(WATCH.as_bytes(), &[]));
    }

    #[test]
    fn frames_do_not_depend_on_how_they_are_cut(cuts in prop::collection::vec(0..2000_usize, 0..40)) {
        let show = |cuts: &[usize]| format!("{:?}", framed(&frames(), cuts));
        prop_assert_eq!(show(&cuts), show(&[]));
    }

    #[test]
    fn every_item_comes_out_as_it_went_in(
        items in prop::collection::vec(any_json(), 0..6),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
        is_pretty in any::<bool>(),
    ) {
        let body = serde_json::json!({ "kind": "List", "items": items });
        let print = if is_pretty { serde_json::to_vec_pretty } else { serde_json::to_vec };
        let listed = list(&print(&body).unwrap(), &cuts);
        prop_assert_eq!(listed.end, Ok(()));
        let expected: Vec<_> = items.iter().map(|item| Ok(Doc::encode(item).unwrap())).collect();
        prop_assert_eq!(listed.items, expected);
    }

    #[test]
    fn no_bytes_make_the_decoders_panic_or_disagree(
        body in prop::collection::vec(
            prop_oneof![Just(b'{'), Just(b'}'), Just(b'['), Just(b']'), Just(b'"'), Just(b','),
                Just(b':'), Just(b'\\'), Just(b'\n'), Just(b'1'), any::<u8>()], 0..60),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let mut prefixed = b"{\"items\":[".to_vec();
        prefixed.extend(&body);
        for body in [&body, &prefixed] {
            let (whole, cut) = (list(body, &[]), list(body, &cuts));
            prop_assert_eq!(whole.items, cut.items);
            prop_assert_eq!(whole.end, cut.end);
            watch(body, &cuts);
        }
    }
}
