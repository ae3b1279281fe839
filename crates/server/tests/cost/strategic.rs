//! Strategic merge patches.

use http::Method;

use crate::shapes::{config_map, filled, filled_to};
use crate::support::{CONFIG_MAPS, Case, PODS};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn patch(name: &'static str, list: &'static str, before: String, body: String) -> Case {
    Case {
        method: Method::PATCH,
        before: Some((list, before)),
        ..Case::create(name, &format!("{list}/a"), body)
    }
    .of_type("application/strategic-merge-patch+json")
}

/// A deployment with many variables.
fn deployment() -> String {
    filled_to(
        900 << 10,
        r#"{"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","env":["#,
        |n| format!(r#"{{"name":"E{n}"}}"#),
        "]}]}}}}",
    )
}

/// A patch of the container of the deployment.
fn container(open: &str, part: &dyn Fn(usize) -> String, close: &str) -> String {
    let head = r#"{"spec":{"template":{"spec":{"containers":[{"name":"c","#;
    filled(
        &format!("{head}{open}"),
        part,
        &format!("{close}}}]}}}}}}}}"),
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
    let finalizers = || {
        let open = r#"{"metadata":{"name":"a","finalizers":["#;
        filled_to(900 << 10, open, |n| format!(r#""a/{n}""#), "]}}")
    };
    let item = |n: usize| format!(r#"{{"name":"E{n}"}}"#);
    let env = |name, open: &str, part: &dyn Fn(usize) -> String, close: &str| {
        patch(
            name,
            DEPLOYMENTS,
            deployment(),
            container(open, part, close),
        )
    };
    let half = |n: usize| match n {
        0 => format!(
            r#""env":[{}]"#,
            (0..50_000).map(item).collect::<Vec<_>>().join(",")
        ),
        1 => format!(
            r#""$setElementOrder/env":[{}]"#,
            (0..50_000).map(item).collect::<Vec<_>>().join(",")
        ),
        _ => "x".repeat(4 << 20),
    };
    let pod = r#"{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    vec![
        patch(
            "new keys",
            CONFIG_MAPS,
            full(),
            filled(r#"{"data":{"#, |n| format!(r#""new-{n}":"""#), "}}"),
        ),
        patch(
            "keys that go",
            CONFIG_MAPS,
            full(),
            filled(r#"{"data":{"#, |n| format!(r#""{n}":null"#), "}}"),
        ),
        patch(
            "replaced",
            CONFIG_MAPS,
            full(),
            filled(
                r#"{"data":{"$patch":"replace","#,
                |n| format!(r#""{n}":"x""#),
                "}}",
            ),
        ),
        patch(
            "retained keys",
            CONFIG_MAPS,
            full(),
            filled(
                r#"{"data":{"$retainKeys":["#,
                |n| format!(r#""{n}""#),
                "]}}",
            ),
        ),
        patch(
            "unknown fields",
            CONFIG_MAPS,
            full(),
            filled("{", |n| format!(r#""{n}":0"#), "}"),
        ),
        patch(
            "unknown directives",
            CONFIG_MAPS,
            full(),
            filled("{", |n| format!(r#""$setElementOrder/{n}":[]"#), "}"),
        ),
        env("list items that are there", r#""env":["#, &item, "]"),
        env(
            "new list items",
            r#""env":["#,
            &|n| format!(r#"{{"name":"N{n}"}}"#),
            "]",
        ),
        env(
            "list items in reverse",
            r#""env":["#,
            &|n| item(200_000_usize.saturating_sub(n)),
            "]",
        ),
        env("one list item many times", r#""env":["#, &|_| item(1), "]"),
        env(
            "deletions",
            r#""env":["#,
            &|n| format!(r#"{{"name":"E{n}","$patch":"delete"}}"#),
            "]",
        ),
        env(
            "deletions of one",
            r#""env":["#,
            &|_| r#"{"name":"E1","$patch":"delete"}"#.to_owned(),
            "]",
        ),
        env(
            "replacements",
            r#""env":["#,
            &|_| r#"{"$patch":"replace"}"#.to_owned(),
            "]",
        ),
        env(
            "items without keys",
            r#""env":["#,
            &|_| "{}".to_owned(),
            "]",
        ),
        env(
            "items of two sorts",
            r#""env":["#,
            &|n| if n % 2 == 0 { item(n) } else { "1".to_owned() },
            "]",
        ),
        env("order", r#""$setElementOrder/env":["#, &item, "]"),
        env(
            "order in reverse",
            r#""$setElementOrder/env":["#,
            &|n| item(200_000_usize.saturating_sub(n)),
            "]",
        ),
        env("order and items", "", &half, ""),
        env(
            "order and another item",
            r#""env":[{"name":"Z"}],"$setElementOrder/env":["#,
            &item,
            "]",
        ),
        env(
            "many orders",
            "",
            &|n| format!(r#""$setElementOrder/a{n}":[]"#),
            "",
        ),
        env(
            "primitive deletions",
            r#""$deleteFromPrimitiveList/args":["#,
            &|n| format!(r#""a{n}""#),
            "]",
        ),
        patch(
            "finalizers",
            CONFIG_MAPS,
            finalizers(),
            filled(
                r#"{"metadata":{"finalizers":["#,
                |n| format!(r#""b/{n}""#),
                "]}}",
            ),
        ),
        patch(
            "finalizers that are there",
            CONFIG_MAPS,
            finalizers(),
            filled(
                r#"{"metadata":{"finalizers":["#,
                |n| format!(r#""a/{n}""#),
                "]}}",
            ),
        ),
        patch(
            "finalizers that go",
            CONFIG_MAPS,
            finalizers(),
            filled(
                r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["#,
                |n| format!(r#""a/{n}""#),
                "]}}",
            ),
        ),
        patch(
            "order of finalizers",
            CONFIG_MAPS,
            finalizers(),
            filled(
                r#"{"metadata":{"$setElementOrder/finalizers":["#,
                |n| format!(r#""a/{n}""#),
                "]}}",
            ),
        ),
        patch(
            "owner references",
            CONFIG_MAPS,
            full(),
            filled(
                r#"{"metadata":{"ownerReferences":["#,
                |n| format!(r#"{{"apiVersion":"v1","kind":"P","name":"n","uid":"{n}"}}"#),
                "]}}",
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
            "wrong type at the end",
            CONFIG_MAPS,
            full(),
            filled(r#"{"data":{"#, |n| format!(r#""{n}":1"#), "}}"),
        ),
    ]
}
