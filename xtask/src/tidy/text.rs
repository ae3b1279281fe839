//! Words that must not stand in the sources.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A word, why it is not wanted, and the files in which it is.
struct Rule {
    word: &'static str,
    why: &'static str,
    exempt: &'static [&'static str],
}

/// Where real time is the subject matter.
const CLOCKS: &[&str] = &[
    "crates/core/src/env.rs",
    "crates/envtest/",
    "bench/",
    "xtask/",
];

const RULES: &[Rule] = &[
    Rule {
        word: "std::time::Instant",
        why: "time comes from `Env` or tokio",
        exempt: CLOCKS,
    },
    Rule {
        word: "SystemTime::now",
        why: "time comes from `Env`",
        exempt: CLOCKS,
    },
    Rule {
        word: "thread::sleep",
        why: "wait for a condition",
        exempt: &["crates/envtest/", "bench/", "xtask/"],
    },
    Rule {
        word: "Uuid::new_v4",
        why: "ids come from `Env`",
        exempt: &[],
    },
    Rule {
        word: "rand::rng",
        why: "randomness comes from `Env`",
        exempt: &[],
    },
    Rule {
        word: "rand::random",
        why: "randomness comes from `Env`",
        exempt: &[],
    },
    Rule {
        word: "#[ignore",
        why: "a test that does not run asserts nothing",
        exempt: &[],
    },
    Rule {
        word: "todo!(",
        why: "finish it, or say \"not yet\" in README",
        exempt: &[],
    },
    Rule {
        word: "unimplemented!(",
        why: "finish it, or say \"not yet\" in README",
        exempt: &[],
    },
    Rule {
        word: "dbg!(",
        why: "left over from debugging",
        exempt: &[],
    },
];

/// This file spells out what it looks for.
const SELF: &str = "xtask/src/tidy/text.rs";

pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut breaches = Vec::new();
    for top in ["crates", "bench", "xtask"] {
        for path in sources(&root.join(top))? {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let name = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            if name != SELF {
                breaches.extend(check_file(&name, &text));
            }
        }
    }
    Ok(breaches)
}

/// All Rust files below a directory, build output left out.
pub(super) fn sources(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn check_file(name: &str, text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line));
    lines
        .flat_map(|(number, line)| check_line(name, number, line))
        .collect()
}

fn check_line(name: &str, number: usize, line: &str) -> Vec<String> {
    let broken = RULES.iter().filter(|rule| {
        line.contains(rule.word) && !rule.exempt.iter().any(|exempt| name.starts_with(exempt))
    });
    let mut breaches: Vec<String> = broken
        .map(|rule| format!("{name}:{number}: `{}`: {}", rule.word, rule.why))
        .collect();
    if is_stray_todo(line) {
        breaches.push(format!(
            "{name}:{number}: a TODO needs the number of an issue: TODO(#12)"
        ));
    }
    breaches
}

fn is_stray_todo(line: &str) -> bool {
    ["TODO", "FIXME", "XXX"].iter().any(|mark| {
        line.split_once(mark).is_some_and(|(before, after)| {
            let is_comment = before.contains("//");
            let has_number = after
                .strip_prefix("(#")
                .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
            is_comment && !has_number
        })
    })
}

#[test]
fn forbidden_words_are_found_where_they_are_not_exempt() {
    assert_eq!(
        check_file(
            "crates/queue/src/a.rs",
            "fn f() {\n    thread::sleep(x);\n}"
        )
        .len(),
        1
    );
    assert!(check_file("bench/src/a.rs", "thread::sleep(x);").is_empty());
    assert!(check_file("crates/queue/src/a.rs", "tokio::time::Instant::now()").is_empty());
}

#[test]
fn a_todo_needs_a_number() {
    assert!(is_stray_todo("// TODO: later"));
    assert!(is_stray_todo("x(); // FIXME(#)"));
    assert!(!is_stray_todo("// TODO(#12): later"));
    assert!(!is_stray_todo("let TODO = 1;"));
}
