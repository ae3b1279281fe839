//! The columns of the built-in kinds.

use std::borrow::Cow;

use super::cells;
use super::more_cells as more;
use super::{Cell, Column};

const fn text(name: &'static str, cell: Cell) -> Column {
    Column {
        name: Cow::Borrowed(name),
        sort: Cow::Borrowed("string"),
        priority: 0,
        cell,
    }
}

const fn wide(name: &'static str, cell: Cell) -> Column {
    Column {
        name: Cow::Borrowed(name),
        sort: Cow::Borrowed("string"),
        priority: 1,
        cell,
    }
}

const fn number(name: &'static str, pointer: &'static str) -> Column {
    Column {
        name: Cow::Borrowed(name),
        sort: Cow::Borrowed("integer"),
        priority: 0,
        cell: Cell::At(pointer),
    }
}

const fn flag(name: &'static str, pointer: &'static str) -> Column {
    Column {
        name: Cow::Borrowed(name),
        sort: Cow::Borrowed("boolean"),
        priority: 0,
        cell: Cell::At(pointer),
    }
}

/// A number that upstream declares as a text.
const fn count(name: &'static str, cell: Cell) -> Column {
    Column {
        name: Cow::Borrowed(name),
        sort: Cow::Borrowed("string"),
        priority: 0,
        cell,
    }
}

const NAME: Column = text("Name", Cell::Name);
const AGE_COLUMN: Column = text("Age", Cell::Since("/metadata/creationTimestamp"));
const CONTAINERS: Column = wide("Containers", Cell::Made(cells::template_containers));
const IMAGES: Column = wide("Images", Cell::Made(cells::template_images));
const SELECTOR: Column = wide("Selector", Cell::Made(cells::selector));

/// The columns of kinds that show their age alone.
pub const AGE: &[Column] = &[NAME, AGE_COLUMN];

/// Custom resources that name no columns.
pub const CUSTOM: &[Column] = &[
    NAME,
    Column {
        name: Cow::Borrowed("Age"),
        sort: Cow::Borrowed("date"),
        priority: 0,
        cell: Cell::Since("/metadata/creationTimestamp"),
    },
];

/// The columns of kinds that show the time of their creation.
pub const CREATED_AT: &[Column] = &[
    NAME,
    Column {
        name: Cow::Borrowed("Created At"),
        sort: Cow::Borrowed("date"),
        priority: 0,
        cell: Cell::At("/metadata/creationTimestamp"),
    },
];

/// The columns of Namespaces.
pub const NAMESPACE: &[Column] = &[NAME, text("Status", Cell::At("/status/phase")), AGE_COLUMN];

/// The columns of Pods.
pub const POD: &[Column] = &[
    NAME,
    text("Ready", Cell::Made(cells::pod_ready)),
    text("Status", Cell::Made(cells::pod_status)),
    text("Restarts", Cell::MadeNow(cells::pod_restarts)),
    AGE_COLUMN,
    wide("IP", Cell::At("/status/podIP")),
    wide("Node", Cell::At("/spec/nodeName")),
    wide("Nominated Node", Cell::At("/status/nominatedNodeName")),
    wide("Readiness Gates", Cell::Made(cells::pod_gates)),
];

/// The columns of Deployments.
pub const DEPLOYMENT: &[Column] = &[
    NAME,
    text("Ready", Cell::Made(cells::ready_of_wanted)),
    count("Up-to-date", Cell::Made(cells::updated)),
    count("Available", Cell::Made(cells::available)),
    AGE_COLUMN,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

/// The columns of ReplicaSets.
pub const REPLICA_SET: &[Column] = &[
    NAME,
    number("Desired", "/spec/replicas"),
    number("Current", "/status/replicas"),
    number("Ready", "/status/readyReplicas"),
    AGE_COLUMN,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

/// The columns of StatefulSets.
pub const STATEFUL_SET: &[Column] = &[
    NAME,
    text("Ready", Cell::Made(cells::ready_of_wanted)),
    AGE_COLUMN,
    CONTAINERS,
    IMAGES,
];

/// The columns of DaemonSets.
pub const DAEMON_SET: &[Column] = &[
    NAME,
    number("Desired", "/status/desiredNumberScheduled"),
    number("Current", "/status/currentNumberScheduled"),
    number("Ready", "/status/numberReady"),
    number("Up-to-date", "/status/updatedNumberScheduled"),
    number("Available", "/status/numberAvailable"),
    text("Node Selector", Cell::Made(cells::node_selector)),
    AGE_COLUMN,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

/// The columns of Jobs.
pub const JOB: &[Column] = &[
    NAME,
    text("Status", Cell::Made(cells::job_status)),
    text("Completions", Cell::Made(cells::job_completions)),
    text("Duration", Cell::MadeNow(cells::job_duration)),
    AGE_COLUMN,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

/// The columns of CronJobs.
pub const CRON_JOB: &[Column] = &[
    NAME,
    text("Schedule", Cell::At("/spec/schedule")),
    text("Timezone", Cell::At("/spec/timeZone")),
    Column {
        name: Cow::Borrowed("Suspend"),
        sort: Cow::Borrowed("boolean"),
        priority: 0,
        cell: Cell::Made(more::suspended),
    },
    Column {
        name: Cow::Borrowed("Active"),
        sort: Cow::Borrowed("integer"),
        priority: 0,
        cell: Cell::Made(cells::active_jobs),
    },
    text("Last Schedule", Cell::MadeNow(more::last_schedule)),
    AGE_COLUMN,
    wide("Containers", Cell::Made(more::job_containers)),
    wide("Images", Cell::Made(more::job_images)),
    wide("Selector", Cell::Made(more::job_selector)),
];

/// The columns of Services.
pub const SERVICE: &[Column] = &[
    NAME,
    text("Type", Cell::At("/spec/type")),
    text("Cluster-IP", Cell::At("/spec/clusterIP")),
    text("External-IP", Cell::Made(cells::external_addresses)),
    text("Port(s)", Cell::Made(cells::service_ports)),
    AGE_COLUMN,
    wide("Selector", Cell::Made(cells::plain_selector)),
];

/// The columns of Endpoints.
pub const ENDPOINTS: &[Column] = &[
    NAME,
    text("Endpoints", Cell::Made(cells::endpoints)),
    AGE_COLUMN,
];

/// The columns of EndpointSlices.
pub const ENDPOINT_SLICE: &[Column] = &[
    NAME,
    text("AddressType", Cell::At("/addressType")),
    text("Ports", Cell::Made(cells::slice_ports)),
    text("Endpoints", Cell::Made(cells::slice_addresses)),
    AGE_COLUMN,
];

/// The columns of Ingresses.
pub const INGRESS: &[Column] = &[
    NAME,
    text("Class", Cell::At("/spec/ingressClassName")),
    text("Hosts", Cell::Made(cells::ingress_hosts)),
    text("Address", Cell::Made(cells::ingress_address)),
    text("Ports", Cell::Made(cells::ingress_ports)),
    AGE_COLUMN,
];

/// The columns of Nodes.
pub const NODE: &[Column] = &[
    NAME,
    text("Status", Cell::Made(cells::node_status)),
    text("Roles", Cell::Made(cells::node_roles)),
    AGE_COLUMN,
    text("Version", Cell::Made(more::kubelet)),
    wide("Internal-IP", Cell::Made(more::internal_address)),
    wide("External-IP", Cell::Made(more::external_address)),
    wide("OS-Image", Cell::Made(more::os_image)),
    wide("Kernel-Version", Cell::Made(more::kernel)),
    wide("Container-Runtime", Cell::Made(more::container_runtime)),
];

/// The columns of Events.
pub const EVENT: &[Column] = &[
    text("Last Seen", Cell::MadeNow(cells::event_last_seen)),
    text("Type", Cell::At("/type")),
    text("Reason", Cell::At("/reason")),
    text("Object", Cell::Made(cells::event_object)),
    wide("Subobject", Cell::Made(more::event_part)),
    wide("Source", Cell::Made(more::event_source)),
    text("Message", Cell::Made(cells::event_message)),
    wide("First Seen", Cell::MadeNow(more::event_first_seen)),
    wide("Count", Cell::Made(more::event_count)),
    wide("Name", Cell::Name),
];

/// The columns of ConfigMaps.
pub const CONFIG_MAP: &[Column] = &[
    NAME,
    count("Data", Cell::Made(cells::data_count)),
    AGE_COLUMN,
];

/// The columns of Secrets.
pub const SECRET: &[Column] = &[
    NAME,
    text("Type", Cell::At("/type")),
    count("Data", Cell::Made(cells::data_count)),
    AGE_COLUMN,
];

/// The columns of PersistentVolumes.
pub const PERSISTENT_VOLUME: &[Column] = &[
    NAME,
    text("Capacity", Cell::At("/spec/capacity/storage")),
    text("Access Modes", Cell::Made(cells::access_modes)),
    text(
        "Reclaim Policy",
        Cell::At("/spec/persistentVolumeReclaimPolicy"),
    ),
    text("Status", Cell::At("/status/phase")),
    text("Claim", Cell::Made(cells::claim_ref)),
    text("StorageClass", Cell::Made(more::storage_class)),
    text("VolumeAttributesClass", Cell::Made(more::attributes_class)),
    text("Reason", Cell::Made(more::volume_reason)),
    AGE_COLUMN,
    wide("VolumeMode", Cell::At("/spec/volumeMode")),
];

/// The columns of PersistentVolumeClaims.
pub const PERSISTENT_VOLUME_CLAIM: &[Column] = &[
    NAME,
    text("Status", Cell::At("/status/phase")),
    text("Volume", Cell::Made(more::volume_name)),
    text("Capacity", Cell::Made(more::claim_capacity)),
    text("Access Modes", Cell::Made(more::claim_modes)),
    text("StorageClass", Cell::Made(more::storage_class)),
    text("VolumeAttributesClass", Cell::Made(more::attributes_class)),
    AGE_COLUMN,
    wide("VolumeMode", Cell::At("/spec/volumeMode")),
];

/// The columns of PodDisruptionBudgets.
pub const DISRUPTION_BUDGET: &[Column] = &[
    NAME,
    text("Min Available", Cell::Made(more::min_available)),
    text("Max Unavailable", Cell::Made(more::max_unavailable)),
    number("Allowed Disruptions", "/status/disruptionsAllowed"),
    AGE_COLUMN,
];

/// The columns of RoleBindings.
pub const ROLE_BINDING: &[Column] = &[
    NAME,
    text("Role", Cell::Made(cells::role_ref)),
    AGE_COLUMN,
    wide("Users", Cell::Made(more::bound_users)),
    wide("Groups", Cell::Made(more::bound_groups)),
    wide("ServiceAccounts", Cell::Made(more::bound_accounts)),
];

/// The columns of Leases.
pub const LEASE: &[Column] = &[
    NAME,
    text("Holder", Cell::At("/spec/holderIdentity")),
    AGE_COLUMN,
];

/// The columns of ResourceClaims.
pub const RESOURCE_CLAIM: &[Column] = &[
    NAME,
    text("State", Cell::Made(cells::claim_state)),
    AGE_COLUMN,
];

/// The columns of ResourceSlices.
pub const RESOURCE_SLICE: &[Column] = &[
    NAME,
    text("Node", Cell::At("/spec/nodeName")),
    text("Driver", Cell::At("/spec/driver")),
    text("Pool", Cell::At("/spec/pool/name")),
    AGE_COLUMN,
];

/// The columns of PriorityClasses.
pub const PRIORITY_CLASS: &[Column] = &[
    NAME,
    number("Value", "/value"),
    flag("Global-Default", "/globalDefault"),
    AGE_COLUMN,
    text("PreemptionPolicy", Cell::At("/preemptionPolicy")),
];

/// The columns of StorageClasses.
pub const STORAGE_CLASS: &[Column] = &[
    NAME,
    text("Provisioner", Cell::At("/provisioner")),
    text("ReclaimPolicy", Cell::At("/reclaimPolicy")),
    text("VolumeBindingMode", Cell::At("/volumeBindingMode")),
    text("AllowVolumeExpansion", Cell::Made(more::expands)),
    AGE_COLUMN,
];

/// The columns of ResourceQuotas.
pub const RESOURCE_QUOTA: &[Column] = &[
    NAME,
    text("Request", Cell::Made(more::quota_requests)),
    text("Limit", Cell::Made(more::quota_limits)),
    AGE_COLUMN,
];

/// The columns of PodTemplates.
pub const POD_TEMPLATE: &[Column] = &[
    NAME,
    text("Containers", Cell::Made(more::lone_containers)),
    text("Images", Cell::Made(more::lone_images)),
    text("Pod Labels", Cell::Made(more::lone_labels)),
];

/// The columns of ControllerRevisions.
pub const CONTROLLER_REVISION: &[Column] = &[
    NAME,
    text("Controller", Cell::Made(more::controller)),
    text("Revision", Cell::At("/revision")),
    AGE_COLUMN,
];

/// The columns of HorizontalPodAutoscalers.
pub const AUTOSCALER: &[Column] = &[
    NAME,
    text("Reference", Cell::Made(more::scale_target)),
    text("Targets", Cell::Made(more::scale_metrics)),
    text("MinPods", Cell::Made(more::least_replicas)),
    count("MaxPods", Cell::At("/spec/maxReplicas")),
    count("Replicas", Cell::Made(more::scaled_replicas)),
    AGE_COLUMN,
];

/// The columns of Scales.
pub const SCALE: &[Column] = &[
    NAME,
    count("Desired", Cell::Made(more::desired_replicas)),
    count("Available", Cell::At("/status/replicas")),
    AGE_COLUMN,
];

/// The columns of CertificateSigningRequests.
pub const SIGNING_REQUEST: &[Column] = &[
    NAME,
    AGE_COLUMN,
    text("SignerName", Cell::At("/spec/signerName")),
    text("Requestor", Cell::Made(more::requestor)),
    text("RequestedDuration", Cell::Made(more::requested_duration)),
    text("Condition", Cell::Made(more::signing_state)),
];

/// The columns of APIServices.
pub const API_SERVICE: &[Column] = &[
    NAME,
    text("Service", Cell::Made(more::api_service)),
    text("Available", Cell::Made(more::api_available)),
    AGE_COLUMN,
];

/// The columns of ComponentStatuses.
pub const COMPONENT: &[Column] = &[
    NAME,
    text("Status", Cell::Made(more::component_health)),
    text("Message", Cell::Made(more::component_message)),
    text("Error", Cell::Made(more::component_error)),
];

/// The columns of NetworkPolicies.
pub const NETWORK_POLICY: &[Column] = &[
    NAME,
    text("Pod-Selector", Cell::Made(more::policy_selector)),
    AGE_COLUMN,
];

/// The columns of IngressClasses.
pub const INGRESS_CLASS: &[Column] = &[
    NAME,
    text("Controller", Cell::At("/spec/controller")),
    text("Parameters", Cell::Made(more::class_parameters)),
    AGE_COLUMN,
];

/// The columns of CSIDrivers.
pub const CSI_DRIVER: &[Column] = &[
    NAME,
    flag("AttachRequired", "/spec/attachRequired"),
    flag("PodInfoOnMount", "/spec/podInfoOnMount"),
    flag("StorageCapacity", "/spec/storageCapacity"),
    text("TokenRequests", Cell::Made(more::token_audiences)),
    flag("RequiresRepublish", "/spec/requiresRepublish"),
    text("Modes", Cell::Made(more::lifecycle_modes)),
    AGE_COLUMN,
];

/// The columns of CSINodes.
pub const CSI_NODE: &[Column] = &[
    NAME,
    Column {
        name: Cow::Borrowed("Drivers"),
        sort: Cow::Borrowed("integer"),
        priority: 0,
        cell: Cell::Made(more::drivers),
    },
    AGE_COLUMN,
];

/// The columns of VolumeAttachments.
pub const VOLUME_ATTACHMENT: &[Column] = &[
    NAME,
    text("Attacher", Cell::At("/spec/attacher")),
    text("PV", Cell::At("/spec/source/persistentVolumeName")),
    text("Node", Cell::At("/spec/nodeName")),
    flag("Attached", "/status/attached"),
    AGE_COLUMN,
];

/// The columns of RuntimeClasses.
pub const RUNTIME_CLASS: &[Column] = &[NAME, text("Handler", Cell::At("/handler")), AGE_COLUMN];

/// The columns of ServiceCIDRs.
pub const SERVICE_CIDR: &[Column] = &[
    NAME,
    text("CIDRs", Cell::Made(more::service_networks)),
    AGE_COLUMN,
];

/// The columns of IPAddresses.
pub const IP_ADDRESS: &[Column] = &[NAME, text("ParentRef", Cell::Made(more::address_parent))];

/// The columns of FlowSchemas.
pub const FLOW_SCHEMA: &[Column] = &[
    NAME,
    text(
        "PriorityLevel",
        Cell::At("/spec/priorityLevelConfiguration/name"),
    ),
    count("MatchingPrecedence", Cell::At("/spec/matchingPrecedence")),
    text(
        "DistinguisherMethod",
        Cell::At("/spec/distinguisherMethod/type"),
    ),
    AGE_COLUMN,
    text("MissingPL", Cell::Made(more::missing_level)),
];

/// The columns of PriorityLevelConfigurations.
pub const PRIORITY_LEVEL: &[Column] = &[
    NAME,
    text("Type", Cell::At("/spec/type")),
    count(
        "NominalConcurrencyShares",
        Cell::At("/spec/limited/nominalConcurrencyShares"),
    ),
    count(
        "Queues",
        Cell::At("/spec/limited/limitResponse/queuing/queues"),
    ),
    count(
        "HandSize",
        Cell::At("/spec/limited/limitResponse/queuing/handSize"),
    ),
    count(
        "QueueLengthLimit",
        Cell::At("/spec/limited/limitResponse/queuing/queueLengthLimit"),
    ),
    AGE_COLUMN,
];

/// The columns of webhook configurations.
pub const WEBHOOKS: &[Column] = &[
    NAME,
    Column {
        name: Cow::Borrowed("Webhooks"),
        sort: Cow::Borrowed("integer"),
        priority: 0,
        cell: Cell::Made(more::webhooks),
    },
    AGE_COLUMN,
];
