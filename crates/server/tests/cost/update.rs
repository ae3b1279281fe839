//! JSON bodies of updates.

use http::Method;

use crate::shapes::{filled_to, gadget};
use crate::support::{CONFIG_MAPS, Case, GADGETS, PODS};

/// As much as an object may have before.
const BEFORE: usize = 900 << 10;

/// An update of an object `a`, from one shape to another. Updates of custom resources must name a
/// revision; a merge patch, which replaces lists, does the same without.
fn put(name: &'static str, list: &'static str, before: String, after: String) -> Case {
    let case = Case {
        method: Method::PUT,
        before: Some((list, before)),
        ..Case::create(name, &format!("{list}/a"), after)
    };
    if list == CONFIG_MAPS {
        return case;
    }
    Case {
        method: Method::PATCH,
        ..case.of_type("application/merge-patch+json")
    }
}

fn config_map(bytes: usize, metadata: &str, part: impl Fn(usize) -> String) -> String {
    let open = format!(r#"{{"metadata":{{"name":"a"{metadata}}},"data":{{"#);
    filled_to(bytes, &open, part, "}}")
}

pub(crate) fn cases() -> Vec<Case> {
    let list = |bytes, part: &dyn Fn(usize) -> String, kind: &str| {
        gadget(&filled_to(bytes, &format!(r#"{{"{kind}":["#), part, "]}"))
    };
    let item = |n: usize| format!(r#"{{"name":"{n}","value":{n}}}"#);
    let backwards = |n: usize| {
        format!(
            r#"{{"name":"{}","value":1}}"#,
            60_000_usize.saturating_sub(n)
        )
    };
    let deep = |leaf: &str| {
        let mut parts = String::new();
        while parts.len() < 500 << 10 {
            parts.push_str(&format!(r#""{}":{leaf},"#, parts.len()));
        }
        parts.pop();
        let (open, close) = (r#"{"a":"#.repeat(150), "}".repeat(150));
        gadget(&format!(r#"{{"any":{open}{{{parts}}}{close}}}"#))
    };
    let mut long_key = format!(r#"{{"any":{{"{}":{{"#, "k".repeat(300 << 10));
    while long_key.len() < 900 << 10 {
        long_key.push_str(&format!(r#""{}":1,"#, long_key.len()));
    }
    long_key.pop();
    let long_key = format!("{long_key}}}}}}}");
    let managers = |n: usize| {
        format!(
            r#"{{"manager":"{n}","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{{"f:data":{{"f:{n}":{{}}}}}}}}"#
        )
    };
    let pod = |part: &str| {
        filled_to(
            BEFORE,
            r#"{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}],"tolerations":["#,
            |n| format!(r#"{{"key":"k{n}","operator":"Exists"{part}}}"#),
            "]}}",
        )
    };
    vec![
        put(
            "all keys change",
            CONFIG_MAPS,
            config_map(BEFORE, "", |n| format!(r#""{n}":"a""#)),
            config_map(BEFORE, "", |n| format!(r#""{n}":"b""#)),
        ),
        put(
            "all keys go and others come",
            CONFIG_MAPS,
            config_map(BEFORE, "", |n| format!(r#""a{n}":"""#)),
            config_map(BEFORE, "", |n| format!(r#""b{n}":"""#)),
        ),
        put(
            "list map changes",
            GADGETS,
            list(BEFORE, &item, "list"),
            list(
                BEFORE,
                &|n| item(n).replace("value\":", "value\":1"),
                "list",
            ),
        ),
        put(
            "list map in another order",
            GADGETS,
            list(BEFORE, &item, "list"),
            list(BEFORE, &backwards, "list"),
        ),
        put(
            "set changes",
            GADGETS,
            list(BEFORE, &|n| format!(r#""a{n}""#), "set"),
            list(BEFORE, &|n| format!(r#""b{n}""#), "set"),
        ),
        put("many fields far down", GADGETS, deep("1"), deep("2")),
        put(
            "many fields below a long key",
            GADGETS,
            gadget(r#"{"any":{"b":1}}"#),
            gadget(&long_key),
        ),
        put(
            "many managers",
            CONFIG_MAPS,
            config_map(BEFORE, "", |n| format!(r#""{n}":"a""#)),
            {
                let entries = filled_to(1 << 20, r#","managedFields":["#, managers, "]");
                config_map(BEFORE + entries.len(), &entries, |n| {
                    format!(r#""{n}":"b""#)
                })
            },
        ),
        put(
            "many managers with overlapping fields",
            CONFIG_MAPS,
            config_map(BEFORE, "", |n| format!(r#""{n}":"a""#)),
            {
                let entry = |n: usize| {
                    managers(n)
                        .replace(&format!(r#""f:{n}":{{}}"#), r#""f:1":{},"f:2":{},"f:3":{}"#)
                };
                let entries = filled_to(1 << 20, r#","managedFields":["#, entry, "]");
                config_map(BEFORE + entries.len(), &entries, |n| {
                    format!(r#""{n}":"b""#)
                })
            },
        ),
        put(
            "tolerations of a pod",
            PODS,
            pod(""),
            pod(r#","tolerationSeconds":1"#),
        ),
    ]
}
