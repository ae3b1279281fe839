//! What single kinds do beyond the rules of their rows: defaults, preparation, validation.

mod admission_policies;
mod apps;
mod autoscaler;
mod batch;
mod cluster;
mod component;
mod config;
mod device;
mod event;
mod flow;
mod limit_range;
mod namespace;
mod network;
mod pod;
mod pod_annotations;
mod pod_containers;
mod pod_env;
mod pod_gated;
mod pod_network;
mod pod_nodes;
mod pod_probes;
mod pod_resize;
mod pod_resources;
mod pod_security;
mod pod_spec;
mod pod_status;
mod pod_terms;
mod pod_volumes;
mod policy;
mod rbac;
mod registration;
mod resource_metrics;
mod resource_quota;
mod runtime_class;
mod service;
mod service_cidr;
mod signing;
mod storage;
mod webhooks;
mod workload;

pub use admission_policies::{
    MutatingPolicies, MutatingPolicyBindings, ValidatingPolicies, ValidatingPolicyBindings,
};
pub use apps::{DaemonSets, Deployments, ReplicaSets, ReplicationControllers, StatefulSets};
pub use autoscaler::{
    Autoscalers, CONVERSION as AUTOSCALER_CONVERSION, OldAutoscalers, in_version_2,
};
pub use batch::{CronJobs, Jobs};
pub use cluster::{Leases, Nodes, PriorityClasses};
pub use component::Components;
pub use config::{ConfigMaps, Secrets};
pub use device::{
    DeviceClasses, ResourceClaimTemplates, ResourceClaims, ResourceSlices, check_admin_allocation,
};
pub use event::{
    CONVERSION as EVENT_CONVERSION, Events, FIELDS as EVENT_FIELDS, NEW_FIELDS as NEW_EVENT_FIELDS,
};
pub use flow::{FlowSchemas, PriorityLevels};
pub use limit_range::LimitRanges;
pub use namespace::Namespaces;
pub use network::{
    EndpointSlices, Endpoints, Ingresses, NetworkPolicies, Services, wants_node_ports,
};
pub use pod::{FIELDS as POD_FIELDS, Pods};
pub use policy::DisruptionBudgets;
pub use rbac::{RoleBindings, Roles};
pub use registration::ApiServices;
pub use resource_metrics::{CPU_USAGE, MEMORY_USAGE, NodeMetrics, PodMetrics};
pub use resource_quota::ResourceQuotas;
pub use runtime_class::RuntimeClasses;
pub use service_cidr::{IpAddresses, ServiceCidrs, address_fault};
pub use signing::SigningRequests;
pub use storage::{Attachments, Claims, CsiDrivers, StorageClasses, Volumes};
pub use webhooks::{MutatingWebhooks, ValidatingWebhooks, validate_review_versions};
pub use workload::PodTemplates;
