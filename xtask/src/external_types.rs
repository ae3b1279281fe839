//! `cargo xtask external-types`: the crates whose types stand in the public API.
//!
//! A type of another crate in a public signature makes that crate's major version part of ours. So
//! each library that the facade `windlass` re-exports has a list of such crates in [`ALLOWED`];
//! another crate, and an entry that is not needed any more, fail. The public API is read from the
//! JSON output of rustdoc, which the stable toolchain has behind a flag: hence the wrapper
//! `rustdoc-json.sh`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};
use serde_json::Value;

const USAGE: &str = "usage: cargo xtask external-types";
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Crates that any public API may name.
const STANDARD: [&str; 3] = ["alloc", "core", "std"];

/// For each crate of the facade the crates whose types it shows, besides others of the facade.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "windlass",
        // Re-exported, so that users need not find the versions that fit.
        &["k8s_openapi", "kube_core", "kube_derive", "serde_json"],
    ),
    (
        "windlass_cache",
        &["prometheus_client", "serde_core", "tokio", "windlass_wire"],
    ),
    (
        "windlass_client",
        &[
            "bytes",
            "http",
            "http_body",
            "http_body_util",
            "k8s_openapi",
            "kube_core",
            "prometheus_client",
            "serde_core",
            "tower_layer",
            "tower_service",
            // Re-exported by the client.
            "windlass_wire",
        ],
    ),
    ("windlass_core", &["serde_core"]),
    ("windlass_queue", &["tokio"]),
    (
        "windlass_runtime",
        &[
            // The flags of `Manager::from_flags`.
            "clap_builder",
            "http",
            "prometheus_client",
            "serde_core",
            "tokio",
            "tower_layer",
            "tower_service",
            "windlass_wire",
        ],
    ),
    (
        "windlass_server",
        &["bytes", "http", "http_body", "rcgen", "tower_service"],
    ),
    (
        "windlass_testing",
        &["http", "tokio", "tower_layer", "tower_service"],
    ),
];

/// Crates of the facade that may show any crate of the workspace: users start and ask them, and do
/// not build on their types.
const OPEN: [&str; 2] = ["windlass_server", "windlass_testing"];

/// Prints every type that is not allowed, and fails if there is one.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    ensure!(arguments.is_empty(), USAGE);
    let directory = document()?;
    let facade = facade_crates(&fs::read_to_string(
        Path::new(ROOT).join("crates/windlass/src/lib.rs"),
    )?);
    let mut breaches = Vec::new();
    for name in &facade {
        let path = directory.join(format!("{name}.json"));
        let text = fs::read(&path).with_context(|| path.display().to_string())?;
        let api: Value = serde_json::from_slice(&text).context("rustdoc's JSON")?;
        let shown = shown_crates(&api);
        ensure!(
            !shown.is_empty(),
            "{}: not one type was found",
            path.display()
        );
        breaches.extend(compare(name, &shown, &facade));
    }
    for breach in &breaches {
        eprintln!("{breach}");
    }
    println!("{} crates, {} breaches", facade.len(), breaches.len());
    Ok(if breaches.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Writes the JSON of all libraries, and returns its directory. All crates at once, because one by
/// one they would want other features of their dependencies than the tests do. Libraries only: the
/// binary has the name of the facade, and would write the same file.
fn document() -> anyhow::Result<PathBuf> {
    let status = Command::new("cargo")
        .args([
            "doc",
            "--locked",
            "--quiet",
            "--workspace",
            "--no-deps",
            "--lib",
        ])
        .env("RUSTDOC", Path::new(ROOT).join("xtask/rustdoc-json.sh"))
        .env("RUSTDOCFLAGS", "-Z unstable-options --output-format json")
        .current_dir(ROOT)
        .status()
        .context("cannot run cargo doc")?;
    ensure!(status.success(), "cargo doc failed");
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(ROOT).join("target"), PathBuf::from);
    Ok(target.join("doc"))
}

/// The facade and the crates that it re-exports: `pub use windlass_client as client;`.
fn facade_crates(library: &str) -> BTreeSet<String> {
    let lines = library.lines();
    let exported = lines.filter_map(|line| {
        let path = line.strip_prefix("pub use ")?;
        let (name, _) = path.split_once(" as ")?;
        name.starts_with("windlass_").then(|| name.to_owned())
    });
    exported.chain(["windlass".to_owned()]).collect()
}

/// The crates whose types and traits stand in the public API, with one such type each.
fn shown_crates(api: &Value) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::new();
    let items = api["index"].as_object().into_iter().flatten();
    for (_, item) in items.filter(|(_, item)| item["crate_id"] == 0) {
        let implementation = &item["inner"]["impl"];
        // Every type has those: `impl<T> From<T> for T`, `Send`.
        let is_implied =
            !implementation["blanket_impl"].is_null() || implementation["is_synthetic"] == true;
        if is_implied {
            continue;
        }
        let mut ids = BTreeSet::new();
        referenced(&item["inner"], &mut ids);
        for id in ids {
            let path = &api["paths"][id.to_string()];
            let of = path["crate_id"].to_string();
            let name = api["external_crates"][of]["name"].as_str();
            if let Some(name) = name.filter(|name| !STANDARD.contains(name)) {
                let words = path["path"].as_array().into_iter().flatten();
                let words: Vec<&str> = words.filter_map(Value::as_str).collect();
                shown.insert(name.to_owned(), words.join("::"));
            }
        }
    }
    shown
}

/// The ids of all types, traits and re-exports in one item.
fn referenced(value: &Value, ids: &mut BTreeSet<u64>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                if matches!(key.as_str(), "resolved_path" | "trait" | "use") {
                    ids.extend(member["id"].as_u64());
                }
                referenced(member, ids);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| referenced(item, ids)),
        _ => {}
    }
}

fn compare(name: &str, shown: &BTreeMap<String, String>, facade: &BTreeSet<String>) -> Vec<String> {
    let allowed = ALLOWED
        .iter()
        .find(|(of, _)| *of == name)
        .map_or(&[][..], |(_, allowed)| allowed);
    let is_allowed = |shown: &String| {
        let is_open = OPEN.contains(&name) && shown.starts_with("windlass_");
        is_open || facade.contains(shown) || allowed.contains(&shown.as_str())
    };
    let leaked = shown
        .iter()
        .filter(|(shown, _)| !is_allowed(shown))
        .map(|(_, example)| {
            format!("{name}: the public API names {example}; hide it, or allow its crate in xtask/src/external_types.rs")
        });
    let unused = allowed
        .iter()
        .filter(|allowed| !shown.contains_key(**allowed))
        .map(|allowed| {
            format!("{name}: {allowed} is allowed in xtask/src/external_types.rs and not used")
        });
    leaked.chain(unused).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// rustdoc's JSON of a crate with one function that takes a type of `foreign`.
    fn api(foreign: &str) -> Value {
        json!({
            "index": {
                "1": { "crate_id": 0, "inner": { "function": { "sig": { "inputs": [
                    ["at", { "resolved_path": { "path": "T", "id": 7, "args": null } }],
                ] } } } },
                "2": { "crate_id": 0, "inner": { "impl": {
                    "blanket_impl": { "generic": "T" }, "trait": { "path": "B", "id": 8 },
                } } },
            },
            "paths": {
                "7": { "crate_id": 3, "path": [foreign, "time", "T"] },
                "8": { "crate_id": 4, "path": ["either", "B"] },
            },
            "external_crates": { "3": { "name": foreign }, "4": { "name": "either" } },
        })
    }

    #[test]
    fn a_foreign_type_in_a_signature_is_found_and_a_blanket_impl_is_none() {
        let shown = shown_crates(&api("tokio"));
        assert_eq!(
            shown,
            BTreeMap::from([("tokio".to_owned(), "tokio::time::T".to_owned())])
        );
        assert!(shown_crates(&api("core")).is_empty());
    }

    #[test]
    fn a_crate_that_is_not_allowed_fails_and_so_does_an_unused_entry() {
        let facade = facade_crates("pub use windlass_core as core;\npub use k8s_openapi;");
        let breaches = |foreign| compare("windlass_queue", &shown_crates(&api(foreign)), &facade);
        assert!(breaches("tokio").is_empty());
        let leaked = breaches("windlass_atlas");
        assert!(leaked[0].contains("windlass_atlas::time::T"), "{leaked:?}");
        assert!(leaked[1].contains("tokio is allowed"), "{leaked:?}");
        assert_eq!(
            breaches("windlass_core").len(),
            1,
            "of the facade; tokio is not used"
        );
    }
}
