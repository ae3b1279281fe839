//! The columns of the built-in kinds.

use super::cells;
use super::{Cell, Column};

const fn text(name: &'static str, cell: Cell) -> Column {
    Column {
        name,
        sort: "string",
        priority: 0,
        cell,
    }
}

const fn wide(name: &'static str, cell: Cell) -> Column {
    Column {
        name,
        sort: "string",
        priority: 1,
        cell,
    }
}

const fn number(name: &'static str, pointer: &'static str) -> Column {
    Column {
        name,
        sort: "integer",
        priority: 0,
        cell: Cell::At(pointer),
    }
}

const fn flag(name: &'static str, pointer: &'static str) -> Column {
    Column {
        name,
        sort: "boolean",
        priority: 0,
        cell: Cell::At(pointer),
    }
}

/// A number that upstream declares as a text.
const fn count(name: &'static str, cell: Cell) -> Column {
    Column {
        name,
        sort: "string",
        priority: 0,
        cell,
    }
}

const NAME: Column = text("Name", Cell::Name);
const AGE_COLUMN: Column = text("Age", Cell::Since("/metadata/creationTimestamp"));
const CONTAINERS: Column = wide("Containers", Cell::Made(cells::template_containers));
const IMAGES: Column = wide("Images", Cell::Made(cells::template_images));
const SELECTOR: Column = wide("Selector", Cell::Made(cells::selector));

pub(crate) const AGE: &[Column] = &[NAME, AGE_COLUMN];

pub(crate) const CREATED_AT: &[Column] = &[
    NAME,
    Column {
        name: "Created At",
        sort: "date",
        priority: 0,
        cell: Cell::At("/metadata/creationTimestamp"),
    },
];

pub(crate) const NAMESPACE: &[Column] =
    &[NAME, text("Status", Cell::At("/status/phase")), AGE_COLUMN];

pub(crate) const POD: &[Column] = &[
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

pub(crate) const DEPLOYMENT: &[Column] = &[
    NAME,
    text("Ready", Cell::Made(cells::ready_of_wanted)),
    count("Up-to-date", Cell::Made(cells::updated)),
    count("Available", Cell::Made(cells::available)),
    AGE_COLUMN,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(crate) const REPLICA_SET: &[Column] = &[
    NAME,
    number("Desired", "/spec/replicas"),
    number("Current", "/status/replicas"),
    number("Ready", "/status/readyReplicas"),
    AGE_COLUMN,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(crate) const STATEFUL_SET: &[Column] = &[
    NAME,
    text("Ready", Cell::Made(cells::ready_of_wanted)),
    AGE_COLUMN,
    CONTAINERS,
    IMAGES,
];

pub(crate) const DAEMON_SET: &[Column] = &[
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

pub(crate) const JOB: &[Column] = &[
    NAME,
    text("Status", Cell::Made(cells::job_status)),
    text("Completions", Cell::Made(cells::job_completions)),
    text("Duration", Cell::MadeNow(cells::job_duration)),
    AGE_COLUMN,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(crate) const CRON_JOB: &[Column] = &[
    NAME,
    text("Schedule", Cell::At("/spec/schedule")),
    text("Timezone", Cell::At("/spec/timeZone")),
    flag("Suspend", "/spec/suspend"),
    Column {
        name: "Active",
        sort: "integer",
        priority: 0,
        cell: Cell::Made(cells::active_jobs),
    },
    text("Last Schedule", Cell::Since("/status/lastScheduleTime")),
    AGE_COLUMN,
];

pub(crate) const SERVICE: &[Column] = &[
    NAME,
    text("Type", Cell::At("/spec/type")),
    text("Cluster-IP", Cell::At("/spec/clusterIP")),
    text("External-IP", Cell::Made(cells::external_addresses)),
    text("Port(s)", Cell::Made(cells::service_ports)),
    AGE_COLUMN,
    wide("Selector", Cell::Made(cells::plain_selector)),
];

pub(crate) const ENDPOINTS: &[Column] = &[
    NAME,
    text("Endpoints", Cell::Made(cells::endpoints)),
    AGE_COLUMN,
];

pub(crate) const ENDPOINT_SLICE: &[Column] = &[
    NAME,
    text("AddressType", Cell::At("/addressType")),
    text("Ports", Cell::Made(cells::slice_ports)),
    text("Endpoints", Cell::Made(cells::slice_addresses)),
    AGE_COLUMN,
];

pub(crate) const INGRESS: &[Column] = &[
    NAME,
    text("Class", Cell::At("/spec/ingressClassName")),
    text("Hosts", Cell::Made(cells::ingress_hosts)),
    text("Address", Cell::Made(cells::ingress_address)),
    text("Ports", Cell::Made(cells::ingress_ports)),
    AGE_COLUMN,
];

pub(crate) const NODE: &[Column] = &[
    NAME,
    text("Status", Cell::Made(cells::node_status)),
    text("Roles", Cell::Made(cells::node_roles)),
    AGE_COLUMN,
    text("Version", Cell::At("/status/nodeInfo/kubeletVersion")),
];

pub(crate) const EVENT: &[Column] = &[
    text("Last Seen", Cell::MadeNow(cells::event_last_seen)),
    text("Type", Cell::At("/type")),
    text("Reason", Cell::At("/reason")),
    text("Object", Cell::Made(cells::event_object)),
    wide("Subobject", Cell::At("/involvedObject/fieldPath")),
    wide("Source", Cell::Made(cells::event_source)),
    text("Message", Cell::Made(cells::event_message)),
    wide("First Seen", Cell::Since("/firstTimestamp")),
    Column {
        name: "Count",
        sort: "integer",
        priority: 1,
        cell: Cell::At("/count"),
    },
    wide("Name", Cell::Name),
];

pub(crate) const CONFIG_MAP: &[Column] = &[
    NAME,
    count("Data", Cell::Made(cells::data_count)),
    AGE_COLUMN,
];

pub(crate) const SECRET: &[Column] = &[
    NAME,
    text("Type", Cell::At("/type")),
    count("Data", Cell::Made(cells::data_count)),
    AGE_COLUMN,
];

pub(crate) const PERSISTENT_VOLUME: &[Column] = &[
    NAME,
    text("Capacity", Cell::At("/spec/capacity/storage")),
    text("Access Modes", Cell::Made(cells::access_modes)),
    text(
        "Reclaim Policy",
        Cell::At("/spec/persistentVolumeReclaimPolicy"),
    ),
    text("Status", Cell::At("/status/phase")),
    text("Claim", Cell::Made(cells::claim_ref)),
    text("StorageClass", Cell::At("/spec/storageClassName")),
    text(
        "VolumeAttributesClass",
        Cell::At("/spec/volumeAttributesClassName"),
    ),
    text("Reason", Cell::At("/status/reason")),
    AGE_COLUMN,
    wide("VolumeMode", Cell::At("/spec/volumeMode")),
];

pub(crate) const PERSISTENT_VOLUME_CLAIM: &[Column] = &[
    NAME,
    text("Status", Cell::At("/status/phase")),
    text("Volume", Cell::At("/spec/volumeName")),
    text("Capacity", Cell::At("/status/capacity/storage")),
    text("Access Modes", Cell::Made(cells::access_modes)),
    text("StorageClass", Cell::At("/spec/storageClassName")),
    text(
        "VolumeAttributesClass",
        Cell::At("/spec/volumeAttributesClassName"),
    ),
    AGE_COLUMN,
    wide("VolumeMode", Cell::At("/spec/volumeMode")),
];

pub(crate) const DISRUPTION_BUDGET: &[Column] = &[
    NAME,
    text("Min Available", Cell::At("/spec/minAvailable")),
    text("Max Unavailable", Cell::At("/spec/maxUnavailable")),
    number("Allowed Disruptions", "/status/disruptionsAllowed"),
    AGE_COLUMN,
];

pub(crate) const ROLE_BINDING: &[Column] =
    &[NAME, text("Role", Cell::Made(cells::role_ref)), AGE_COLUMN];

pub(crate) const LEASE: &[Column] = &[
    NAME,
    text("Holder", Cell::At("/spec/holderIdentity")),
    AGE_COLUMN,
];

pub(crate) const RESOURCE_CLAIM: &[Column] = &[
    NAME,
    text("State", Cell::Made(cells::claim_state)),
    AGE_COLUMN,
];

pub(crate) const RESOURCE_SLICE: &[Column] = &[
    NAME,
    text("Node", Cell::At("/spec/nodeName")),
    text("Driver", Cell::At("/spec/driver")),
    text("Pool", Cell::At("/spec/pool/name")),
    AGE_COLUMN,
];

pub(crate) const PRIORITY_CLASS: &[Column] = &[
    NAME,
    number("Value", "/value"),
    flag("Global-Default", "/globalDefault"),
    AGE_COLUMN,
    text("PreemptionPolicy", Cell::At("/preemptionPolicy")),
];

pub(crate) const STORAGE_CLASS: &[Column] = &[
    NAME,
    text("Provisioner", Cell::At("/provisioner")),
    text("ReclaimPolicy", Cell::At("/reclaimPolicy")),
    text("VolumeBindingMode", Cell::At("/volumeBindingMode")),
    flag("AllowVolumeExpansion", "/allowVolumeExpansion"),
    AGE_COLUMN,
];
