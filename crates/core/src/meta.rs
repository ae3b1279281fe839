//! Object metadata, read straight from a [`Doc`].

mod condition;
mod owner;

use crate::{Doc, Gvk, Key, LabelLookup, Object, Revision, Time, Uid};

pub use condition::{Condition, condition, with_condition};
pub use owner::OwnerRef;

/// The metadata of an object, where it stands: nothing is decoded or copied.
///
/// ```
/// use windlass_core::{doc, Meta};
/// let pod = doc!({ "metadata": { "name": "web", "namespace": "shop", "labels": { "app": "web" } } });
/// let meta = Meta::of(&pod);
/// assert_eq!(meta.key().to_string(), "shop/web");
/// assert_eq!(meta.label("app"), Some("web"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Meta<'a>(Option<&'a Object>);

impl<'a> Meta<'a> {
    /// The metadata of an object.
    #[must_use]
    pub fn of(object: &'a Doc) -> Self {
        Self(object.get("metadata").and_then(Doc::as_object))
    }

    /// A field of the metadata as it stands.
    #[must_use]
    pub fn field(&self, key: &str) -> Option<&'a Doc> {
        self.0?.get(key)
    }

    fn text(&self, key: &str) -> &'a str {
        self.field(key).and_then(Doc::as_str).unwrap_or("")
    }

    fn time(&self, key: &str) -> Option<Time> {
        self.field(key)?.as_str()?.parse().ok()
    }

    /// The name; empty if there is none.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.text("name")
    }

    /// The prefix of a name that the server is to make up; empty if there is none.
    #[must_use]
    pub fn generate_name(&self) -> &'a str {
        self.text("generateName")
    }

    /// The namespace; empty if there is none.
    #[must_use]
    pub fn namespace(&self) -> &'a str {
        self.text("namespace")
    }

    /// The key: `namespace/name`, or the name alone.
    #[must_use]
    pub fn key(&self) -> Key {
        match self.namespace() {
            "" => Key::cluster(self.name()),
            namespace => Key::new(namespace, self.name()),
        }
    }

    /// The UID as text; empty if there is none.
    #[must_use]
    pub fn uid_str(&self) -> &'a str {
        self.text("uid")
    }

    /// The UID.
    #[must_use]
    pub fn uid(&self) -> Uid {
        self.uid_str().into()
    }

    /// The resource version as text; empty if there is none.
    #[must_use]
    pub fn resource_version(&self) -> &'a str {
        self.text("resourceVersion")
    }

    /// The resource version, if it is one that can be compared.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.resource_version().parse().ok()
    }

    /// The generation: the number of changes of the desired state.
    #[must_use]
    pub fn generation(&self) -> i64 {
        self.field("generation").and_then(Doc::as_i64).unwrap_or(0)
    }

    /// When the object was created.
    #[must_use]
    pub fn creation_timestamp(&self) -> Option<Time> {
        self.time("creationTimestamp")
    }

    /// When the object is to be gone, if it is being deleted.
    #[must_use]
    pub fn deletion_timestamp(&self) -> Option<Time> {
        self.time("deletionTimestamp")
    }

    /// Returns true if the object is being deleted.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.field("deletionTimestamp")
            .is_some_and(|time| !time.is_null())
    }

    /// The labels, for matching selectors.
    #[must_use]
    pub fn labels(&self) -> Labels<'a> {
        Labels(self.field("labels").and_then(Doc::as_object))
    }

    /// One label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&'a str> {
        self.labels().value(key)
    }

    /// The annotations.
    #[must_use]
    pub fn annotations(&self) -> Labels<'a> {
        Labels(self.field("annotations").and_then(Doc::as_object))
    }

    /// One annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&'a str> {
        self.annotations().value(key)
    }

    /// The finalizers that hold the object.
    pub fn finalizers(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.field("finalizers")
            .map_or(&[][..], Doc::items)
            .iter()
            .filter_map(Doc::as_str)
    }

    /// Returns true if the object has this finalizer.
    #[must_use]
    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers().any(|found| found == finalizer)
    }

    /// The owners.
    pub fn owner_refs(&self) -> impl Iterator<Item = OwnerRef> + use<'a> {
        self.field("ownerReferences")
            .map_or(&[][..], Doc::items)
            .iter()
            .map(OwnerRef::from_doc)
    }

    /// The owner that manages the object: the first reference that says so.
    #[must_use]
    pub fn controller(&self) -> Option<OwnerRef> {
        self.owner_refs().find(|owner| owner.controller)
    }

    /// Returns true if the controller of the object has this UID.
    #[must_use]
    pub fn is_controlled_by(&self, owner: &Uid) -> bool {
        self.controller()
            .is_some_and(|controller| controller.uid == *owner)
    }
}

/// A map of strings inside an object, such as its labels.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a>(Option<&'a Object>);

impl<'a> Labels<'a> {
    /// The value of one key.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&'a str> {
        self.0?.get(key)?.as_str()
    }

    /// All pairs, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let fields = self.0.into_iter().flat_map(Object::iter);
        fields.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }

    /// Returns true if there are no labels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none_or(Object::is_empty)
    }
}

impl LabelLookup for Labels<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.value(key)
    }
}

impl Doc {
    /// The metadata of this object.
    #[must_use]
    pub fn meta(&self) -> Meta<'_> {
        Meta::of(self)
    }

    /// The group, version and kind that this object names, if it names a valid one.
    #[must_use]
    pub fn gvk(&self) -> Option<Gvk> {
        Gvk::parse(self.str_at("/apiVersion"), self.get("kind")?.as_str()?).ok()
    }

    /// This object with a finalizer, at the end of the list.
    #[must_use]
    pub fn with_finalizer(&self, finalizer: &str) -> Self {
        if self.meta().has_finalizer(finalizer) {
            return self.clone();
        }
        let finalizers = self.meta().finalizers().chain([finalizer]).map(Self::from);
        self.with_finalizers(finalizers.collect())
    }

    /// This object without a finalizer.
    #[must_use]
    pub fn without_finalizer(&self, finalizer: &str) -> Self {
        let kept = self
            .meta()
            .finalizers()
            .filter(|found| *found != finalizer)
            .map(Self::from);
        self.with_finalizers(kept.collect())
    }

    fn with_finalizers(&self, finalizers: Vec<Self>) -> Self {
        let edited = if finalizers.is_empty() {
            self.without("/metadata/finalizers")
        } else {
            self.with("/metadata/finalizers", finalizers)
        };
        // Only something that is no object at all cannot be edited; it has no finalizers either.
        edited.unwrap_or_else(|_| self.clone())
    }
}
