//! A pretend driver: devices that exist only in the API.
//!
//! It publishes a pool of devices for each node, with attributes and capacity, as a driver does
//! that found them there; says of devices that pods have reserved that they are prepared; and
//! takes its slices back when a node goes. The node agent asks it before a pod starts, and it
//! refuses pods whose claims have no devices or are not reserved for them.
//!
//! ```text
//! Node ──▶ ResourceSlices of its pool        ResourceClaim, reserved ──▶ status.devices
//! ```

mod devices;
mod prepare;
mod publish;

use std::{fmt, sync::Arc};

use windlass_cache::Lister;
use windlass_core::{Doc, GroupVersion};
use windlass_runtime::{Controller, Manager, ResourceKind};

use crate::claims::{claim_kind, pod_kind};
pub use devices::gpu;
pub use prepare::Preparer;
use prepare::Reporter;
use publish::Publisher;

/// The name of the controller.
pub const NAME: &str = "pretend-driver";

/// The driver of the devices.
pub const DRIVER: &str = "gpu.windlass.dev";

/// Devices in one slice, at most.
pub const SLICE_DEVICES_LIMIT: usize = 128;

const RESOURCE: GroupVersion = GroupVersion::constant("resource.k8s.io", "v1");

/// Describes the device of this number on a node.
pub type DeviceFn = Arc<dyn Fn(&str, usize) -> Doc + Send + Sync>;

/// Which devices there are.
#[derive(Clone)]
pub struct Options {
    /// How many devices each node has.
    pub devices_per_node: usize,
    /// What they are like; a pretend GPU each.
    pub device: DeviceFn,
    /// The class that is made for them, named as the driver. `None` for none.
    pub class: Option<String>,
    /// Whether the status of claims says that their devices are prepared.
    pub is_reporting: bool,
    /// How many nodes, and how many claims, are worked on at the same time.
    pub workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            devices_per_node: 8,
            device: Arc::new(gpu),
            class: Some(DRIVER.to_owned()),
            is_reporting: true,
            workers: 4,
        }
    }
}

fn node_kind() -> ResourceKind {
    ResourceKind::cluster(GroupVersion::constant("", "v1"), "Node", "nodes")
}

fn slice_kind() -> ResourceKind {
    ResourceKind::cluster(RESOURCE, "ResourceSlice", "resourceslices")
}

fn class_kind() -> ResourceKind {
    ResourceKind::cluster(RESOURCE, "DeviceClass", "deviceclasses")
}

/// Adds the driver to a manager. What it returns is for the agents of the nodes.
pub fn add_to(manager: &Manager, options: &Options) -> Arc<Preparer> {
    let publisher = Arc::new(Publisher::new(manager, options));
    let of_slice = publisher.clone();
    let publish = Controller::of_kind(node_kind(), move |key, cx| {
        let publisher = publisher.clone();
        async move { publisher.sync(&key, &cx).await }
    })
    .named(NAME)
    .workers(options.workers)
    .filter(publish::concerns_slices)
    .watches_kind(slice_kind(), move |slice| of_slice.node_of(slice));
    manager.add(publish);
    let claims: Lister = manager
        .factory()
        .dynamic(claim_kind().gvr().clone())
        .lister();
    if options.is_reporting {
        manager.add(report(options, claims.clone()));
    }
    Arc::new(Preparer::new(claims))
}

fn report(options: &Options, claims: Lister) -> Controller {
    let reporter = Arc::new(Reporter::new(claims));
    Controller::of_kind(claim_kind(), move |key, cx| {
        let reporter = reporter.clone();
        async move { reporter.sync(&key, &cx).await }
    })
    .named(format!("{NAME}-claims"))
    .workers(options.workers)
    .filter(|change| {
        change
            .new
            .is_some_and(|claim| prepare::lacks_report(claim.doc()))
    })
    .reads_kind(pod_kind())
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("devices_per_node", &self.devices_per_node)
            .field("class", &self.class)
            .finish_non_exhaustive()
    }
}
