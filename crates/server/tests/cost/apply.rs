//! Server-side apply.

use http::Method;

use crate::shapes::{config_map, filled, filled_to, gadget};
use crate::support::{CONFIG_MAPS, Case, GADGETS};

fn apply(name: &'static str, list: &'static str, before: Option<String>, body: String) -> Case {
    Case {
        method: Method::PATCH,
        before: before.map(|before| (list, before)),
        ..Case::create(name, &format!("{list}/a?fieldManager=m&force=true"), body)
    }
    .of_type("application/apply-patch+yaml")
}

fn data(part: impl Fn(usize) -> String) -> String {
    config_map(&filled(r#","data":{"#, part, "}"))
}

/// A config map whose fields belong to somebody.
fn owned(operation: &str, many: bool) -> String {
    let entry = |n: usize, fields: &str| {
        format!(
            r#"{{"manager":"m{n}","operation":"{operation}","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{{"f:data":{{{fields}}}}}}}"#
        )
    };
    let fields = filled_to(300 << 10, "", |n| format!(r#""f:{n}":{{}}"#), "");
    let entries = match many {
        true => filled_to(700 << 10, "", |n| entry(n, &format!(r#""f:{n}":{{}}"#)), ""),
        false => entry(0, &fields).replace("\"m0\"", "\"m\""),
    };
    let open = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a","managedFields":[{entries}]}},"data":{{"#
    );
    filled_to(
        open.len() + (300 << 10),
        &open,
        |n| format!(r#""{n}":"a""#),
        "}}",
    )
}

pub(crate) fn cases() -> Vec<Case> {
    let full = || {
        config_map(&filled_to(
            900 << 10,
            r#","data":{"#,
            |n| format!(r#""{n}":"""#),
            "}",
        ))
    };
    let list = |bytes, kind: &str, part: &dyn Fn(usize) -> String| {
        gadget(&filled_to(bytes, &format!(r#"{{"{kind}":["#), part, "]}"))
    };
    let (part, whole) = (700 << 10, (3 << 20) - 4096);
    let item = |n: usize| format!(r#"{{"name":"{n}"}}"#);
    let backwards = |n: usize| item(300_000_usize.saturating_sub(n));
    let text = |n: usize| format!(r#""{n}""#);
    let chain = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    let no_force = |case: Case| Case {
        path: case.path.replace("&force=true", ""),
        ..case
    };
    let kubectl = |case: Case| Case {
        path: case
            .path
            .replace("fieldManager=m&force=true", "fieldManager=kubectl"),
        ..case
    };
    let deep_list = |leaf: &str, bytes| {
        let open = format!(r#"{{"any":{}{{"#, r#"{"a":"#.repeat(150));
        let close = format!("}}{}}}", "}".repeat(150));
        gadget(&filled_to(
            bytes,
            &open,
            |n| format!(r#""{n}":{leaf}"#),
            &close,
        ))
    };
    vec![
        apply(
            "new object of many keys",
            CONFIG_MAPS,
            None,
            data(|n| format!(r#""{n}":"""#)),
        ),
        apply(
            "new keys",
            CONFIG_MAPS,
            Some(full()),
            data(|n| format!(r#""new-{n}":"""#)),
        ),
        apply(
            "keys of another",
            CONFIG_MAPS,
            Some(full()),
            data(|n| format!(r#""{n}":"x""#)),
        ),
        no_force(apply(
            "conflicts",
            CONFIG_MAPS,
            Some(full()),
            data(|n| format!(r#""{n}":"x""#)),
        )),
        kubectl(apply(
            "conflicts of kubectl",
            CONFIG_MAPS,
            Some(full()),
            data(|n| format!(r#""{n}":"x""#)),
        )),
        no_force(apply(
            "deep conflicts",
            GADGETS,
            Some(deep_list("1", 500 << 10)),
            deep_list("2", whole),
        )),
        apply(
            "own keys that go",
            CONFIG_MAPS,
            Some(owned("Apply", false)),
            data(|n| format!(r#""other-{n}":"""#)),
        ),
        apply(
            "many managers",
            CONFIG_MAPS,
            Some(owned("Apply", true)),
            data(|n| format!(r#""{n}":"x""#)),
        ),
        apply(
            "many updating managers",
            CONFIG_MAPS,
            Some(owned("Update", false)),
            data(|n| format!(r#""{n}":"x""#)),
        ),
        apply(
            "one key many times",
            CONFIG_MAPS,
            Some(full()),
            data(|_| r#""a":"""#.to_owned()),
        ),
        apply(
            "unknown fields",
            CONFIG_MAPS,
            Some(full()),
            config_map(&filled(",", |n| format!(r#""{n}":0"#), "")),
        ),
        apply(
            "wrong values",
            CONFIG_MAPS,
            Some(full()),
            data(|n| format!(r#""{n}":1"#)),
        ),
        apply(
            "list map",
            GADGETS,
            Some(list(part, "list", &item)),
            list(whole, "list", &item),
        ),
        apply(
            "list map in reverse",
            GADGETS,
            Some(list(part, "list", &item)),
            list(whole, "list", &backwards),
        ),
        apply(
            "list map, other items",
            GADGETS,
            Some(list(part, "list", &item)),
            list(whole, "list", &|n| format!(r#"{{"name":"x{n}"}}"#)),
        ),
        apply(
            "list map, one key",
            GADGETS,
            Some(list(part, "list", &item)),
            list(whole, "list", &|_| item(1)),
        ),
        apply(
            "list map, no keys",
            GADGETS,
            Some(list(part, "list", &item)),
            list(whole, "list", &|_| "{}".to_owned()),
        ),
        apply(
            "set",
            GADGETS,
            Some(list(part, "set", &text)),
            list(whole, "set", &text),
        ),
        apply(
            "set in reverse",
            GADGETS,
            Some(list(part, "set", &text)),
            list(whole, "set", &|n| text(300_000_usize.saturating_sub(n))),
        ),
        apply(
            "set of one",
            GADGETS,
            Some(list(part, "set", &text)),
            list(whole, "set", &|_| text(1)),
        ),
        apply(
            "deep",
            GADGETS,
            None,
            gadget(&filled(
                r#"{"any":{"#,
                |n| format!(r#""{n}":{}"#, chain(150)),
                "}}",
            )),
        ),
        apply(
            "many fields far down",
            GADGETS,
            Some(deep_list("1", 500 << 10)),
            deep_list("2", whole),
        ),
        apply(
            "finalizers",
            CONFIG_MAPS,
            Some(full()),
            filled(
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","finalizers":["#,
                |n| format!(r#""a/{n}""#),
                "]}}",
            ),
        ),
        apply(
            "owner references",
            CONFIG_MAPS,
            Some(full()),
            filled(
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","ownerReferences":["#,
                |n| format!(r#"{{"apiVersion":"v1","kind":"P","name":"n","uid":"{n}"}}"#),
                "]}}",
            ),
        ),
        apply("YAML", CONFIG_MAPS, Some(full()), yaml(whole)),
        apply(
            "YAML with keys twice",
            CONFIG_MAPS,
            Some(full()),
            yaml(whole).replace("k1", "k2"),
        ),
        apply(
            "neither JSON nor YAML",
            CONFIG_MAPS,
            Some(full()),
            "[".repeat(whole),
        ),
    ]
}

fn yaml(bytes: usize) -> String {
    let mut text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n".to_owned();
    let mut number = 0;
    while text.len() + 32 < bytes {
        text.push_str(&format!("  k{number}: v\n"));
        number += 1;
    }
    text
}
