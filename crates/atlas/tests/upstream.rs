//! The golden objects that upstream keeps beside its types: protobuf and JSON of every kind with
//! every field set. They are read from the Go module cache and are no part of this repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use windlass_atlas::{Atlas, ProtobufEncoder, decode_protobuf, decode_protobuf_as, unknown_fields};
use windlass_core::{Doc, Gvk};

/// The Go module that pins the types.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../xtask/atlas");
/// The releases whose objects the module keeps, and how many of their kinds are in the table. The
/// older ones prove that objects of older clients are read.
const RELEASES: [(&str, usize); 4] = [
    ("HEAD", 91),
    ("v1.35.0", 89),
    ("v1.34.0", 89),
    ("v1.33.0", 84),
];

/// Kinds that are written as JSON: one is no kind of its own, the other's object has `null` in a
/// map.
const NOT_IN_PROTOBUF: [&str; 2] = ["WatchEvent", "PodDisruptionBudget"];

#[test]
fn golden_objects_of_upstream_decode_to_the_same_json() {
    let Some(types) = module_dir() else {
        let is_required = std::env::var_os("WINDLASS_REQUIRE_ENVTEST").is_some_and(|it| it == "1");
        assert!(!is_required, "k8s.io/api cannot be had: is Go installed?");
        windlass_envtest::skip(&"upstream's golden objects need Go and the module k8s.io/api");
        return;
    };
    for (release, kinds) in RELEASES {
        let compared = compare_release(&types.join("testdata").join(release));
        println!("{release}: {compared} kinds decode to the same JSON");
        assert_eq!(compared, kinds, "{release}");
    }
}

/// The directory of the module k8s.io/api, downloaded if it must be.
fn module_dir() -> Option<PathBuf> {
    let go = |arguments: &[&str]| {
        let output = Command::new("go")
            .args(arguments)
            .current_dir(MODULE)
            .output()
            .ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8(output.stdout).ok())?
    };
    let find = || {
        let dir = go(&["list", "-m", "-f", "{{.Dir}}", "k8s.io/api"])?;
        Some(PathBuf::from(dir.trim())).filter(|dir| dir.is_dir())
    };
    find().or_else(|| {
        // Only where it is asked for: plain tests do not reach out.
        std::env::var_os("WINDLASS_REQUIRE_ENVTEST")?;
        go(&["mod", "download", "k8s.io/api"])?;
        find()
    })
}

fn compare_release(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).expect("the golden objects are in the module");
    let mut names: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    names.sort();
    names.iter().filter(|name| compare(name)).count()
}

/// Compares one object, if it is protobuf of a kind in the table.
fn compare(path: &Path) -> bool {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    let Some(gvk) = name.strip_suffix(".pb").and_then(gvk) else {
        return false;
    };
    let is_stable = !gvk.version().contains("alpha") && !gvk.version().contains("beta");
    if !is_stable || name.contains("after_roundtrip") {
        return false;
    }
    let kind = Atlas::kind(&gvk).unwrap_or_else(|| panic!("{name} is not in the table"));
    let body = std::fs::read(path).expect("the object");
    let decoded = decode_protobuf_as(&body, &gvk).unwrap_or_else(|error| panic!("{name}: {error}"));
    let json = Doc::parse(&std::fs::read(expected(path)).expect("the JSON")).expect("JSON");
    let difference = json.diff(&decoded.doc);
    assert!(difference.is_empty(), "{}: {difference:?}", path.display());
    assert_eq!(unknown_fields(kind, &json), [], "{name}");
    let mut encoded = Vec::new();
    match ProtobufEncoder::new().write(&json, &mut encoded) {
        true => {
            let decoded =
                decode_protobuf(&encoded).unwrap_or_else(|error| panic!("{name}: {error}"));
            let difference = json.diff(&decoded.doc);
            assert!(difference.is_empty(), "{}: {difference:?}", path.display());
        }
        false => assert!(NOT_IN_PROTOBUF.contains(&gvk.kind()), "{name}"),
    }
    true
}

/// The JSON beside the protobuf. Where a later release reads an old object differently, upstream
/// keeps a second file with what it reads.
fn expected(path: &Path) -> PathBuf {
    let after = path.with_extension("after_roundtrip.json");
    if after.exists() {
        after
    } else {
        path.with_extension("json")
    }
}

/// The kind that a file such as `apps.v1.Deployment` is named after.
fn gvk(name: &str) -> Option<Gvk> {
    let (rest, kind) = name.rsplit_once('.')?;
    let (group, version) = rest.rsplit_once('.')?;
    let api_version = match group {
        "core" => version.to_owned(),
        _ => format!("{group}/{version}"),
    };
    Gvk::parse(&api_version, kind).ok()
}
