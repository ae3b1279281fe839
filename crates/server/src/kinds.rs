//! What single kinds do beyond the rules of their rows: defaults, preparation, validation.

mod apps;
mod autoscaler;
mod batch;
mod cluster;
mod component;
mod config;
mod device;
mod event;
mod fields;
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
mod pod_resources;
mod pod_security;
mod pod_spec;
mod pod_status;
mod pod_terms;
mod pod_volumes;
mod policy;
mod rbac;
mod registration;
mod resource_quota;
mod service;
mod signing;
mod storage;
mod workload;

pub(crate) use apps::{DaemonSets, Deployments, ReplicaSets, ReplicationControllers, StatefulSets};
pub(crate) use autoscaler::{
    Autoscalers, CONVERSION as AUTOSCALER_CONVERSION, OldAutoscalers, in_version_2,
};
pub(crate) use batch::{CronJobs, Jobs};
pub(crate) use cluster::{Leases, Nodes, PriorityClasses};
pub(crate) use component::Components;
pub(crate) use config::{ConfigMaps, Secrets};
pub(crate) use device::{
    DeviceClasses, ResourceClaimTemplates, ResourceClaims, ResourceSlices, check_admin_allocation,
};
pub(crate) use event::{
    CONVERSION as EVENT_CONVERSION, Events, FIELDS as EVENT_FIELDS, NEW_FIELDS as NEW_EVENT_FIELDS,
};
pub(crate) use fields::edit;
pub(crate) use flow::{FlowSchemas, PriorityLevels};
pub(crate) use limit_range::LimitRanges;
pub(crate) use namespace::Namespaces;
pub(crate) use network::{EndpointSlices, Endpoints, Ingresses, NetworkPolicies, Services};
pub(crate) use pod::{FIELDS as POD_FIELDS, Pods};
pub(crate) use policy::DisruptionBudgets;
pub(crate) use rbac::{RoleBindings, Roles};
pub(crate) use registration::ApiServices;
pub(crate) use resource_quota::ResourceQuotas;
pub(crate) use signing::SigningRequests;
pub(crate) use storage::{Attachments, Claims, CsiDrivers, StorageClasses, Volumes};
pub(crate) use workload::PodTemplates;
