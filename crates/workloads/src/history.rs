//! ControllerRevisions: the templates that a DaemonSet or StatefulSet has had.
//!
//! A revision holds a patch that puts its template back in place, and a number that is higher the
//! later the template was in use. Returning to an earlier template raises the number of its revision.

use windlass_cache::{Obj, SharedInformer};
use windlass_client::{DeleteOptions, WriteOptions};
use windlass_core::{Doc, EditError, Object, OwnerRef, Selector, Str, names};
use windlass_runtime::{Context, ResourceKind, Result};

use crate::{
    ClaimError, RefManager,
    owned::{self, apps_kind},
    replicaset,
};

/// The longest start of a revision's name, which leaves room for the hash.
const PREFIX_BYTES_LIMIT: usize = 223;

/// The number of names that are tried for one revision.
const NAMES_LIMIT: u32 = 32;

/// The number of times that a revision which somebody else changed is read again.
const CONFLICTS_LIMIT: u32 = 4;

/// The ControllerRevisions of one kind of owner.
pub(crate) struct History {
    owner_kind: ResourceKind,
    pub(crate) kind: ResourceKind,
    revisions: SharedInformer,
}

impl History {
    pub(crate) fn new(manager: &windlass_runtime::Manager, owner_kind: &ResourceKind) -> Self {
        let kind = apps_kind("ControllerRevision", "controllerrevisions");
        let revisions = manager.factory().dynamic(kind.gvr().clone());
        owned::index_children(&revisions);
        Self {
            owner_kind: owner_kind.clone(),
            kind,
            revisions,
        }
    }

    /// The revisions of an owner from the lowest number to the highest, after adopting orphans. A
    /// revision whose labels do not match is released.
    ///
    /// # Errors
    /// When a revision cannot be adopted or released.
    pub(crate) async fn claim(
        &self,
        cx: &Context,
        owner: &Doc,
        selector: &Selector,
    ) -> Result<Vec<Doc>> {
        let known = self.revisions.lister().snapshot();
        let mut candidates = owned::children_of(&known, owner);
        let namespace = owner.meta().namespace();
        candidates.extend(owned::orphans(&known, namespace, selector));
        let manager = RefManager::new(cx, owner, &self.owner_kind, &self.kind, selector);
        let claimed = manager.claim(candidates).await;
        if !claimed.errors.is_empty() {
            return Err(replicaset::together(&claimed.errors as &[ClaimError]));
        }
        let mut revisions: Vec<Doc> = claimed.objects.iter().map(Obj::doc).cloned().collect();
        sort(&mut revisions);
        Ok(revisions)
    }

    /// Gives a revision another number.
    ///
    /// # Errors
    /// When the server does not change it.
    pub(crate) async fn renumber(&self, cx: &Context, revision: &Doc, to: i64) -> Result<Doc> {
        let api = cx.api(&self.kind, revision.meta().namespace());
        let (mut conflicts, mut revision) = (0, revision.clone());
        loop {
            if number(&revision) == to {
                return Ok(revision);
            }
            let write = revision.with("/revision", to)?;
            match api.update(&write, &WriteOptions::default()).await {
                Err(error) if error.is_conflict() && conflicts < CONFLICTS_LIMIT => {
                    conflicts += 1;
                    revision = api.get(revision.meta().name()).await?;
                }
                written => return Ok(written?),
            }
        }
    }

    /// Creates a revision, or finds the one with the same data that exists under its name. A name
    /// that belongs to other data raises the count of collisions, which changes the name.
    ///
    /// # Errors
    /// When the server does not create it.
    pub(crate) async fn create(
        &self,
        cx: &Context,
        draft: &Draft<'_>,
        collisions: &mut i64,
    ) -> Result<Doc> {
        let api = cx.api(&self.kind, draft.owner.meta().namespace());
        let labels_hash = hash(&draft.data, *collisions);
        let mut names_left = NAMES_LIMIT;
        loop {
            let name = name(draft.owner, &hash(&draft.data, *collisions));
            let revision = draft.revision(&self.owner_kind, &name, HASH_LABEL, &labels_hash)?;
            let error = match api.create(&revision, &WriteOptions::default()).await {
                Ok(created) => return Ok(created),
                Err(error) if error.is_already_exists() && names_left > 0 => error,
                Err(error) => return Err(error.into()),
            };
            let known = api.get(&name).await?;
            if *data(&known) == draft.data {
                return Ok(known);
            }
            tracing::debug!(%error, name, "a revision with other data has the name");
            *collisions += 1;
            names_left -= 1;
        }
    }

    /// Deletes a revision. One that is gone is deleted.
    ///
    /// # Errors
    /// When the server does not delete it.
    pub(crate) async fn delete(&self, cx: &Context, revision: &Doc) -> Result<()> {
        let meta = revision.meta();
        let api = cx.api(&self.kind, meta.namespace());
        match api
            .delete(meta.name(), &DeleteOptions::uid(meta.uid_str()))
            .await
        {
            Err(error) if error.is_not_found() => Ok(()),
            deleted => Ok(deleted.map(drop)?),
        }
    }
}

/// The label of a StatefulSet's revision with the hash of its data.
const HASH_LABEL: &str = "controller.kubernetes.io/hash";

/// A revision that does not exist yet.
pub(crate) struct Draft<'a> {
    pub(crate) owner: &'a Doc,
    pub(crate) data: Doc,
    pub(crate) number: i64,
}

impl Draft<'_> {
    /// The object that is created: labels of the template and the hash, annotations of the owner.
    pub(crate) fn revision(
        &self,
        owner_kind: &ResourceKind,
        name: &str,
        hash_label: &str,
        hash: &str,
    ) -> Result<Doc, EditError> {
        let labels = self.owner.at("/spec/template/metadata/labels").as_object();
        let labels = labels.cloned().unwrap_or_else(Object::empty);
        let reference = OwnerRef::controller_of(self.owner, owner_kind.gvk());
        let mut metadata = vec![
            ("name", Doc::from(name)),
            ("namespace", Doc::from(self.owner.meta().namespace())),
            ("labels", labels.with(hash_label, hash.into()).into()),
            ("ownerReferences", Doc::from(vec![Doc::from(&reference)])),
        ];
        let annotations = self.owner.at("/metadata/annotations");
        if annotations.as_object().is_some_and(|it| !it.is_empty()) {
            metadata.push(("annotations", annotations.clone()));
        }
        let fields = [
            ("apiVersion", Doc::from("apps/v1")),
            ("kind", Doc::from("ControllerRevision")),
            ("metadata", metadata.into_iter().collect::<Object>().into()),
            ("data", self.data.clone()),
            ("revision", Doc::from(self.number)),
        ];
        Ok(fields.into_iter().collect::<Object>().into())
    }
}

/// The data of a revision: a patch that puts the template of an owner in place.
pub(crate) fn data_of(owner: &Doc) -> Doc {
    let template = owner.at("/spec/template").as_object();
    let template = template.cloned().unwrap_or_else(Object::empty);
    let spec = Object::new(vec![(
        Str::new("template"),
        template.with("$patch", "replace".into()).into(),
    )]);
    Object::new(vec![(Str::new("spec"), spec.into())]).into()
}

/// The data of a revision.
pub(crate) fn data(revision: &Doc) -> &Doc {
    revision.at("/data")
}

/// The template that a revision puts in place.
pub(crate) fn template(revision: &Doc) -> Doc {
    let template = data(revision).at("/spec/template").as_object();
    let template = template.map(|it| it.without("$patch"));
    template.unwrap_or_else(Object::empty).into()
}

/// The number of a revision.
pub(crate) fn number(revision: &Doc) -> i64 {
    revision.at("/revision").as_i64().unwrap_or(0)
}

/// The name of a revision: that of the owner and a hash.
pub(crate) fn name(owner: &Doc, hash: &str) -> String {
    let owner = owner.meta().name();
    let mut end = owner.len().min(PREFIX_BYTES_LIMIT);
    while !owner.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{hash}", &owner[..end])
}

/// Sorts revisions by number, then by age, then by name.
fn sort(revisions: &mut [Doc]) {
    revisions.sort_by_cached_key(|it| {
        let meta = it.meta();
        (
            number(it),
            meta.creation_timestamp(),
            meta.name().to_owned(),
        )
    });
}

/// The hash of a revision's data and the collisions that were counted, as kube-controller-manager
/// makes it, so that both give the same data the same name.
pub(crate) fn hash(data: &Doc, collisions: i64) -> String {
    let bytes = fnv1(FNV_START, &go_json(data));
    names::safe_encode(&fnv1(bytes, collisions.to_string().as_bytes()).to_string())
}

const FNV_START: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

/// FNV-1, which multiplies before it mixes a byte in.
fn fnv1(start: u32, bytes: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| hash.wrapping_mul(FNV_PRIME) ^ u32::from(*byte);
    bytes.iter().fold(start, step)
}

/// JSON as Go's encoder writes it: characters that HTML knows are escaped.
fn go_json(doc: &Doc) -> Vec<u8> {
    let text = String::from_utf8_lossy(&doc.to_json()).into_owned();
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    #[test]
    fn data_and_template_are_inverse() {
        let template = doc!({ "metadata": { "labels": { "a": "b" } }, "spec": { "x": 1 } });
        let set = doc!({ "spec": { "replicas": 1, "template": (template.clone()) } });
        let data = data_of(&set);
        let patch = data.at("/spec/template").get("$patch");
        assert_eq!(patch.and_then(Doc::as_str), Some("replace"));
        let revision = doc!({ "data": data, "revision": 3 });
        assert_eq!(
            (self::template(&revision), number(&revision)),
            (template, 3)
        );
    }

    #[test]
    fn hashes_are_those_of_go() {
        // FNV-1 of "a" is a published test vector.
        assert_eq!(fnv1(FNV_START, b"a"), 0x050c_5d7e);
        assert_eq!(
            go_json(&doc!({ "a": "<&>" })),
            br#"{"a":"\u003c\u0026\u003e"}"#
        );
        let data = doc!({ "spec": {} });
        assert_ne!(hash(&data, 0), hash(&data, 1));
    }

    #[test]
    fn long_names_leave_room_for_the_hash() {
        let owner = doc!({ "metadata": { "name": ("x".repeat(250)) } });
        assert_eq!(name(&owner, "abc").len(), PREFIX_BYTES_LIMIT + 4);
    }

    #[test]
    fn revisions_are_sorted_by_number_age_and_name() {
        let revision = |number: i64, name: &str, at: &str| {
            let meta = doc!({ "name": name, "creationTimestamp": at });
            doc!({ "metadata": meta, "revision": number })
        };
        let mut all = [
            revision(2, "a", "2026-01-01T00:00:00Z"),
            revision(1, "c", "2026-01-02T00:00:00Z"),
            revision(1, "b", "2026-01-02T00:00:00Z"),
            revision(1, "d", "2026-01-01T00:00:00Z"),
        ];
        sort(&mut all);
        let names = all.iter().map(|it| it.meta().name().to_owned());
        assert_eq!(names.collect::<String>(), "dbca");
    }
}
