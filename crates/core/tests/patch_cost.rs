//! Patches cost what their bytes and the result cost, and do what the plain rules say.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};
use windlass_core::{Doc, JsonPatch, Kind, OPERATIONS_LIMIT, Object, Str, doc, merge_patch};

/// The CPU seconds that this thread has used.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The result of some work and the CPU seconds that it took.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = cpu();
    let done = work();
    (done, cpu() - before)
}

fn many_fields(prefix: &str, count: usize) -> Doc {
    let field = |number| (Str::new(&format!("{prefix}-{number}")), Doc::from(number));
    Object::new((0..count).map(field).collect()).into()
}

fn operations(operation: impl Fn(usize) -> Doc) -> JsonPatch {
    let all: Vec<Doc> = (0..OPERATIONS_LIMIT).map(operation).collect();
    JsonPatch::from_doc(&all.into()).unwrap()
}

/// Applies a patch and compares with the cost of reading the target from its text.
fn assert_cheap(name: &str, patch: &JsonPatch, target: &Doc) -> Option<Doc> {
    let text = target.to_json();
    let (_, read) = timed(|| Doc::parse(&text).unwrap());
    let (patched, cost) = timed(|| patch.apply(target));
    assert!(
        cost < 20.0 * read.max(0.01),
        "{name}: {cost:.3} s, and reading the target {read:.3} s"
    );
    patched.ok()
}

#[test]
fn one_merge_patch_of_many_keys_costs_no_more_than_creating_them() {
    let (target, patch) = (many_fields("old", 100_000), many_fields("new", 100_000));
    let (_, creating) = timed(|| many_fields("other", 100_000));
    let (merged, merging) = timed(|| merge_patch(&target, &patch));
    assert_eq!(merged.as_object().unwrap().len(), 200_000);
    assert!(merging < 10.0 * creating, "{merging} s and {creating} s");
    let keys = target.as_object().unwrap().keys().iter();
    let removal = Object::new(keys.map(|key| (key.clone(), Doc::NULL)).collect());
    let (left, removing) = timed(|| merge_patch(&merged, &removal.into()));
    assert_eq!(left, patch);
    assert!(removing < 10.0 * creating, "{removing} s and {creating} s");
}

#[test]
fn insertions_at_the_front_of_a_long_array_do_not_copy_it_each_time() {
    let target = doc!({ "a": (vec![Doc::from(7); 1_000_000]) });
    let insert = operations(|number| doc!({ "op": "add", "path": "/a/0", "value": number }));
    let patched = assert_cheap("add", &insert, &target).unwrap();
    assert_eq!(patched.at("/a").items().len(), 1_010_000);
    assert_eq!(patched.at("/a/0"), 9_999);
    let remove = operations(|_| doc!({ "op": "remove", "path": "/a/500000" }));
    let patched = assert_cheap("remove", &remove, &target).unwrap();
    assert_eq!(patched.at("/a").items().len(), 990_000);
}

#[test]
fn fields_added_to_an_object_of_many_keys_do_not_copy_it_each_time() {
    let target = many_fields("key", 200_000);
    let add =
        operations(|number| doc!({ "op": "add", "path": (format!("/x{number}")), "value": 1 }));
    let patched = assert_cheap("add", &add, &target).unwrap();
    assert_eq!(patched.as_object().unwrap().len(), 210_000);
}

#[test]
fn moving_a_large_value_to_and_fro_does_not_measure_it_each_time() {
    let deep = (0..250).fold(doc!(1), |inner, _| doc!([inner]));
    let target = doc!({ "a": (many_fields("key", 200_000)), "d": deep, "x": { "y": { "z": {} } } });
    let swap = operations(|number| match number % 4 {
        0 => doc!({ "op": "move", "from": "/a", "path": "/x/y/z/a" }),
        1 => doc!({ "op": "add", "path": "/x/y/z/a/new", "value": number }),
        2 => doc!({ "op": "test", "path": "/x/y/z/a/new", "value": (number - 1) }),
        _ => doc!({ "op": "move", "from": "/x/y/z/a", "path": "/a" }),
    });
    assert_cheap("move", &swap, &target).unwrap();
}

#[test]
fn tests_of_a_value_under_edits_cost_the_value_in_the_patch_at_most() {
    let target = doc!({ "a": (vec![Doc::from(7); 500_000]) });
    let patch = operations(|number| match number % 2 {
        0 => doc!({ "op": "add", "path": "/a/-", "value": 1 }),
        _ => doc!({ "op": "test", "path": "/b", "value": null }),
    });
    assert_cheap("test", &patch, &target).unwrap();
}

/// The plain rules of RFC 6902, on copies of whole documents.
fn naive(doc: &Doc, operation: &Doc) -> Option<Doc> {
    let (path, from) = (operation.str_at("/path"), operation.str_at("/from"));
    let value = operation.get("value").cloned().unwrap_or_default();
    match operation.str_at("/op") {
        "add" => naive_add(doc, path, value),
        "remove" => doc.pointer(path).and_then(|_| doc.without(path).ok()),
        "replace" => doc.pointer(path).and_then(|_| doc.with(path, value).ok()),
        "move"
            if path
                .strip_prefix(from)
                .is_some_and(|rest| rest.starts_with('/')) =>
        {
            None
        }
        "move" => naive_add(&doc.without(from).ok()?, path, doc.pointer(from)?.clone()),
        "copy" => naive_add(doc, path, doc.pointer(from)?.clone()),
        _ => (*doc.at(path) == value).then(|| doc.clone()),
    }
}

fn naive_add(doc: &Doc, path: &str, value: Doc) -> Option<Doc> {
    let Some((parent, token)) = path.rsplit_once('/') else {
        return Some(value);
    };
    match doc.pointer(parent)?.kind() {
        Kind::Array(items) => {
            let mut items = items.to_vec();
            let at = if token == "-" {
                items.len()
            } else {
                token.parse().ok()?
            };
            if at > items.len() {
                return None;
            }
            items.insert(at, value);
            doc.with(parent, items).ok()
        }
        Kind::Object(_) => doc.with(path, value).ok(),
        _ => None,
    }
}

fn pointers() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec!["a", "b", "c~1d", "0", "1", "2", "5", "-", "~0"]);
    prop::collection::vec(token, 0..4)
        .prop_map(|tokens| tokens.iter().map(|token| format!("/{token}")).collect())
}

fn values() -> impl Strategy<Value = Doc> {
    let texts = vec![
        "null",
        "1",
        "\"x\"",
        "[]",
        "{}",
        "[1,2,3]",
        r#"{"a":1}"#,
        r#"{"b":[0,{"a":[1]}]}"#,
        r#"{"a":{"a":{"b":2}},"c/d":[[],[1]]}"#,
        r#"[{"a":1},{"b":2},[3]]"#,
    ];
    prop::sample::select(texts).prop_map(|text| Doc::parse(text.as_bytes()).unwrap())
}

fn one_operation() -> impl Strategy<Value = Doc> {
    let op = prop::sample::select(vec![
        "add", "add", "remove", "replace", "move", "copy", "test",
    ]);
    (op, pointers(), pointers(), values()).prop_map(
        |(op, path, from, value)| doc!({ "op": op, "path": path, "from": from, "value": value }),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Operations that the plain rules refuse are left out, so that long patches come through.
    #[test]
    fn a_json_patch_does_what_the_plain_rules_say(
        target in values(),
        operations in prop::collection::vec(one_operation(), 0..24),
    ) {
        let (mut expected, mut kept) = (target.clone(), Vec::new());
        for operation in operations {
            let next = naive(&expected, &operation);
            let mut alone = kept.clone();
            alone.push(operation.clone());
            let patched = JsonPatch::from_doc(&alone.into()).unwrap().apply(&target).ok();
            prop_assert_eq!(&patched, &next, "{:?} on {:?}", operation, expected);
            if let Some(next) = next {
                kept.push(operation);
                expected = next;
            }
        }
    }
}
