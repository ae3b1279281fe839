//! YAML bodies of creations.

use crate::support::{BODY_BYTES, CONFIG_MAPS, Case, GADGETS};

fn make(name: &'static str, list: &str, head: &str, part: impl Fn(usize) -> String) -> Case {
    let mut text = head.to_owned();
    let mut number = 0;
    loop {
        let part = part(number);
        if text.len() + part.len() > BODY_BYTES {
            break;
        }
        text.push_str(&part);
        number += 1;
    }
    Case::create(name, list, text).of_type("application/yaml")
}

pub(crate) fn cases() -> Vec<Case> {
    let config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n";
    let data = |name, part: &dyn Fn(usize) -> String| make(name, CONFIG_MAPS, config_map, part);
    let gadget = "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: a}\nspec:\n  any:\n";
    let any = |name, head: &str, part: &dyn Fn(usize) -> String| {
        make(name, GADGETS, &format!("{gadget}{head}"), part)
    };
    let bomb: String = (1..60)
        .map(|n| format!("    a{n}: &a{n} [*a{p}, *a{p}, *a{p}, *a{p}]\n", p = n - 1))
        .collect();
    vec![
        data("many keys", &|n| format!("  k{n}: v\n")),
        data("one key many times", &|_| "  k: v\n".to_owned()),
        data("keys twice", &|n| format!("  k{}: v\n", n / 2)),
        data("quoted", &|n| {
            format!("  \"k\\u0041{n}\": \"\\u00e9\\n\"\n")
        }),
        data("folded", &|n| format!("  k{n}: >-\n    a\n    b\n\n")),
        data("comments", &|n| format!("  # {n}\n")),
        data("empty lines", &|_| "\n".to_owned()),
        data("tags", &|n| format!("  k{n}: !!str 1\n")),
        data("one long plain scalar", &|n| {
            if n == 0 {
                "  k: a\n".to_owned()
            } else {
                "   b\n".to_owned()
            }
        }),
        data("anchors", &|n| format!("  k{n}: &a{n} v\n")),
        data("aliases", &|n| {
            if n == 0 {
                "  k: &a v\n".to_owned()
            } else {
                format!("  k{n}: *a\n")
            }
        }),
        any(
            "aliases of a list",
            "    a: &a [1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0]\n    b:\n",
            &|_| "    - *a\n".to_owned(),
        ),
        any(
            "aliases of aliases",
            &format!("    a0: &a0 [1,1,1,1]\n{bomb}"),
            &|n| format!("    k{n}: 1\n"),
        ),
        any("merge keys", "    a: &a {x: 1, y: 2}\n    b:\n", &|_| {
            "    - <<: *a\n".to_owned()
        }),
        any("long sequence", "    a:\n", &|_| "    - 1\n".to_owned()),
        any("flow sequence", "    a: [", &|_| "1,".to_owned()),
        any("deep flow", "    a: ", &|_| "[".to_owned()),
        any("deep flow mappings", "    a: ", &|_| "{a: ".to_owned()),
        any("deep blocks", "    a:\n", &|n| {
            format!("{}- a:\n", " ".repeat(n % 1500 + 5))
        }),
        any("nested dashes", "    a:\n    ", &|_| "- ".to_owned()),
        any("question marks", "    a:\n    ", &|_| "? ".to_owned()),
        any("numbers", "    a:\n", &|n| {
            format!("    - {}\n", "9".repeat(n % 300 + 1))
        }),
        make("documents", CONFIG_MAPS, "", |_| "---\na: 1\n".to_owned()),
        make("markers", CONFIG_MAPS, "", |_| "---\n".to_owned()),
        make("unclosed quote", CONFIG_MAPS, "a: \"", |_| "\n ".to_owned()),
        make("tabs", CONFIG_MAPS, "a:", |_| "\t".to_owned()),
        make("colons", CONFIG_MAPS, "", |_| "a: ".to_owned()),
        make("many lines before an error", CONFIG_MAPS, "", |n| {
            if n == 100_000 {
                "]\n".to_owned()
            } else {
                format!("k{n}: v\n")
            }
        }),
    ]
}
