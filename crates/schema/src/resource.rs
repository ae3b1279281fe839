//! What the server knows about one kind.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use windlass_atlas::{Atlas, canonical, stored};
use windlass_core::ResourceName;
use windlass_core::{Doc, GroupKind, GroupResource, Gvk};

use crate::custom;
use crate::needs::Needs;
use windlass_rules::hooks::{Conversion, Hooks};
use windlass_rules::table::Column;

/// One row of the registry.
#[derive(Debug)]
pub struct Resource {
    /// The kind in the version of this row.
    pub gvk: Gvk,
    /// The name in paths.
    pub plural: Cow<'static, str>,
    /// The name in discovery for one object.
    pub singular: Cow<'static, str>,
    /// Short names for people.
    pub short_names: Vec<Cow<'static, str>>,
    /// Groups of kinds that people list together.
    pub categories: Vec<Cow<'static, str>>,
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// What can be done to the kind, in alphabetical order.
    pub verbs: Vec<Verb>,
    /// Parts of an object with their own path.
    pub subresources: Vec<Subresource>,
    /// What `kubectl get` shows after the name; the age alone if empty.
    pub columns: Cow<'static, [Column]>,
    /// Fields that a field selector may name besides the name and the namespace.
    pub fields: Vec<SelectableField>,
    /// What a name must look like.
    pub names: NameRule,
    /// When the generation goes up.
    pub generation: Generation,
    /// Whether an update without a resource version is taken.
    pub unconditional_update: bool,
    /// Whether an update of an absent object creates it.
    pub create_on_update: bool,
    /// Whether a delete answers with the object instead of a `Status`.
    pub returns_deleted: bool,
    /// What happens to dependents when a delete does not say.
    pub garbage: GarbagePolicy,
    /// Whether list items carry their own kind, as those of custom resources do.
    pub is_custom: bool,
    /// Under which name the objects are stored. Rows of several versions share one.
    pub shelf: ResourceName,
    /// The way to the stored form and back, for rows that are not the stored version.
    pub conversion: Option<Conversion>,
    /// How long an object lives after its last write; for ever if absent.
    pub ttl: Option<Duration>,
    /// What the rest of the server does for the kind.
    pub needs: Needs,
    /// What the kind does beyond the rules above.
    pub hooks: Arc<dyn Hooks>,
    /// The schema of a custom resource.
    pub custom: Option<Arc<custom::Version>>,
}

/// What is to be done to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// A new object.
    Create,
    /// The end of one object.
    Delete,
    /// The end of all objects that a selector matches.
    DeleteCollection,
    /// One object.
    Get,
    /// Many objects.
    List,
    /// A change, told by its difference.
    Patch,
    /// A change, told by the whole object.
    Update,
    /// The changes of many objects as they happen.
    Watch,
}

/// A field that a field selector may name.
#[derive(Clone, Debug)]
pub struct SelectableField {
    /// The name in selectors.
    pub label: Cow<'static, str>,
    /// Where the value stands.
    pub pointer: Cow<'static, str>,
    /// Where it stands if it is not there; empty for nowhere else.
    pub fallback: &'static str,
    /// The value of an object that has none.
    pub absent: &'static str,
}

/// Whether objects live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Each object is in a namespace.
    Namespaced,
    /// Objects are in no namespace.
    Cluster,
}

/// A part of an object with its own path.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// The last part of the path.
    pub name: &'static str,
    /// The kind that is read and written there.
    pub gvk: Gvk,
    /// In alphabetical order.
    pub verbs: &'static [Verb],
    /// What it does.
    pub sort: Sub,
}

/// What a subresource does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sub {
    /// The status, written apart from the rest.
    Status,
    /// The number of replicas.
    Scale,
    /// Assigns a pod to a node.
    Binding,
    /// Deletes a pod if its disruption budget allows.
    Eviction,
    /// Issues a token for a service account.
    Token,
    /// The finalizers of a namespace's spec.
    Finalize,
    /// A restricted write to the main object.
    Part(&'static [&'static str]),
    /// A restricted write to the main object that counts against quotas: the resize of a pod.
    Resize(&'static [&'static str]),
    /// The log of a pod, of which there is none without a node.
    Log,
}

/// What a name must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS subdomain, RFC 1123.
    Subdomain,
    /// A DNS label, RFC 1123.
    Label,
    /// Anything that can be one segment of a path.
    PathSegment,
    /// An IP address in canonical form.
    IpAddress,
}

/// When the generation of an object goes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Never: the kind has none.
    Absent,
    /// With the spec.
    Spec,
    /// With the spec or the annotations.
    SpecOrAnnotations,
    /// With anything outside the metadata and the status.
    AllButStatus,
    /// With anything outside the metadata.
    Content,
    /// With anything outside the metadata, or the labels.
    ContentOrLabels,
}

/// What happens to dependents when a delete does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GarbagePolicy {
    /// They are deleted in the background.
    Background,
    /// They are left alone.
    Orphan,
    /// The kind can have none.
    Unsupported,
}

impl Verb {
    /// The word that roles and discovery use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }

    /// Whether the verb leaves everything as it is.
    #[must_use]
    pub fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The sorts of Go types that a resource has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoType {
    /// That of an object.
    Object,
    /// That of a list of objects.
    List,
}

impl Resource {
    /// The group and plural, as messages name the resource.
    #[must_use]
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(self.gvk.group().to_owned(), self.plural.to_string())
    }

    /// The group and kind, as messages about fields name it.
    #[must_use]
    pub fn group_kind(&self) -> GroupKind {
        self.gvk.group_kind()
    }

    /// Returns true if objects are validated by expressions.
    #[must_use]
    pub fn has_rules(&self) -> bool {
        self.custom
            .as_ref()
            .is_some_and(|version| version.has_rules())
    }

    /// The schema by which objects of a kind are read, if it is that of a custom resource.
    #[must_use]
    pub fn custom_schema(&self, gvk: &Gvk) -> Option<&custom::Version> {
        self.custom.as_deref().filter(|_| *gvk == self.gvk)
    }

    /// Whether objects live in namespaces.
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// What is said to everybody who uses the kind, if it will go.
    pub fn deprecation(&self) -> Option<String> {
        match &self.custom {
            Some(custom) => custom.deprecation.clone(),
            None => self.hooks.deprecation().map(str::to_owned),
        }
    }

    /// Whether a verb is served.
    #[must_use]
    pub fn allows(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }

    /// A part with its own path.
    #[must_use]
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// Whether the status is written apart from the rest.
    #[must_use]
    pub fn has_status(&self) -> bool {
        self.subresources.iter().any(|sub| sub.sort == Sub::Status)
    }

    /// An object with exactly the empty fields that upstream shows after it has stored it.
    #[must_use]
    pub fn canonical(&self, object: Doc) -> Doc {
        match Atlas::kind(&self.gvk) {
            Some(kind) => stored(kind, &canonical(kind, &object)),
            None => object,
        }
    }

    /// The form in which an object is stored.
    #[must_use]
    pub fn to_storage(&self, object: &Doc) -> Doc {
        match (&self.custom, self.conversion) {
            (Some(custom), _) => custom.to_storage(object),
            (None, Some(conversion)) => (conversion.to_storage)(object),
            (None, None) => object.clone(),
        }
    }

    /// An object in the version of this row.
    #[must_use]
    pub fn view(&self, object: &Doc) -> Doc {
        match (&self.custom, self.conversion) {
            (Some(custom), _) => custom.view(object),
            (None, Some(conversion)) => (conversion.from_storage)(object),
            (None, None) => object.clone(),
        }
    }

    /// The version in which objects are stored, with its group.
    #[must_use]
    pub fn stored_version(&self) -> String {
        match (&self.custom, self.conversion) {
            (Some(custom), _) => custom.storage_version.clone(),
            (None, Some(conversion)) => conversion.api_version.to_owned(),
            (None, None) => self.gvk.api_version(),
        }
    }

    /// The kind of a list.
    #[must_use]
    pub fn list_kind(&self) -> String {
        match &self.custom {
            Some(custom) => custom.list_kind.clone(),
            None => format!("{}List", self.gvk.kind()),
        }
    }

    /// The Go type of an object, or of a list of them, as messages of kube-apiserver name it.
    #[must_use]
    pub fn go_type(&self, sort: GoType) -> String {
        let suffix = match sort {
            GoType::Object => "",
            GoType::List => "List",
        };
        if self.is_custom {
            return format!("*unstructured.Unstructured{suffix}");
        }
        let package = match self.gvk.group() {
            "" | "events.k8s.io" => "core",
            "internal.apiserver.k8s.io" => "apiserverinternal",
            group => group.split('.').next().unwrap_or_default(),
        };
        format!("*{package}.{}{suffix}", self.gvk.kind())
    }
}
