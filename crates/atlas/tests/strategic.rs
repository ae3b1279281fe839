//! Strategic merge patch against what upstream makes of the same patches.

use windlass_atlas::{Atlas, Type, strategic_merge};
use windlass_core::{Doc, Gvk};

/// Kind, original, patch, and the result or an error behind an exclamation mark. Made by
/// `cargo xtask atlas`.
const GOLDENS: &str = include_str!("data/strategic.txt");

fn kind(said: &str) -> &'static Type {
    let (api_version, kind) = said.split_once(' ').expect("a kind");
    let gvk = Gvk::parse(api_version, kind).expect("a kind");
    Atlas::kind(&gvk).expect("a built-in kind")
}

fn parse(text: &str) -> Doc {
    Doc::parse(text.as_bytes()).expect("upstream's JSON is JSON")
}

#[test]
fn patches_merge_as_upstream_merges_them() {
    let goldens: Vec<&str> = GOLDENS.lines().collect();
    assert!(goldens.len() >= 200, "only {} patches", goldens.len());
    let faults: Vec<String> = goldens.iter().filter_map(|line| fault(line)).collect();
    let shown = faults.iter().take(5).cloned().collect::<String>();
    assert!(
        faults.is_empty(),
        "{} patches differ\n{shown}",
        faults.len()
    );
}

/// The difference between the result of one patch and upstream's.
fn fault(line: &str) -> Option<String> {
    let parts: Vec<&str> = line.split('\t').collect();
    let [said, original, patch, expected] = parts[..] else {
        panic!("four parts: {line}");
    };
    let merged = match strategic_merge(kind(said), &parse(original), &parse(patch)) {
        Ok(merged) => merged.to_string(),
        Err(error) => format!("!{}", error.to_string().replace('\n', "\\n")),
    };
    let expected = match expected.strip_prefix('!') {
        Some(_) => expected.to_owned(),
        None => parse(expected).to_string(),
    };
    (merged != expected)
        .then(|| format!("{said}\n  {original}\n  {patch}\n- {expected}\n+ {merged}\n"))
}
