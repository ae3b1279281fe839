//! Every JSON pointer in the sources exists in the types of Kubernetes.
//!
//! `pod.at("/spec/nodeNmae")` compiles, and reads null. So each string literal of our crates that
//! is a pointer ([`rules::is_pointer`]) must be a chain of fields of the built-in types
//! ([`chains::exists`]). A misspelt segment fails, wherever it stands. Where the name of the
//! variable tells the type, the chain starts there; anywhere else it may start at any type, because
//! code reads a pod spec or a container on its own as well.

mod chains;
mod literals;
mod rules;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use literals::literals;

/// Crates whose tests make up documents of their own. Their sources are read, their tests are not.
const INVENTED: &[&str] = &["atlas", "cel", "core", "envtest", "queue", "store"];

/// Seeds of the fuzz targets are wrong on purpose.
const LEFT_OUT: &[&str] = &["fuzz"];

/// The least number of pointers that must be found. Without it a broken reader would pass.
const POINTERS_MIN: usize = 4_000;

/// The result of reading one source file.
#[derive(Default)]
struct Report {
    pointers: usize,
    /// The wrong pointers, each with its line.
    wrong: Vec<String>,
    /// The pointers of [`rules::untyped`] that were met.
    untyped: BTreeSet<&'static str>,
}

fn read(name: &str, source: &str) -> Report {
    let mut report = Report::default();
    let found = literals(source).unwrap_or_else(|error| panic!("{name}: {error}"));
    for literal in found.iter().filter(|literal| rules::is_pointer(literal)) {
        report.pointers += 1;
        let pointer = literal.text.as_str();
        let untyped = rules::untyped().find(|(_, prefix)| is_below(pointer, prefix));
        if let Some((_, prefix)) = untyped {
            report.untyped.insert(prefix);
            continue;
        }
        let types = rules::start_types(literal.receiver.as_deref());
        if !chains::exists(pointer, &types) {
            let of = match &literal.receiver {
                Some(variable) if chains::exists(pointer, &rules::start_types(None)) => {
                    format!(" that `{variable}` stands for")
                }
                _ => String::new(),
            };
            let line = literal.line;
            report.wrong.push(format!(
                "{name}:{line}: {pointer:?} is no field of a type{of}"
            ));
        }
    }
    report
}

fn is_below(pointer: &str, prefix: &str) -> bool {
    pointer
        .strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// All Rust files of a crate whose pointers count.
fn sources(of: &Path, found: &mut Vec<PathBuf>, with_tests: bool) {
    for entry in fs::read_dir(of).expect("a directory of the workspace") {
        let path = entry.expect("an entry of the workspace").path();
        if !with_tests && path.file_stem().is_some_and(|name| name == "tests") {
            continue;
        }
        if path.is_dir() {
            sources(&path, found, with_tests);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_pointer_in_the_sources_exists_in_the_types() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("crates");
    let mut files = Vec::new();
    for entry in fs::read_dir(crates).expect("crates") {
        let path = entry.expect("a crate").path();
        let is_in = |names: &[&str]| names.iter().any(|name| path.ends_with(name));
        if !is_in(LEFT_OUT) {
            sources(&path, &mut files, !is_in(INVENTED));
        }
    }
    files.sort();
    let mut all = Report::default();
    for file in files {
        let source = fs::read_to_string(&file).expect("a source file");
        let name = file
            .strip_prefix(crates)
            .unwrap_or(&file)
            .display()
            .to_string();
        let report = read(&name, &source);
        all.pointers += report.pointers;
        all.wrong.extend(report.wrong);
        all.untyped.extend(report.untyped);
    }
    for (document, pointer) in rules::untyped().filter(|(_, one)| !all.untyped.contains(one)) {
        let text = format!("rules.rs: {pointer:?} ({document}) is not used any more");
        all.wrong.push(text);
    }
    println!("{} pointers", all.pointers);
    assert!(all.wrong.is_empty(), "{}", all.wrong.join("\n"));
    assert!(all.pointers > POINTERS_MIN, "{} pointers", all.pointers);
}

/// The number of wrong pointers in a piece of code.
fn wrong(code: &str) -> usize {
    read("fixture", code).wrong.len()
}

#[test]
fn a_typo_in_any_segment_fails() {
    assert_eq!(
        wrong(r#"let name = object.at("/spec/template/spec/nodeName");"#),
        0
    );
    assert_eq!(
        wrong(r#"let name = object.at("/sepc/template/spec/nodeName");"#),
        1
    );
    assert_eq!(
        wrong(r#"let name = object.at("/spec/tempalte/spec/nodeName");"#),
        1
    );
    assert_eq!(
        wrong(r#"let name = object.at("/spec/template/spec/nodeNmae");"#),
        1
    );
    assert_eq!(
        wrong(r#"let name = object.at("/spec/nodeName/x");"#),
        1,
        "below a text"
    );
    assert_eq!(
        wrong("let name = object.at(\"/spec/\\\n    nodeNmae\");"),
        1,
        "over two lines"
    );
}

#[test]
fn a_typo_in_a_table_or_a_format_or_a_patch_fails() {
    assert_eq!(
        wrong(r#"const READ: [&str; 2] = ["/spec/nodeName", "/status/phsae"];"#),
        1
    );
    assert_eq!(wrong(r#"fn f() { differs(old, "/spec/tpye"); }"#), 1);
    assert_eq!(
        wrong(r#"let at = format!("/spec/containers/{index}/image");"#),
        0
    );
    assert_eq!(
        wrong(r#"let at = format!("/spec/containers/{index}/imgae");"#),
        1
    );
    let patch = |path| format!(r#"doc!([{{ "op": "add", "path": "{path}", "value": 1 }}]);"#);
    assert_eq!(wrong(&patch("/spec/replicas")), 0);
    assert_eq!(wrong(&patch("/spec/repliacs")), 1);
}

#[test]
fn lists_take_an_index_and_maps_any_key() {
    assert_eq!(wrong(r#"object.at("/spec/containers/0/name");"#), 0);
    assert_eq!(wrong(r#"object.at("/0/name");"#), 0, "a list of objects");
    assert_eq!(
        wrong(r#"object.at("/spec/containers/name");"#),
        1,
        "no index"
    );
    assert_eq!(
        wrong(r#"object.at("/metadata/labels/app.kubernetes.io~1name");"#),
        0
    );
    assert_eq!(
        wrong(r#"object.at("/metadata/labels/app/x");"#),
        1,
        "below a text"
    );
}

#[test]
fn a_variable_named_after_a_kind_is_checked_against_that_kind() {
    assert_eq!(wrong(r#"deployment.at("/spec/replicas");"#), 0);
    assert_eq!(wrong(r#"pod.at("/spec/replicas");"#), 1);
    assert_eq!(wrong(r#"self.pod.str_at("/spec/replicas");"#), 1);
    assert_eq!(wrong(r#"toleration.str_at("/tolerationSecond");"#), 1);
}

#[test]
fn urls_files_comments_and_values_are_no_pointers() {
    assert_eq!(
        wrong(r#"client.get("/api/v1/pods"); path.ends_with("/binding");"#),
        0
    );
    assert_eq!(wrong("/// Reads `\"/sepc\"`.\nfn f() {} // \"/sepc\""), 0);
    assert_eq!(wrong(r#"doc!({ "mountPath": "/cache" });"#), 0);
    assert_eq!(wrong(r#"[(PATCH, "/pods/one")]"#), 0);
}
