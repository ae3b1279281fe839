//! JSON patches.

use http::Method;

use crate::shapes::{config_map, filled, filled_to, gadget};
use crate::support::{BODY_BYTES, CONFIG_MAPS, Case, GADGETS};

/// As many operations as a patch may have.
const OPERATIONS: usize = 10_000;

fn patch(name: &'static str, list: &'static str, before: String, body: String) -> Case {
    Case {
        method: Method::PATCH,
        before: Some((list, before)),
        ..Case::create(name, &format!("{list}/a"), body)
    }
    .of_type("application/json-patch+json")
}

fn operations(part: impl Fn(usize) -> String) -> String {
    let all: Vec<String> = (0..OPERATIONS).map(part).collect();
    format!("[{}]", all.join(","))
}

pub(crate) fn cases() -> Vec<Case> {
    let array = || {
        gadget(&filled_to(
            1300 << 10,
            r#"{"any":{"a":["#,
            |_| "1".to_owned(),
            r#"],"b":[],"x":{"y":{}}}}"#,
        ))
    };
    let object = || {
        config_map(&filled_to(
            900 << 10,
            r#","data":{"#,
            |n| format!(r#""{n}":"""#),
            "}",
        ))
    };
    let array_patch =
        |name, part: &dyn Fn(usize) -> String| patch(name, GADGETS, array(), operations(part));
    let object_patch =
        |name, part: &dyn Fn(usize) -> String| patch(name, CONFIG_MAPS, object(), operations(part));
    let big = filled_to(2 << 20, "[", |_| "1".to_owned(), "]");
    let value = "x".repeat(220);
    let deep = format!(
        "{}{}",
        r#"{"op":"add","path":"/spec/any/b/-","value":"#,
        "[".repeat(200)
    );
    vec![
        array_patch("insertions at the front", &|_| {
            r#"{"op":"add","path":"/spec/any/a/0","value":1}"#.to_owned()
        }),
        array_patch("insertions of large values", &|n| {
            format!(r#"{{"op":"add","path":"/spec/any/a/{n}","value":"{value}"}}"#)
        }),
        array_patch("removals from the front", &|_| {
            r#"{"op":"remove","path":"/spec/any/a/0"}"#.to_owned()
        }),
        array_patch("replacements", &|n| {
            format!(r#"{{"op":"replace","path":"/spec/any/a/{n}","value":2}}"#)
        }),
        array_patch("moves inside", &|_| {
            r#"{"op":"move","from":"/spec/any/a/0","path":"/spec/any/a/-"}"#.to_owned()
        }),
        array_patch("moves of the whole", &|n| match n % 2 {
            0 => r#"{"op":"move","from":"/spec/any/a","path":"/spec/any/x/y/a"}"#.to_owned(),
            _ => r#"{"op":"move","from":"/spec/any/x/y/a","path":"/spec/any/a"}"#.to_owned(),
        }),
        array_patch("copies of items", &|_| {
            r#"{"op":"copy","from":"/spec/any/a/0","path":"/spec/any/b/-"}"#.to_owned()
        }),
        array_patch("copies that double", &|_| {
            r#"{"op":"copy","from":"/spec/any/b","path":"/spec/any/b/-"}"#.to_owned()
        }),
        array_patch("copies of the whole", &|_| {
            r#"{"op":"copy","from":"/spec/any/a","path":"/spec/any/b/-"}"#.to_owned()
        }),
        array_patch("tests between insertions", &|n| match n % 2 {
            0 => r#"{"op":"add","path":"/spec/any/a/0","value":1}"#.to_owned(),
            _ => r#"{"op":"test","path":"/spec/any/a/5","value":1}"#.to_owned(),
        }),
        patch(
            "test of a large value under edits",
            GADGETS,
            array(),
            format!(
                r#"[{{"op":"add","path":"/spec/any/a/0","value":1}},{{"op":"test","path":"/spec/any/a","value":{big}}}]"#
            ),
        ),
        patch(
            "test of another large value",
            GADGETS,
            array(),
            format!(r#"[{{"op":"test","path":"/spec/any/a","value":{big}}}]"#),
        ),
        object_patch("new keys", &|n| {
            format!(r#"{{"op":"add","path":"/data/new-{n}","value":"{value}"}}"#)
        }),
        object_patch("keys that go", &|n| {
            format!(r#"{{"op":"remove","path":"/data/{n}"}}"#)
        }),
        object_patch("keys that change", &|n| {
            format!(r#"{{"op":"replace","path":"/data/{n}","value":"x"}}"#)
        }),
        object_patch("moves of keys", &|n| {
            format!(r#"{{"op":"move","from":"/data/{n}","path":"/data/z{n}"}}"#)
        }),
        object_patch("keys of many escapes", &|_| {
            format!(
                r#"{{"op":"test","path":"/data/{}","value":null}}"#,
                "~0~1".repeat(60)
            )
        }),
        object_patch("labels", &|n| match n {
            0 => r#"{"op":"add","path":"/metadata/labels","value":{}}"#.to_owned(),
            _ => format!(r#"{{"op":"add","path":"/metadata/labels/l{n}","value":"{n}"}}"#),
        }),
        patch(
            "one long pointer",
            CONFIG_MAPS,
            object(),
            format!(
                r#"[{{"op":"add","path":"{}","value":1}}]"#,
                "/a".repeat(BODY_BYTES / 2 - 50)
            ),
        ),
        patch(
            "too many operations",
            CONFIG_MAPS,
            object(),
            filled("[", |_| r#"{"op":"test","path":"/a"}"#.to_owned(), "]"),
        ),
        patch(
            "large values",
            CONFIG_MAPS,
            object(),
            format!(
                r#"[{{"op":"add","path":"/data/a","value":"{}"}}]"#,
                "x".repeat(BODY_BYTES - 100)
            ),
        ),
        patch(
            "many keys in one value",
            CONFIG_MAPS,
            object(),
            filled(
                r#"[{"op":"add","path":"/data","value":{"#,
                |n| format!(r#""{n}":"""#),
                "}}]",
            ),
        ),
        patch(
            "deep values",
            GADGETS,
            array(),
            filled("[", |_| format!("{deep}{}}}", "]".repeat(200)), "]"),
        ),
    ]
}
