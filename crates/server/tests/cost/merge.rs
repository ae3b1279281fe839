//! JSON merge patches.

use http::Method;

use crate::shapes::{config_map, filled, filled_to, gadget};
use crate::support::{BODY_BYTES, CONFIG_MAPS, Case, GADGETS, PODS};

fn patch(name: &'static str, list: &'static str, before: String, body: String) -> Case {
    Case {
        method: Method::PATCH,
        before: Some((list, before)),
        ..Case::create(name, &format!("{list}/a"), body)
    }
    .of_type("application/merge-patch+json")
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
    let any = |part: &str| gadget(&format!(r#"{{"any":{{"a":{part}}}}}"#));
    let chain = |depth: usize, leaf: &str| {
        format!("{}{leaf}{}", r#"{"a":"#.repeat(depth), "}".repeat(depth))
    };
    let data = |part: &dyn Fn(usize) -> String| filled(r#"{"data":{"#, part, "}}");
    let owner = |n: usize| format!(r#"{{"apiVersion":"v1","kind":"P","name":"n","uid":"{n}"}}"#);
    let pod = r#"{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    vec![
        patch(
            "new keys",
            CONFIG_MAPS,
            full(),
            data(&|n| format!(r#""new-{n}":"""#)),
        ),
        patch(
            "keys that go",
            CONFIG_MAPS,
            full(),
            data(&|n| format!(r#""{n}":null"#)),
        ),
        patch(
            "keys that change",
            CONFIG_MAPS,
            full(),
            data(&|n| format!(r#""{n}":"x""#)),
        ),
        patch(
            "one key many times",
            CONFIG_MAPS,
            full(),
            data(&|_| r#""a":"x""#.to_owned()),
        ),
        patch(
            "unknown fields",
            CONFIG_MAPS,
            full(),
            filled("{", |n| format!(r#""{n}":0"#), "}"),
        ),
        patch(
            "long array",
            GADGETS,
            any("[]"),
            filled(r#"{"spec":{"any":{"a":["#, |_| "1".to_owned(), "]}}}"),
        ),
        patch(
            "deep",
            GADGETS,
            any("{}"),
            filled(
                r#"{"spec":{"any":{"a":{"#,
                |n| format!(r#""{n}":{}"#, chain(150, "1")),
                "}}}}",
            ),
        ),
        patch(
            "deep nulls",
            GADGETS,
            any("{}"),
            filled(
                r#"{"spec":{"any":{"a":{"#,
                |n| format!(r#""{n}":{}"#, chain(150, "null")),
                "}}}}",
            ),
        ),
        patch(
            "deep into what is there",
            GADGETS,
            any(&chain(150, "1")),
            filled(
                &format!(r#"{{"spec":{{"any":{{"a":{}{{"#, r#"{"a":"#.repeat(149)),
                |n| format!(r#""{n}":0"#),
                &format!("}}{}}}}}}}", "}".repeat(149)),
            ),
        ),
        patch(
            "huge string",
            CONFIG_MAPS,
            full(),
            format!(r#"{{"data":{{"a":"{}"}}}}"#, "x".repeat(BODY_BYTES - 50)),
        ),
        patch(
            "owner references",
            CONFIG_MAPS,
            full(),
            filled(r#"{"metadata":{"ownerReferences":["#, owner, "]}}"),
        ),
        patch(
            "finalizers",
            CONFIG_MAPS,
            full(),
            filled(
                r#"{"metadata":{"finalizers":["#,
                |n| format!(r#""a/{n}""#),
                "]}}",
            ),
        ),
        patch(
            "labels",
            CONFIG_MAPS,
            full(),
            filled(
                r#"{"metadata":{"labels":{"#,
                |n| format!(r#""{n}":"""#),
                "}}}",
            ),
        ),
        patch(
            "containers",
            PODS,
            pod.to_owned(),
            filled(
                r#"{"spec":{"containers":["#,
                |n| format!(r#"{{"name":"{n}","image":"i"}}"#),
                "]}}",
            ),
        ),
        patch(
            "list map",
            GADGETS,
            gadget(&filled_to(
                900 << 10,
                r#"{"list":["#,
                |n| format!(r#"{{"name":"{n}"}}"#),
                "]}",
            )),
            filled(
                r#"{"spec":{"list":["#,
                |n| format!(r#"{{"name":"{n}"}}"#),
                "]}}",
            ),
        ),
        patch(
            "numbers of many digits",
            GADGETS,
            any("[]"),
            filled(r#"{"spec":{"any":{"a":["#, |_| "1".repeat(400), "]}}}"),
        ),
    ]
}
