//! From a pod to its claims, as the controller, the scheduler and the node agent read it.

use windlass_core::{Doc, Key, doc};

use crate::pod::is_pod_terminal;

/// The claim of an entry in `spec.resourceClaims` of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimName<'a> {
    /// It was decided that the entry needs no claim.
    NotNeeded,
    /// The claim has this name.
    Named {
        /// Its name, in the namespace of the pod.
        name: &'a str,
        /// Whether it must have been made for the pod.
        is_generated: bool,
    },
}

/// The claim of an entry has no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is to be made from a template, and has not been.
    #[error("pod {pod:?}: ResourceClaim not created yet")]
    NotCreatedYet {
        /// The pod, as `namespace/name`.
        pod: String,
    },
    /// The entry names neither a claim nor a template.
    #[error("pod {pod:?}, spec.resourceClaim {entry:?}: none of the supported fields are set")]
    Unsupported {
        /// The pod, as `namespace/name`.
        pod: String,
        /// The name of the entry.
        entry: String,
    },
}

/// A claim belongs to somebody else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ResourceClaim {claim} was not created for Pod {pod} (Pod is not owner)")]
pub struct NotForPod {
    /// The claim, as `namespace/name`.
    pub claim: Key,
    /// The pod, as `namespace/name`.
    pub pod: Key,
}

/// The name of the claim of an entry of a pod.
///
/// # Errors
/// When there is no claim yet, or the entry does not say which.
pub fn claim_name<'a>(pod: &'a Doc, entry: &'a Doc) -> Result<ClaimName<'a>, NameError> {
    let direct = entry.str_at("/resourceClaimName");
    if !direct.is_empty() {
        return Ok(ClaimName::Named {
            name: direct,
            is_generated: false,
        });
    }
    let pod_key = || pod.meta().key().to_string();
    let name = entry.str_at("/name");
    if entry.str_at("/resourceClaimTemplateName").is_empty() {
        let (pod, entry) = (pod_key(), name.to_owned());
        return Err(NameError::Unsupported { pod, entry });
    }
    let mut statuses = pod.at("/status/resourceClaimStatuses").items().iter();
    match statuses.find(|status| status.str_at("/name") == name) {
        None => Err(NameError::NotCreatedYet { pod: pod_key() }),
        Some(status) => Ok(match status.str_at("/resourceClaimName") {
            "" => ClaimName::NotNeeded,
            name => ClaimName::Named {
                name,
                is_generated: true,
            },
        }),
    }
}

/// Whether a claim was made for a pod.
#[must_use]
pub fn is_for_pod(pod: &Doc, claim: &Doc) -> bool {
    claim.meta().namespace() == pod.meta().namespace()
        && claim.meta().is_controlled_by(&pod.meta().uid())
}

/// As [`is_for_pod`], in words.
///
/// # Errors
/// When the claim was not made for the pod.
pub fn must_be_for_pod(pod: &Doc, claim: &Doc) -> Result<(), NotForPod> {
    if is_for_pod(pod, claim) {
        return Ok(());
    }
    let (claim, pod) = (claim.meta().key(), pod.meta().key());
    Err(NotForPod { claim, pod })
}

/// Whether a claim has devices.
#[must_use]
pub fn is_allocated(claim: &Doc) -> bool {
    !claim.at("/status/allocation").is_null()
}

/// Whether a claim is reserved for a pod.
#[must_use]
pub fn is_reserved_for(claim: &Doc, pod: &Doc) -> bool {
    let uid = pod.meta().uid_str();
    let mut consumers = claim.at("/status/reservedFor").items().iter();
    consumers.any(|consumer| consumer.str_at("/uid") == uid)
}

/// The entry in `status.reservedFor` of a claim that stands for a pod.
#[must_use]
pub fn consumer_of(pod: &Doc) -> Doc {
    let meta = pod.meta();
    doc!({ "resource": "pods", "name": (meta.name()), "uid": (meta.uid_str()) })
}

/// Whether a pod needs its claims no more: it has ended, or is deleted before it had a node.
#[must_use]
pub fn is_pod_done(pod: &Doc) -> bool {
    is_pod_terminal(pod) || (pod.meta().is_deleting() && pod.str_at("/spec/nodeName").is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(status: Doc) -> Doc {
        doc!({
            "metadata": { "namespace": "ns", "name": "p", "uid": "u" },
            "status": { "resourceClaimStatuses": status }
        })
    }

    #[test]
    fn a_direct_name_needs_no_status_and_no_owner() {
        let (pod, entry) = (
            pod(Doc::NULL),
            doc!({ "name": "e", "resourceClaimName": "c" }),
        );
        let expected = ClaimName::Named {
            name: "c",
            is_generated: false,
        };
        assert_eq!(claim_name(&pod, &entry), Ok(expected));
    }

    #[test]
    fn a_template_entry_reads_the_status_of_the_pod() {
        let entry = doc!({ "name": "e", "resourceClaimTemplateName": "t" });
        let bare = pod(Doc::NULL);
        let error = claim_name(&bare, &entry).map_err(|error| error.to_string());
        assert_eq!(
            error,
            Err(r#"pod "ns/p": ResourceClaim not created yet"#.to_owned())
        );
        let recorded = pod(doc!([{ "name": "e", "resourceClaimName": "p-e-abcde" }]));
        let expected = ClaimName::Named {
            name: "p-e-abcde",
            is_generated: true,
        };
        assert_eq!(claim_name(&recorded, &entry), Ok(expected));
        let unneeded = pod(doc!([{ "name": "e" }]));
        assert_eq!(claim_name(&unneeded, &entry), Ok(ClaimName::NotNeeded));
    }

    #[test]
    fn an_entry_without_a_source_is_an_error() {
        let entry = doc!({ "name": "e" });
        let bare = pod(Doc::NULL);
        let error = claim_name(&bare, &entry).map_err(|error| error.to_string());
        let text = r#"pod "ns/p", spec.resourceClaim "e": none of the supported fields are set"#;
        assert_eq!(error, Err(text.to_owned()));
    }
}
