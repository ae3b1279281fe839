//! Names of resources.

use std::fmt;
use std::sync::Arc;

/// A resource of any version, such as `pods` or `apps/deployments`: objects of one resource share
/// one map, one history and one stream of events.
///
/// A clone is a counter increment.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceName(Arc<str>);

impl ResourceName {
    /// The plural name of a resource in its group; the core group is the empty text.
    #[must_use]
    pub fn new(group: &str, resource: &str) -> Self {
        if group.is_empty() {
            Self(resource.into())
        } else {
            Self(format!("{group}/{resource}").into())
        }
    }

    /// The group, empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.0.split_once('/').map_or("", |(group, _)| group)
    }

    /// The plural name, such as `deployments`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// The whole name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The resource of a stored text.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResourceName({self})")
    }
}
