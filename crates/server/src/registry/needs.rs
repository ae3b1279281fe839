//! What the rest of the server does for a kind.
//!
//! It stands in the row of the kind, so that nobody recognizes a kind by its name. A custom resource
//! needs nothing of it, whatever it is called.

use crate::admission::{NodeRule, Plugin};
use crate::auth::{Grant, Review};

/// What the rest of the server does for a kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Needs {
    /// The admission plug-ins that look at objects of the kind, in the order in which they do.
    pub(crate) admission: &'static [Plugin],
    /// The objects of the kind that a node may write.
    pub(crate) node_rule: NodeRule,
    /// The addresses that an object is given.
    pub(crate) allocation: Allocation,
    /// The rights that an object gives to somebody.
    pub(crate) grant: Option<Grant>,
    /// What a write leaves to do.
    pub(crate) after_write: AfterWrite,
    /// What becomes of an object that is created.
    pub(crate) creation: Creation,
    /// The subresources that reach into a container.
    pub(crate) connections: &'static [&'static str],
    /// True for the kind whose objects are the namespaces of others: its paths name a namespace,
    /// although it is in none.
    pub(crate) is_namespace: bool,
}

/// The addresses that an object is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Allocation {
    #[default]
    Nothing,
    /// Cluster addresses, and ports of the nodes.
    ServiceAddresses,
}

/// What a write to a kind leaves to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AfterWrite {
    #[default]
    Nothing,
    /// The registry follows the definitions.
    SyncDefinitions,
    /// Flow schemas say whether their priority level exists.
    TellFlowSchemas,
}

/// What becomes of an object that is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Creation {
    /// It is stored.
    #[default]
    Stored,
    /// It binds the pod that it names.
    Binding,
    /// It is a question about users and rights, and is answered.
    Review(Review),
}
