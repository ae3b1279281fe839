//! The names of generated claims.

use windlass_core::{Doc, names};

/// What the server leaves of a prefix before it appends the random end.
const PREFIX_LIMIT: usize = 57;
/// How many characters end a generated name.
const SUFFIX_LEN: usize = 5;

/// How generated claims are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// `<pod>-<entry>-` and five characters, as Kubernetes does today.
    #[default]
    Generated,
    /// `<pod>-<entry>`, as Kubernetes 1.26 did. A foreign claim of that name blocks the pod.
    Deterministic,
}

/// The part of a generated name before the random end. Long names are shortened in proportion, so
/// that something of both remains.
pub(super) fn prefix(pod: &str, entry: &str) -> String {
    let len = pod.len() + entry.len() + 2;
    if len <= PREFIX_LIMIT {
        return format!("{pod}-{entry}-");
    }
    format!("{}-{}", shortened(pod, len), shortened(entry, len))
}

/// A part of `text` in proportion, which does not end in a character that a dash may not follow.
fn shortened(text: &str, len: usize) -> &str {
    let end = text.floor_char_boundary(text.len() * PREFIX_LIMIT / len);
    text[..end].trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
}

/// The name of the claim for an entry of a pod.
///
/// The end of the name looks random and is not: it comes from the UID of the pod and the name of
/// the entry. A create that is repeated, after a crash or by a second controller, then meets the
/// claim that is already there.
pub(super) fn generated(pod: &Doc, entry: &str) -> String {
    let meta = pod.meta();
    let hash = fnv1a(meta.uid_str().bytes().chain([b'/']).chain(entry.bytes()));
    let bytes = hash.to_le_bytes().into_iter().take(SUFFIX_LEN);
    let suffix = names::safe_encode(&bytes.map(char::from).collect::<String>());
    prefix(meta.name(), entry) + &suffix
}

/// The name that Kubernetes 1.26 gave to the claim for an entry of a pod.
pub(super) fn deterministic(pod: &Doc, entry: &str) -> String {
    format!("{}-{entry}", pod.meta().name())
}

/// FNV-1a with 64 bits: short, without a seed, and the same everywhere.
fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    #[test]
    fn short_names_are_kept_and_long_ones_shortened_in_proportion() {
        assert_eq!(prefix("web", "gpu"), "web-gpu-");
        let long = prefix(&"p".repeat(63), &"c".repeat(63));
        assert_eq!(long, format!("{}-{}", "p".repeat(28), "c".repeat(28)));
        assert_eq!(long.len(), 57);
    }

    #[test]
    fn a_shortened_name_never_breaks_before_a_dash() {
        let pod = format!("{}.{}", "a".repeat(27), "b".repeat(35));
        let name = prefix(&pod, &"c".repeat(63));
        assert!(name.starts_with(&format!("{}-", "a".repeat(27))), "{name}");
        assert_eq!(names::dns1123_subdomain(&name), Vec::<String>::new());
    }

    #[test]
    fn one_pod_and_entry_have_one_name_and_another_life_another() {
        let pod = |uid: &str| doc!({ "metadata": { "name": "web", "uid": uid } });
        let name = generated(&pod("u1"), "gpu");
        assert!(name.starts_with("web-gpu-") && name.len() == 13, "{name}");
        assert_eq!(name, generated(&pod("u1"), "gpu"));
        assert_ne!(name, generated(&pod("u2"), "gpu"));
        assert_ne!(name, generated(&pod("u1"), "nic"));
        assert_eq!(deterministic(&pod("u1"), "gpu"), "web-gpu");
    }
}
