//! The two standard patches, by the examples of their standards and at their edges.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use windlass_core::{Doc, JsonPatch, OPERATIONS_LIMIT, PatchError, doc, merge_patch};

fn json(text: &str) -> Doc {
    Doc::parse(text.as_bytes()).unwrap()
}

fn patched(target: &str, patch: &str) -> Result<Doc, PatchError> {
    JsonPatch::from_doc(&json(patch))?.apply(&json(target))
}

#[test]
fn merge_patch_follows_the_examples_of_its_standard() {
    for (target, patch, expected) in [
        (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"a":null}"#, r#"{}"#),
        (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
        (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
        (
            r#"{"a":{"b":"c"}}"#,
            r#"{"a":{"b":"d","c":null}}"#,
            r#"{"a":{"b":"d"}}"#,
        ),
        (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
        (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
        (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
        (r#"{"a":"foo"}"#, "null", "null"),
        (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
        (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
        (r#"[1,2]"#, r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
        (
            r#"{}"#,
            r#"{"a":{"bb":{"ccc":null}}}"#,
            r#"{"a":{"bb":{}}}"#,
        ),
    ] {
        assert_eq!(
            merge_patch(&json(target), &json(patch)),
            json(expected),
            "{target} {patch}"
        );
    }
}

#[test]
fn json_patch_follows_the_examples_of_its_standard() {
    for (target, patch, expected) in [
        (
            r#"{"foo":"bar"}"#,
            r#"[{"op":"add","path":"/baz","value":"qux"}]"#,
            r#"{"baz":"qux","foo":"bar"}"#,
        ),
        (
            r#"{"foo":["bar","baz"]}"#,
            r#"[{"op":"add","path":"/foo/1","value":"qux"}]"#,
            r#"{"foo":["bar","qux","baz"]}"#,
        ),
        (
            r#"{"baz":"qux","foo":"bar"}"#,
            r#"[{"op":"remove","path":"/baz"}]"#,
            r#"{"foo":"bar"}"#,
        ),
        (
            r#"{"foo":["bar","qux","baz"]}"#,
            r#"[{"op":"remove","path":"/foo/1"}]"#,
            r#"{"foo":["bar","baz"]}"#,
        ),
        (
            r#"{"baz":"qux","foo":"bar"}"#,
            r#"[{"op":"replace","path":"/baz","value":"boo"}]"#,
            r#"{"baz":"boo","foo":"bar"}"#,
        ),
        (
            r#"{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}"#,
            r#"[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]"#,
            r#"{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}"#,
        ),
        (
            r#"{"foo":["all","grass","cows","eat"]}"#,
            r#"[{"op":"move","from":"/foo/1","path":"/foo/3"}]"#,
            r#"{"foo":["all","cows","eat","grass"]}"#,
        ),
        (
            r#"{"baz":"qux","foo":["a",2,"c"]}"#,
            r#"[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]"#,
            r#"{"baz":"qux","foo":["a",2,"c"]}"#,
        ),
        (
            r#"{"foo":"bar"}"#,
            r#"[{"op":"add","path":"/child","value":{"grandchild":{}}}]"#,
            r#"{"foo":"bar","child":{"grandchild":{}}}"#,
        ),
        (
            r#"{"/":9,"~1":10}"#,
            r#"[{"op":"test","path":"/~01","value":10}]"#,
            r#"{"/":9,"~1":10}"#,
        ),
        (
            r#"{"foo":["bar"]}"#,
            r#"[{"op":"add","path":"/foo/-","value":["abc","def"]}]"#,
            r#"{"foo":["bar",["abc","def"]]}"#,
        ),
        (
            r#"{"a":{"b":1}}"#,
            r#"[{"op":"copy","from":"/a","path":"/c"}]"#,
            r#"{"a":{"b":1},"c":{"b":1}}"#,
        ),
        (
            r#"{"a":1}"#,
            r#"[{"op":"replace","path":"","value":{"b":2}}]"#,
            r#"{"b":2}"#,
        ),
        (
            r#"{}"#,
            r#"[{"op":"test","path":"/absent","value":null}]"#,
            r#"{}"#,
        ),
    ] {
        assert_eq!(
            patched(target, patch).unwrap(),
            json(expected),
            "{target} {patch}"
        );
    }
}

#[test]
fn a_patch_that_does_not_fit_says_which_operation_and_why() {
    for (target, patch, expected) in [
        (
            r#"{"baz":"qux"}"#,
            r#"[{"op":"test","path":"/baz","value":"bar"}]"#,
            "operation 0: the value at \"/baz\" is another one",
        ),
        (
            r#"{"foo":"bar"}"#,
            r#"[{"op":"add","path":"/baz/bat","value":"qux"}]"#,
            "operation 0: nothing stands at \"/baz\"",
        ),
        (
            r#"{"a":1}"#,
            r#"[{"op":"test","path":"/a","value":1},{"op":"remove","path":"/b"}]"#,
            "operation 1: nothing stands at \"/b\"",
        ),
        (
            r#"{"a":1}"#,
            r#"[{"op":"replace","path":"/b","value":1}]"#,
            "operation 0: nothing stands at \"/b\"",
        ),
        (
            r#"{"a":[1]}"#,
            r#"[{"op":"add","path":"/a/2","value":1}]"#,
            "operation 0: \"2\" is not an index into the array of 1 at \"/a\"",
        ),
        (
            r#"{"a":[1]}"#,
            r#"[{"op":"add","path":"/a/-1","value":1}]"#,
            "operation 0: \"-1\" is not an index into the array of 1 at \"/a\"",
        ),
        (
            r#"{"a":[1]}"#,
            r#"[{"op":"add","path":"/a/+0","value":1}]"#,
            "operation 0: \"+0\" is not an index into the array of 1 at \"/a\"",
        ),
        (
            r#"{"a":1}"#,
            r#"[{"op":"add","path":"/a/b","value":1}]"#,
            "operation 0: \"/a\" is integer, not an object or array",
        ),
        (
            r#"{"a":{"b":1}}"#,
            r#"[{"op":"move","from":"/a","path":"/a/b"}]"#,
            "operation 0: cannot move \"/a\" into itself",
        ),
        (
            r#"{}"#,
            r#"[{"op":"add","path":"a","value":1}]"#,
            "operation 0: pointer \"a\" must be empty or start with \"/\"",
        ),
        (
            r#"{}"#,
            r#"[{"op":"jump","path":"/a"}]"#,
            "operation 0: unknown operation \"jump\"",
        ),
        (
            r#"{}"#,
            r#"[{"op":"add","path":"/a"}]"#,
            "operation 0: field \"value\" is missing",
        ),
        (
            r#"{}"#,
            r#"[{"path":"/a"}]"#,
            "operation 0: field \"op\" must be a string",
        ),
        (
            r#"{}"#,
            r#"[7]"#,
            "operation 0: field \"path\" must be a string",
        ),
        (
            r#"{}"#,
            r#"{"op":"add"}"#,
            "a JSON patch is an array of operations, not object",
        ),
    ] {
        assert_eq!(
            patched(target, patch).unwrap_err().to_string(),
            expected,
            "{target} {patch}"
        );
    }
}

#[test]
fn a_patch_is_applied_whole_or_not_at_all() {
    let target = doc!({ "a": 1 });
    let patch = json(r#"[{"op":"add","path":"/b","value":2},{"op":"remove","path":"/c"}]"#);
    assert!(JsonPatch::from_doc(&patch).unwrap().apply(&target).is_err());
    assert_eq!(target, doc!({ "a": 1 }));
}

#[test]
fn the_number_of_operations_is_limited() {
    let operation = json(r#"{"op":"test","path":"","value":null}"#);
    let patch = |count| JsonPatch::from_doc(&vec![operation.clone(); count].into());
    assert!(patch(OPERATIONS_LIMIT).is_ok());
    let error = patch(OPERATIONS_LIMIT + 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the allowed maximum operations in a JSON patch is 10000, got 10001"
    );
}

#[test]
fn copies_that_double_each_time_are_stopped() {
    let copies = vec![json(r#"{"op":"copy","from":"/a","path":"/a/-"}"#); 64];
    let patch = JsonPatch::from_doc(&copies.into()).unwrap();
    let error = patch.apply(&doc!({ "a": [1, 2, 3] })).unwrap_err();
    assert!(
        error.to_string().contains("exceed 3145728 bytes"),
        "{error}"
    );
}

#[test]
fn a_patch_cannot_nest_deeper_than_a_document_may() {
    let copies = vec![json(r#"{"op":"copy","from":"","path":"/a"}"#); 1000];
    let patch = JsonPatch::from_doc(&copies.into()).unwrap();
    let error = patch.apply(&doc!({})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "operation 255: \"/a\" is nested deeper than 256 levels"
    );
}
