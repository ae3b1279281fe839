//! Kinds and resources: group, version and name.
//!
//! The parts are borrowed where a kind is known when the program is written, so that such kinds
//! can be constants, and owned where it was read.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// An API group in one version, written `apps/v1`, or `v1` for the core group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersion {
    group: Cow<'static, str>,
    version: Cow<'static, str>,
}

/// A text is not of the form `group/version` or `version`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unexpected GroupVersion string: {text}")]
pub struct GroupVersionError {
    /// The text that was to be read.
    text: String,
}

impl GroupVersion {
    /// A group in one version; the core group is the empty text.
    #[must_use]
    pub const fn constant(group: &'static str, version: &'static str) -> Self {
        Self {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
        }
    }

    /// The group, empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The version, such as `v1`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The kind of that name in this group and version.
    #[must_use]
    pub fn with_kind(self, kind: impl Into<Cow<'static, str>>) -> Gvk {
        Gvk {
            api: self,
            kind: kind.into(),
        }
    }

    /// The resource of that name in this group and version.
    #[must_use]
    pub fn with_resource(self, resource: impl Into<Cow<'static, str>>) -> Gvr {
        Gvr {
            api: self,
            resource: resource.into(),
        }
    }
}

impl FromStr for GroupVersion {
    type Err = GroupVersionError;

    /// Reads an `apiVersion`. As upstream does, this takes the empty text, which objects without
    /// an `apiVersion` have, for an empty group and version.
    fn from_str(text: &str) -> Result<Self, GroupVersionError> {
        let (group, version) = text.split_once('/').unwrap_or(("", text));
        if version.contains('/') {
            return Err(GroupVersionError {
                text: text.to_owned(),
            });
        }
        Ok(Self {
            group: group.to_owned().into(),
            version: version.to_owned().into(),
        })
    }
}

impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.version)
        } else {
            write!(f, "{}/{}", self.group, self.version)
        }
    }
}

/// Group, version and kind of an object: what its `apiVersion` and `kind` say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvk {
    api: GroupVersion,
    kind: Cow<'static, str>,
}

impl Gvk {
    /// A kind known when the program is written.
    #[must_use]
    pub const fn constant(group: &'static str, version: &'static str, kind: &'static str) -> Self {
        Self {
            api: GroupVersion::constant(group, version),
            kind: Cow::Borrowed(kind),
        }
    }

    /// Reads the `apiVersion` and `kind` of an object.
    ///
    /// # Errors
    /// When `api_version` has more than one slash.
    pub fn parse(api_version: &str, kind: &str) -> Result<Self, GroupVersionError> {
        Ok(api_version
            .parse::<GroupVersion>()?
            .with_kind(kind.to_owned()))
    }

    /// The group, empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.api.group
    }

    /// The version, such as `v1`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.api.version
    }

    /// The kind, such as `Deployment`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Group and version.
    #[must_use]
    pub fn group_version(&self) -> &GroupVersion {
        &self.api
    }

    /// The `apiVersion` of objects of this kind, such as `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        self.api.to_string()
    }

    /// The kind without its version.
    #[must_use]
    pub fn group_kind(&self) -> GroupKind {
        GroupKind {
            group: self.api.group.clone(),
            kind: self.kind.clone(),
        }
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group(), self.version(), self.kind)
    }
}

/// Group, version and plural resource name: what a request path says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvr {
    api: GroupVersion,
    resource: Cow<'static, str>,
}

impl Gvr {
    /// A resource known when the program is written.
    #[must_use]
    pub const fn constant(
        group: &'static str,
        version: &'static str,
        resource: &'static str,
    ) -> Self {
        Self {
            api: GroupVersion::constant(group, version),
            resource: Cow::Borrowed(resource),
        }
    }

    /// The group, empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.api.group
    }

    /// The version, such as `v1`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.api.version
    }

    /// The plural name, such as `deployments`.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// Group and version.
    #[must_use]
    pub fn group_version(&self) -> &GroupVersion {
        &self.api
    }

    /// The `apiVersion` of objects of this resource, such as `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        self.api.to_string()
    }

    /// The resource without its version.
    #[must_use]
    pub fn group_resource(&self) -> GroupResource {
        GroupResource {
            group: self.api.group.clone(),
            resource: self.resource.clone(),
        }
    }
}

impl fmt::Display for Gvr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}, Resource={}",
            self.group(),
            self.version(),
            self.resource
        )
    }
}

/// A resource of any version, printed `deployments.apps`, or `pods` for the core group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    group: Cow<'static, str>,
    resource: Cow<'static, str>,
}

impl GroupResource {
    /// A resource of a group; the core group is the empty text.
    #[must_use]
    pub fn new(
        group: impl Into<Cow<'static, str>>,
        resource: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            group: group.into(),
            resource: resource.into(),
        }
    }

    /// The group, empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The plural name, such as `deployments`.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.resource
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_qualified(f, &self.resource, &self.group)
    }
}

/// A kind of any version, printed `Deployment.apps`, or `Pod` for the core group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    group: Cow<'static, str>,
    kind: Cow<'static, str>,
}

impl GroupKind {
    /// A kind of a group; the core group is the empty text.
    #[must_use]
    pub fn new(group: impl Into<Cow<'static, str>>, kind: impl Into<Cow<'static, str>>) -> Self {
        Self {
            group: group.into(),
            kind: kind.into(),
        }
    }

    /// The group, empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The kind, such as `Deployment`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_qualified(f, &self.kind, &self.group)
    }
}

fn write_qualified(f: &mut fmt::Formatter<'_>, name: &str, group: &str) -> fmt::Result {
    if group.is_empty() {
        f.write_str(name)
    } else {
        write!(f, "{name}.{group}")
    }
}
