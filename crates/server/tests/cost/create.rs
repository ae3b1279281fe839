//! JSON bodies of creations.

use crate::shapes::{config_map, filled, gadget};
use crate::support::{BODY_BYTES, CONFIG_MAPS, Case, GADGETS};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

pub(crate) fn cases() -> Vec<Case> {
    let mut all = config_maps();
    all.extend(values());
    all.extend(metadata());
    all
}

fn data(part: impl Fn(usize) -> String) -> String {
    config_map(&filled(r#","data":{"#, part, "}"))
}

fn config_maps() -> Vec<Case> {
    let make = |name, body: String| Case::create(name, CONFIG_MAPS, body);
    let strict = format!("{CONFIG_MAPS}?fieldValidation=Strict");
    let deep_key = "k".repeat(200);
    vec![
        make("many keys", data(|n| format!(r#""{n}":"""#))),
        make(
            "keys with a long common start",
            data(|n| format!(r#""{deep_key}{n}":"""#)),
        ),
        make("one key many times", data(|_| r#""a":"""#.to_owned())),
        make(
            "many keys twice",
            data(|n| format!(r#""{}":"""#, n % 100_000)),
        ),
        make("wrong values", data(|_| r#""a":1"#.to_owned())),
        make("bad keys", data(|n| format!(r#""é{n}":"""#))),
        make("null values", data(|n| format!(r#""{n}":null"#))),
        make(
            "unknown fields",
            config_map(&filled(",", |n| format!(r#""{n}":0"#), "")),
        ),
        Case::create(
            "unknown fields, strict",
            &strict,
            config_map(&filled(",", |n| format!(r#""{n}":0"#), "")),
        ),
        Case::create(
            "one key many times, strict",
            &strict,
            data(|_| r#""a":"""#.to_owned()),
        ),
        make(
            "one huge string",
            data(|_| format!(r#""a":"{}""#, "x".repeat(BODY_BYTES - 40))),
        ),
        make(
            "escapes",
            data(|n| format!(r#""{n}":"\u0041\ud83d\ude00\n\\""#)),
        ),
        make(
            "one string of escapes",
            data(|_| format!(r#""a":"{}""#, r"\u00e9".repeat(BODY_BYTES / 6 - 20))),
        ),
        make(
            "binary",
            config_map(&filled(
                r#","binaryData":{"#,
                |n| format!(r#""{n}":"AAAA""#),
                "}",
            )),
        ),
        Case::create(
            "secret",
            SECRETS,
            config_map(&filled(
                r#","stringData":{"#,
                |n| format!(r#""{n}":"""#),
                "}",
            ))
            .replace("ConfigMap", "Secret"),
        ),
    ]
}

fn values() -> Vec<Case> {
    let any = |part: &dyn Fn(usize) -> String| gadget(&filled(r#"{"any":{"a":["#, part, "]}}"));
    let make = |name, body: String| Case::create(name, GADGETS, body);
    let chain = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    let half = BODY_BYTES / 2;
    vec![
        make("long array", any(&|_| "1".to_owned())),
        make("array of empty arrays", any(&|_| "[]".to_owned())),
        make("array of objects", any(&|n| format!(r#"{{"a":{n}}}"#))),
        make(
            "objects of other keys each",
            any(&|n| format!(r#"{{"{n}":0}}"#)),
        ),
        make("deep arrays", any(&|_| chain(200))),
        make("deep objects", any(&|_| objects(200))),
        make(
            "deep objects, each another",
            any(&|n| objects(100).replace('1', &n.to_string())),
        ),
        make("deeper than allowed", any(&|_| chain(half - 100))),
        make("one number of many digits", any(&|_| "1".repeat(half))),
        make(
            "numbers of many digits",
            any(&|n| format!("{n}.{}e-5", "7".repeat(300))),
        ),
        make(
            "large integers",
            any(&|n| format!("{}", u64::MAX - n as u64)),
        ),
        make("numbers beyond range", any(&|_| "1e400".to_owned())),
        make("nulls", any(&|_| "null".to_owned())),
        make(
            "list map",
            gadget(&filled(
                r#"{"list":["#,
                |n| format!(r#"{{"name":"{n}"}}"#),
                "]}",
            )),
        ),
        make(
            "list map, one key",
            gadget(&filled(
                r#"{"list":["#,
                |_| r#"{"name":"a"}"#.to_owned(),
                "]}",
            )),
        ),
        make(
            "list map, keys that are objects",
            gadget(&filled(
                r#"{"list":["#,
                |n| format!(r#"{{"name":{{"a":{n}}}}}"#),
                "]}",
            )),
        ),
        make(
            "set",
            gadget(&filled(r#"{"set":["#, |n| format!(r#""{n}""#), "]}")),
        ),
        make(
            "set, all alike",
            gadget(&filled(r#"{"set":["#, |_| r#""a""#.to_owned(), "]}")),
        ),
        make(
            "wrong types",
            gadget(&filled(r#"{"numbers":["#, |n| format!(r#""{n}""#), "]}")),
        ),
        make(
            "strings",
            gadget(&filled(r#"{"strings":{"#, |n| format!(r#""{n}":"""#), "}}")),
        ),
        make(
            "unknown in custom",
            gadget(&filled("{", |n| format!(r#""{n}":0"#), "}")),
        ),
    ]
}

fn metadata() -> Vec<Case> {
    let field = |name, open: &str, part: &dyn Fn(usize) -> String, close: &str| {
        let open =
            format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a",{open}"#);
        let close = format!("{close}}}}}");
        Case::create(name, CONFIG_MAPS, filled(&open, part, &close))
    };
    let owner = |n: usize, more: &str| {
        format!(r#"{{"apiVersion":"v1","kind":"P","name":"n","uid":"{n}"{more}}}"#)
    };
    let entry = |n: usize| {
        format!(
            r#"{{"manager":"{n}","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{{"f:data":{{"f:{n}":{{}}}}}}}}"#
        )
    };
    vec![
        field("labels", r#""labels":{"#, &|n| format!(r#""{n}":"""#), "}"),
        field(
            "bad labels",
            r#""labels":{"#,
            &|n| format!(r#""é{n}":"é""#),
            "}",
        ),
        field(
            "annotations",
            r#""annotations":{"#,
            &|n| format!(r#""{n}":"""#),
            "}",
        ),
        field(
            "finalizers",
            r#""finalizers":["#,
            &|n| format!(r#""a/{n}""#),
            "]",
        ),
        field(
            "finalizers, all alike",
            r#""finalizers":["#,
            &|_| r#""a/a""#.to_owned(),
            "]",
        ),
        field(
            "bad finalizers",
            r#""finalizers":["#,
            &|n| format!(r#""{n}""#),
            "]",
        ),
        field(
            "owner references",
            r#""ownerReferences":["#,
            &|n| owner(n, ""),
            "]",
        ),
        field(
            "owner references, all alike",
            r#""ownerReferences":["#,
            &|_| owner(0, ""),
            "]",
        ),
        field(
            "owner references, all controllers",
            r#""ownerReferences":["#,
            &|n| owner(n, r#","controller":true"#),
            "]",
        ),
        field(
            "empty owner references",
            r#""ownerReferences":["#,
            &|_| "{}".to_owned(),
            "]",
        ),
        field("managers", r#""managedFields":["#, &entry, "]"),
        field(
            "one manager with many fields",
            r#""managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"#,
            &|n| format!(r#""f:{n}":{{}}"#),
            "}}}]",
        ),
        field(
            "one manager with odd steps",
            r#""managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"#,
            &|n| format!(r#""v:[{n}.0]":{{}}"#),
            "}}}]",
        ),
        field("unknown in metadata", "", &|n| format!(r#""{n}":0"#), ""),
    ]
}
