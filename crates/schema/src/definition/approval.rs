//! Groups of Kubernetes itself, which need a word that somebody agreed.

use windlass_core::Doc;

use super::with_condition;
use windlass_rules::field::{FieldErrors, FieldPath};

const ANNOTATION: &str = "api-approved.kubernetes.io";
const CONDITION: &str = "KubernetesAPIApprovalPolicyConformant";
const RULES: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
const DOMAINS: [&str; 2] = ["k8s.io", "kubernetes.io"];

/// What the annotation of a definition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Approval<'a> {
    Missing,
    /// Not approved, on purpose.
    Bypassed(&'a str),
    /// The address of who agreed.
    Approved(&'a str),
    Invalid(&'a str),
}

/// What a definition says, if its group asks for it.
fn of(crd: &Doc) -> Option<Approval<'_>> {
    let group = crd.str_at("/spec/group");
    let is_in = |domain: &&str| match group.strip_suffix(*domain) {
        Some(rest) => rest.is_empty() || rest.ends_with('.'),
        None => false,
    };
    DOMAINS.iter().find(|domain| is_in(domain))?;
    Some(match crd.meta().annotation(ANNOTATION) {
        None | Some("") => Approval::Missing,
        Some(text) if text.starts_with("unapproved") => Approval::Bypassed(text),
        Some(text) if is_address(text) => Approval::Approved(text),
        Some(text) => Approval::Invalid(text),
    })
}

/// Whether a text is the address of something on a host.
fn is_address(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(is_scheme)
        && !host.is_empty()
        && !text.contains(|c: char| c.is_ascii_control() || c == ' ')
}

impl Approval<'_> {
    /// The status, reason and message of the condition.
    fn condition(self) -> (&'static str, &'static str, String) {
        match self {
            Self::Missing => (
                "False",
                "MissingAnnotation",
                format!("protected groups must have approval annotation {ANNOTATION:?}, {RULES}"),
            ),
            Self::Bypassed(text) => (
                "False",
                "UnapprovedAnnotation",
                format!("not approved: {}", windlass_core::quote(text)),
            ),
            Self::Approved(text) => ("True", "ApprovedAnnotation", format!("approved in {text}")),
            Self::Invalid(_) => (
                "False",
                "InvalidAnnotation",
                format!(
                    "protected groups must have approval annotation {ANNOTATION:?} with either a \
                     URL or a reason starting with \"unapproved\", {RULES}"
                ),
            ),
        }
    }
}

/// Finds what is wrong with the approval of a definition.
pub(super) fn validate(crd: &Doc, errors: &mut FieldErrors) {
    let Some(approval) = of(crd) else {
        return;
    };
    let path = FieldPath::new("metadata.annotations").key(ANNOTATION);
    let (_, _, message) = approval.condition();
    match approval {
        Approval::Missing => errors.required(&path, message),
        Approval::Invalid(text) => errors.invalid(&path, text, message),
        Approval::Bypassed(_) | Approval::Approved(_) => {}
    }
}

/// The definition with the condition about its approval, if it needs one.
#[must_use]
pub fn noted(crd: Doc, now: Doc) -> Doc {
    let condition = of(&crd).map(Approval::condition);
    match condition {
        Some((status, reason, message)) => {
            with_condition(crd, CONDITION, status, reason, &message, now)
        }
        None => crd,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approval_is_the_address_of_something_on_a_host() {
        for text in ["https://github.com/x/1", "http://h", "a+b://h?x"] {
            assert!(is_address(text), "{text}");
        }
        for text in [
            "junk",
            "https://",
            "https:///x",
            "://h",
            "1a://h",
            "https://a b",
        ] {
            assert!(!is_address(text), "{text}");
        }
    }
}
