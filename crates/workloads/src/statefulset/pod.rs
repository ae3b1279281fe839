//! The pods of a StatefulSet and their identity.

use std::time::Duration;

use windlass_core::{Doc, EditError, Object, OwnerRef, Str, Time, doc};
use windlass_runtime::ResourceKind;

use super::claims;
use crate::{is_pod_available, is_pod_ready};

/// The label of a pod with its own name.
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// The label of a pod with its ordinal.
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";
/// The label of a pod with the name of its revision.
pub(super) const REVISION: &str = "controller-revision-hash";

/// A pod of a StatefulSet, which may not exist yet.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) doc: Doc,
    /// -1 if the name has no ordinal that fits.
    pub(super) ordinal: i64,
}

impl Member {
    pub(super) fn of(doc: Doc) -> Self {
        let ordinal = parse(doc.meta().name()).map_or(-1, |(_, ordinal)| ordinal);
        Self { doc, ordinal }
    }

    pub(super) fn name(&self) -> &str {
        self.doc.meta().name()
    }

    /// The name of the revision that the pod was created at.
    pub(super) fn revision(&self) -> &str {
        self.doc.meta().label(REVISION).unwrap_or("")
    }

    fn phase(&self) -> &str {
        self.doc.str_at("/status/phase")
    }

    /// Returns true if the server has the pod.
    pub(super) fn is_created(&self) -> bool {
        !self.phase().is_empty()
    }

    pub(super) fn is_pending(&self) -> bool {
        self.phase() == "Pending"
    }

    pub(super) fn is_ended(&self) -> bool {
        matches!(self.phase(), "Failed" | "Succeeded")
    }

    pub(super) fn is_terminating(&self) -> bool {
        self.doc.meta().is_deleting()
    }

    pub(super) fn is_running_and_ready(&self) -> bool {
        self.phase() == "Running" && is_pod_ready(&self.doc)
    }

    pub(super) fn is_available(&self, min_ready: Duration, now: Time) -> bool {
        is_pod_available(&self.doc, min_ready, now)
    }

    /// Returns true if the pod does not serve: it is not available, or it is being deleted.
    pub(super) fn is_unavailable(&self, min_ready: Duration, now: Time) -> bool {
        !self.is_available(min_ready, now) || self.is_terminating()
    }

    /// Returns true if the name and the label of the name are those that the ordinal asks for.
    pub(super) fn has_identity(&self, set: &Doc) -> bool {
        let name = name(set, self.ordinal);
        self.ordinal >= 0
            && self.name() == name
            && self.doc.meta().label(POD_NAME) == Some(name.as_str())
    }
}

/// The parent and the ordinal in a name such as `web-3`.
fn parse(name: &str) -> Option<(&str, i64)> {
    let (parent, digits) = name.rsplit_once('-')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let ordinal = digits.parse::<i32>().map_or(-1, i64::from);
    is_number.then_some((parent, ordinal))
}

/// Returns true if a pod has the name of one of the set.
pub(super) fn is_member(set: &Doc, pod: &Doc) -> bool {
    parse(pod.meta().name()).is_some_and(|(parent, _)| parent == set.meta().name())
}

/// The name of the pod of an ordinal.
pub(super) fn name(set: &Doc, ordinal: i64) -> String {
    format!("{}-{ordinal}", set.meta().name())
}

/// The pod of an ordinal as a template describes it, at a revision.
pub(super) fn build(
    set: &Doc,
    kind: &ResourceKind,
    template: &Doc,
    revision: &str,
    ordinal: i64,
) -> Result<Member, EditError> {
    let name = name(set, ordinal);
    let labels = template.at("/metadata/labels").as_object();
    let labels = labels.cloned().unwrap_or_else(Object::empty);
    let labels = with_identity(&labels, &name, ordinal).with(REVISION, revision.into());
    let reference = OwnerRef::controller_of(set, kind.gvk());
    let mut metadata = vec![
        (
            Str::new("generateName"),
            Doc::from(format!("{}-", set.meta().name())),
        ),
        (Str::new("name"), Doc::from(name.as_str())),
        (Str::new("namespace"), Doc::from(set.meta().namespace())),
        (Str::new("labels"), labels.into()),
        (
            Str::new("ownerReferences"),
            Doc::from(vec![Doc::from(&reference)]),
        ),
    ];
    for field in ["annotations", "finalizers"] {
        let value = template.at("/metadata").get(field);
        metadata.extend(value.map(|value| (Str::new(field), value.clone())));
    }
    let spec = template.at("/spec").with("/hostname", name)?;
    let spec = match set.str_at("/spec/serviceName") {
        "" => spec.without("/subdomain").unwrap_or(spec),
        service => spec.with("/subdomain", service)?,
    };
    let pod = doc!({
        "apiVersion": "v1", "kind": "Pod", "metadata": (Object::new(metadata)), "spec": spec
    });
    let doc = claims::with_volumes(set, &pod, ordinal)?;
    Ok(Member { doc, ordinal })
}

/// Labels with those that say which pod of its set a pod is.
fn with_identity(labels: &Object, name: &str, ordinal: i64) -> Object {
    labels
        .with(POD_NAME, name.into())
        .with(POD_INDEX, ordinal.to_string().into())
}

/// A pod with the labels of its identity.
pub(super) fn identified(pod: &Doc, name: &str, ordinal: i64) -> Result<Doc, EditError> {
    let labels = pod.at("/metadata/labels").as_object();
    let labels = labels.cloned().unwrap_or_else(Object::empty);
    pod.with("/metadata/labels", with_identity(&labels, name, ordinal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_are_read_from_names() {
        assert_eq!(parse("web-3"), Some(("web", 3)));
        assert_eq!(parse("web-a-10"), Some(("web-a", 10)));
        assert_eq!(parse("web"), None);
        assert_eq!(parse("web-"), None);
        assert_eq!(parse("web-x1"), None);
        assert_eq!(parse("web-99999999999"), Some(("web", -1)));
    }
}
