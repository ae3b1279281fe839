//! The needs of a kind beyond its rules.
//!
//! It stands in the row of the kind, so that nobody recognizes a kind by its name. A custom resource
//! needs nothing of it, whatever it is called.

/// The needs of a kind beyond its rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// The admission plug-ins that look at objects of the kind, in the order in which they do.
    pub admission: &'static [Plugin],
    /// The objects of the kind that a node may write.
    pub node_rule: NodeRule,
    /// The addresses that an object is given.
    pub allocation: Allocation,
    /// The rights that an object gives to somebody.
    pub grant: Option<GrantSort>,
    /// The follow-up of a write.
    pub after_write: AfterWrite,
    /// The effect of a create.
    pub creation: Creation,
    /// The subresources that reach into a container.
    pub connections: &'static [&'static str],
    /// True for the kind whose objects are the namespaces of others: its paths name a namespace,
    /// although it is in none.
    pub is_namespace: bool,
    /// The part of the cluster that acts on the objects; `None` for custom resources.
    pub actor: Option<Actor>,
    /// The sort of admission that the objects configure, which does not see them itself.
    pub admission_configuration: Option<AdmissionConfiguration>,
}

/// A sort of admission that objects configure. Webhooks see neither webhook configurations nor
/// policies; policies do not see policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionConfiguration {
    /// Admission webhooks.
    Webhooks,
    /// Admission policies and their bindings.
    Policies,
}

/// The part of the cluster that acts on objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// The API server.
    Server,
    /// Clients: the objects are data, or are acted on by programs that clusters get from elsewhere,
    /// such as network plug-ins.
    Clients,
    /// The controller of this name, upstream's.
    Controller(&'static str),
    /// Nothing yet. The text says which effect is missing.
    Nothing(&'static str),
    /// Something else where an object has a value at this pointer, and the server where not.
    Where(&'static str, &'static Self),
}

/// The addresses that an object is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Allocation {
    /// None.
    #[default]
    Nothing,
    /// Cluster addresses, and ports of the nodes.
    ServiceAddresses,
}

/// The follow-up of a write to a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterWrite {
    /// Nothing.
    #[default]
    Nothing,
    /// The registry follows the definitions.
    SyncDefinitions,
    /// Flow schemas say whether their priority level exists.
    TellFlowSchemas,
}

/// The effect of a create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Creation {
    /// It is stored.
    #[default]
    Stored,
    /// It binds the pod that it names.
    Binding,
    /// It is a question about users and rights, and is answered.
    Review(Review),
}

/// An admission plug-in, under upstream's name where it has one. The variants stand in upstream's
/// order, and so do the lists of the registry rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plugin {
    /// Defaults and bounds of what objects ask for.
    LimitRanger(Limited),
    /// The account that a pod runs as, and its token.
    ServiceAccount,
    /// The taint of a new node.
    TaintNodesByCondition,
    /// The priority of a pod.
    Priority,
    /// The one class that is the default.
    PriorityClassDefault,
    /// The seconds that a pod stays on a node that does not answer.
    DefaultTolerationSeconds,
    /// The finalizer that keeps what is in use.
    StorageObjectInUseProtection(&'static str),
    /// The overhead of a pod, and the nodes that have its runtime.
    RuntimeClass,
    /// Users, signers and subjects of requests for certificates.
    CertificateSigning,
    /// The room on the node of a pod that is resized.
    PodResizeValidator,
    /// The namespaces in which a claim may have devices for administrators.
    DeviceAdminAccess,
    /// The charge for a change.
    ResourceQuota(Charge),
}

impl Plugin {
    /// Upstream's name of the plug-in. Two that are one plug-in upstream have the same name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LimitRanger(_) => "LimitRanger",
            Self::ServiceAccount => "ServiceAccount",
            Self::TaintNodesByCondition => "TaintNodesByCondition",
            Self::Priority | Self::PriorityClassDefault => "Priority",
            Self::DefaultTolerationSeconds => "DefaultTolerationSeconds",
            Self::StorageObjectInUseProtection(_) => "StorageObjectInUseProtection",
            Self::RuntimeClass => "RuntimeClass",
            Self::CertificateSigning => "CertificateSigning",
            Self::PodResizeValidator => "PodResizeValidator",
            // Part of the registry upstream: nobody can switch it off.
            Self::DeviceAdminAccess => "",
            Self::ResourceQuota(_) => "ResourceQuota",
        }
    }
}

/// A sort of object that limit ranges limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limited {
    /// Pods.
    Pod,
    /// Persistent volume claims.
    Claim,
}

/// The changes of an object for which quotas are charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Charge {
    /// Those of the whole object.
    MainPath,
    /// Those of a pod: the main path changes its scopes, its resize the amounts of its containers.
    Pod,
}

/// The objects of a kind that a node may write: those about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeRule {
    /// Other rules say.
    #[default]
    Any,
    /// Pods that are bound to it.
    Pod,
    /// Its Node.
    Node,
    /// The status of persistent volume claims.
    Claim,
    /// Its lease.
    Lease,
    /// Its CSINode.
    StorageNode,
    /// Resource slices of its devices.
    Slice,
    /// Requests for its certificates.
    SigningRequest,
}

/// The way in which an object gives rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantSort {
    /// It lists them.
    Role,
    /// It gives those of a role to somebody.
    Binding,
    /// It shows the parameters of a policy.
    PolicyParams,
    /// It names the parameters of a policy of this resource of the same group.
    PolicyParamRef(&'static str),
}

/// A question about users and rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Review {
    /// May I?
    SelfSubjectAccess,
    /// May somebody?
    SubjectAccess,
    /// May somebody in this namespace?
    LocalSubjectAccess,
    /// What may I?
    SelfSubjectRules,
    /// Who am I?
    SelfSubject,
    /// Whose token is this?
    Token,
}
