//! All controllers by upstream's names, and the choice among them.

use std::{collections::BTreeSet, sync::Arc};

use windlass_core::Prune;
use windlass_runtime::Manager;

use crate::dynamic_resources::DynamicResources;
use crate::volume_binding::VolumeBinding;
use crate::{
    certificates, claims, clusterrole_aggregation, cronjob, daemonset, deployment,
    device_taint_eviction, disruption, driver, dynamic_resources, endpoints, endpointslice,
    endpointslice_mirroring, garbage_collector, job, namespace, node, node_lifecycle, pod_gc,
    pretend_provisioner, pv_binder, pvcprotection, pvprotection, replicaset, replicationcontroller,
    resourcequota, root_ca, scheduler, service_account, service_account_tokens, statefulset,
    taint_eviction, ttl_after_finished,
};

/// How many workers each controller has, and what else can be set.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Of ReplicaSets and ReplicationControllers.
    pub replicaset: replicaset::Options,
    /// Of Deployments.
    pub deployment: deployment::Options,
    /// Of DaemonSets.
    pub daemonset: daemonset::Options,
    /// Of StatefulSets.
    pub statefulset: statefulset::Options,
    /// Of Jobs.
    pub job: job::Options,
    /// Of CronJobs.
    pub cronjob: cronjob::Options,
    /// Of the deletion of Jobs that have finished.
    pub ttl_after_finished: ttl_after_finished::Options,
    /// Of the removal of pods that nobody else removes.
    pub pod_gc: pod_gc::Options,
    /// Of requests for certificates, and the authority that signs them.
    pub certificates: certificates::Options,
    /// Of ClusterRoles with an aggregation rule.
    pub clusterrole_aggregation: clusterrole_aggregation::Options,
    /// Of the eviction of pods from tainted devices.
    pub device_taint_eviction: device_taint_eviction::Options,
    /// Of PodDisruptionBudgets.
    pub disruption: disruption::Options,
    /// Of the health of nodes.
    pub node_lifecycle: node_lifecycle::Options,
    /// Of the binding of claims and volumes.
    pub pv_binder: pv_binder::Options,
    /// Of volumes that exist only in the API.
    pub pretend_provisioner: pretend_provisioner::Options,
    /// Of the eviction of pods from tainted nodes.
    pub taint_eviction: taint_eviction::Options,
    /// Of EndpointSlices.
    pub endpointslice: endpointslice::Options,
    /// Of EndpointSlices for Endpoints that no selector makes.
    pub endpointslice_mirroring: endpointslice_mirroring::Options,
    /// Of Endpoints.
    pub endpoints: endpoints::Options,
    /// Of the garbage collector.
    pub garbage_collector: garbage_collector::Options,
    /// Of namespaces.
    pub namespace: namespace::Options,
    /// Of the service account of each namespace.
    pub service_account: service_account::Options,
    /// Of tokens that are kept in Secrets.
    pub service_account_tokens: service_account_tokens::Options,
    /// Of the certificates in each namespace.
    pub root_ca: root_ca::Options,
    /// Of ResourceClaims.
    pub claims: claims::Options,
    /// Of the protection of claims that are in use.
    pub pvcprotection: pvcprotection::Options,
    /// Of the protection of volumes that are in use.
    pub pvprotection: pvprotection::Options,
    /// Of ResourceQuotas.
    pub resourcequota: resourcequota::Options,
    /// Of the scheduler.
    pub scheduler: scheduler::Options,
    /// Of the part of the scheduler that allocates devices.
    pub dynamic_resources: dynamic_resources::Options,
    /// Of the nodes on which no container runs.
    pub node: node::Options,
    /// Of the devices of those nodes.
    pub driver: driver::Options,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            replicaset: replicaset::Options::default(),
            deployment: deployment::Options::default(),
            daemonset: daemonset::Options::default(),
            statefulset: statefulset::Options::default(),
            job: job::Options::default(),
            cronjob: cronjob::Options::default(),
            ttl_after_finished: ttl_after_finished::Options::default(),
            pod_gc: pod_gc::Options::default(),
            certificates: certificates::Options::default(),
            clusterrole_aggregation: clusterrole_aggregation::Options::default(),
            device_taint_eviction: device_taint_eviction::Options::default(),
            disruption: disruption::Options::default(),
            node_lifecycle: node_lifecycle::Options::default(),
            pv_binder: pv_binder::Options::default(),
            pretend_provisioner: pretend_provisioner::Options::default(),
            taint_eviction: taint_eviction::Options::default(),
            endpointslice: endpointslice::Options::default(),
            endpointslice_mirroring: endpointslice_mirroring::Options::default(),
            endpoints: endpoints::Options::default(),
            garbage_collector: garbage_collector::Options::default(),
            namespace: namespace::Options::default(),
            service_account: service_account::Options::default(),
            service_account_tokens: service_account_tokens::Options::default(),
            root_ca: root_ca::Options::new(""),
            claims: claims::Options::default(),
            pvcprotection: pvcprotection::Options::default(),
            pvprotection: pvprotection::Options::default(),
            resourcequota: resourcequota::Options::default(),
            scheduler: scheduler::Options::default(),
            dynamic_resources: dynamic_resources::Options::default(),
            node: node::Options::default(),
            driver: driver::Options::default(),
        }
    }
}

/// One controller.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Upstream's name.
    pub name: &'static str,
    /// Whether `*` means this one too. What only an embedded cluster needs must be named.
    pub is_default: bool,
    /// The part of the specs of pods that it reads from its cache.
    pod_spec: PodSpec,
    add: fn(&Manager, &Settings),
}

/// The part of the specs of pods that a controller reads from its cache.
#[derive(Clone, Copy, Debug)]
enum PodSpec {
    /// These fields, which are declared beside the code that reads them.
    Fields(&'static [&'static str]),
    /// All of it.
    Whole,
}

/// A name that no controller has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownController(pub String);

impl std::fmt::Display for UnknownController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known: Vec<_> = ALL.iter().map(|entry| entry.name).collect();
        let (name, known) = (&self.0, known.join(", "));
        write!(
            f,
            "{name:?} is not in the list of known controllers: {known}"
        )
    }
}

impl std::error::Error for UnknownController {}

/// All controllers.
pub const ALL: &[Entry] = &[
    Entry {
        name: certificates::APPROVING,
        is_default: true,
        pod_spec: PodSpec::Fields(&[]),
        add: |manager, settings| certificates::add_approving_to(manager, &settings.certificates),
    },
    Entry {
        name: certificates::CLEANER,
        is_default: true,
        pod_spec: PodSpec::Fields(&[]),
        add: |manager, _| certificates::add_cleaner_to(manager),
    },
    Entry {
        name: certificates::SIGNING,
        is_default: true,
        pod_spec: PodSpec::Fields(&[]),
        add: |manager, settings| certificates::add_signing_to(manager, &settings.certificates),
    },
    Entry {
        name: clusterrole_aggregation::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(&[]),
        add: |manager, settings| {
            clusterrole_aggregation::add_to(manager, &settings.clusterrole_aggregation);
        },
    },
    Entry {
        name: cronjob::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(&[]),
        add: |manager, settings| cronjob::add_to(manager, &settings.cronjob),
    },
    Entry {
        name: daemonset::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(daemonset::POD_SPEC_FIELDS),
        add: |manager, settings| daemonset::add_to(manager, &settings.daemonset),
    },
    Entry {
        name: deployment::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(&[]),
        add: |manager, settings| deployment::add_to(manager, &settings.deployment),
    },
    Entry {
        name: device_taint_eviction::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(device_taint_eviction::POD_SPEC_FIELDS),
        add: |manager, settings| {
            device_taint_eviction::add_to(manager, &settings.device_taint_eviction);
        },
    },
    Entry {
        name: disruption::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(disruption::POD_SPEC_FIELDS),
        add: |manager, settings| disruption::add_to(manager, &settings.disruption),
    },
    Entry {
        name: endpointslice::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(endpointslice::POD_SPEC_FIELDS),
        add: |manager, settings| endpointslice::add_to(manager, &settings.endpointslice),
    },
    Entry {
        name: endpointslice_mirroring::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(&[]),
        add: |manager, settings| {
            endpointslice_mirroring::add_to(manager, &settings.endpointslice_mirroring);
        },
    },
    Entry {
        name: endpoints::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(endpoints::POD_SPEC_FIELDS),
        add: |manager, settings| endpoints::add_to(manager, &settings.endpoints),
    },
    Entry {
        name: garbage_collector::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(&[]),
        add: |manager, settings| garbage_collector::add_to(manager, &settings.garbage_collector),
    },
    Entry {
        name: job::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(job::POD_SPEC_FIELDS),
        add: |manager, settings| job::add_to(manager, &settings.job),
    },
    Entry {
        name: namespace::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(&[]),
        add: |manager, settings| namespace::add_to(manager, &settings.namespace),
    },
    Entry {
        name: node_lifecycle::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(node_lifecycle::POD_SPEC_FIELDS),
        add: |manager, settings| node_lifecycle::add_to(manager, &settings.node_lifecycle),
    },
    Entry {
        name: pod_gc::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(pod_gc::POD_SPEC_FIELDS),
        add: |manager, settings| pod_gc::add_to(manager, &settings.pod_gc),
    },
    Entry {
        name: pv_binder::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(pv_binder::POD_SPEC_FIELDS),
        add: |manager, settings| pv_binder::add_to(manager, &settings.pv_binder),
    },
    Entry {
        name: pvprotection::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(&[]),
        add: |manager, settings| pvprotection::add_to(manager, &settings.pvprotection),
    },
    Entry {
        name: pvcprotection::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(pvcprotection::POD_SPEC_FIELDS),
        add: |manager, settings| pvcprotection::add_to(manager, &settings.pvcprotection),
    },
    Entry {
        name: replicaset::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(windlass_workloads::POD_SPEC_FIELDS),
        add: |manager, settings| replicaset::add_to(manager, &settings.replicaset),
    },
    Entry {
        name: replicationcontroller::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(windlass_workloads::POD_SPEC_FIELDS),
        add: |manager, settings| replicationcontroller::add_to(manager, &settings.replicaset),
    },
    Entry {
        name: claims::NAME,
        is_default: true,
        pod_spec: PodSpec::Whole,
        add: |manager, settings| claims::add_to(manager, &settings.claims),
    },
    Entry {
        name: resourcequota::NAME,
        is_default: true,
        pod_spec: PodSpec::Whole,
        add: |manager, settings| resourcequota::add_to(manager, &settings.resourcequota),
    },
    Entry {
        name: root_ca::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(&[]),
        add: |manager, settings| root_ca::add_to(manager, &settings.root_ca),
    },
    Entry {
        name: service_account::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(&[]),
        add: |manager, settings| service_account::add_to(manager, &settings.service_account),
    },
    Entry {
        name: service_account_tokens::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(&[]),
        add: |manager, settings| {
            service_account_tokens::add_to(manager, &settings.service_account_tokens);
        },
    },
    Entry {
        name: statefulset::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(statefulset::POD_SPEC_FIELDS),
        add: |manager, settings| statefulset::add_to(manager, &settings.statefulset),
    },
    Entry {
        name: taint_eviction::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(taint_eviction::POD_SPEC_FIELDS),
        add: |manager, settings| taint_eviction::add_to(manager, &settings.taint_eviction),
    },
    Entry {
        name: ttl_after_finished::NAME,
        is_default: true,
        pod_spec: PodSpec::Fields(&[]),
        add: |manager, settings| {
            ttl_after_finished::add_to(manager, &settings.ttl_after_finished);
        },
    },
    Entry {
        name: scheduler::NAME,
        is_default: false,
        pod_spec: PodSpec::Whole,
        add: add_scheduler,
    },
    Entry {
        name: pretend_provisioner::NAME,
        is_default: false,
        pod_spec: PodSpec::Fields(&[]),
        add: |manager, settings| {
            pretend_provisioner::add_to(manager, &settings.pretend_provisioner);
        },
    },
    Entry {
        name: node::NAME,
        is_default: false,
        pod_spec: PodSpec::Whole,
        add: add_nodes,
    },
];

/// The scheduler knows of volumes and devices by plug-ins.
fn add_scheduler(manager: &Manager, settings: &Settings) {
    let mut options = settings.scheduler.clone();
    options.plugins.push(Arc::new(VolumeBinding::new(manager)));
    let devices = DynamicResources::new(manager, &settings.dynamic_resources);
    options.plugins.push(Arc::new(devices));
    scheduler::add_to(manager, &options);
}

/// Nodes with devices have a driver for them.
fn add_nodes(manager: &Manager, settings: &Settings) {
    let mut options = settings.node.clone();
    if settings.driver.devices_per_node > 0 && options.resources.is_none() {
        options.resources = Some(driver::add_to(manager, &settings.driver));
    }
    node::add_to(manager, &options);
}

impl Entry {
    /// Adds the controller to a manager.
    pub fn add_to(&self, manager: &Manager, settings: &Settings) {
        (self.add)(manager, settings);
    }
}

/// The fields of cached pods that none of these controllers reads.
#[must_use]
pub fn prune_pods(entries: &[&Entry]) -> Prune {
    let is_read = |field: &str| {
        entries.iter().any(|entry| match entry.pod_spec {
            PodSpec::Whole => true,
            PodSpec::Fields(fields) => fields.contains(&field),
        })
    };
    let unread = POD_SPEC.iter().filter(|field| !is_read(field));
    unread.fold(Prune::managed_fields(), |prune, field| {
        prune.and(&format!("spec.{field}"))
    })
}

/// The fields that make up most of a pod.
const POD_SPEC: [&str; 12] = [
    "affinity",
    "containers",
    "ephemeralContainers",
    "hostAliases",
    "imagePullSecrets",
    "initContainers",
    "nodeSelector",
    "overhead",
    "securityContext",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
];

/// Returns true if these controllers look after the finalizers that protect volumes and claims in
/// use. A server may set them then.
#[must_use]
pub fn protects_storage(entries: &[&Entry]) -> bool {
    [pvprotection::NAME, pvcprotection::NAME]
        .iter()
        .all(|name| entries.iter().any(|entry| entry.name == *name))
}

/// Returns true if pretend nodes are among these controllers. A server may report their resource
/// metrics then.
#[must_use]
pub fn has_pretend_nodes(entries: &[&Entry]) -> bool {
    entries.iter().any(|entry| entry.name == node::NAME)
}

/// The controllers that words choose: `*` for all that are on by default, `name` for one, `-name`
/// for all but one.
///
/// # Errors
/// When a word names no controller.
pub fn select(words: &[impl AsRef<str>]) -> Result<Vec<&'static Entry>, UnknownController> {
    let mut said = BTreeSet::new();
    for word in words.iter().map(AsRef::as_ref) {
        let name = word.strip_prefix('-').unwrap_or(word);
        if word != "*" && ALL.iter().all(|entry| entry.name != name) {
            return Err(UnknownController(name.to_owned()));
        }
        said.insert(word);
    }
    let is_chosen = |entry: &&Entry| {
        let is_off = said.contains(format!("-{}", entry.name).as_str());
        let is_on = said.contains(entry.name) || (entry.is_default && said.contains("*"));
        is_on && !is_off
    };
    Ok(ALL.iter().filter(is_chosen).collect())
}

/// The controllers of an embedded cluster: as [`select`], but `*` means those as well that a real
/// cluster has of its own, such as its nodes.
///
/// # Errors
/// When a word names no controller.
pub fn select_embedded(
    words: &[impl AsRef<str>],
) -> Result<Vec<&'static Entry>, UnknownController> {
    let mut words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    if words.contains(&"*") {
        words.extend(ALL.iter().map(|entry| entry.name));
    }
    select(&words)
}

#[cfg(test)]
mod tests {
    use windlass_core::{Doc, doc};

    use super::*;

    fn names(words: &[&str]) -> Vec<&'static str> {
        let chosen = select(words).unwrap();
        chosen.into_iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn a_star_means_all_that_are_on_by_default() {
        let defaults = ALL.iter().filter(|entry| entry.is_default);
        let defaults: Vec<_> = defaults.map(|entry| entry.name).collect();
        assert_eq!(names(&["*"]), defaults);
        let without = names(&["*", "-deployment-controller"]);
        assert_eq!(without.len(), defaults.len() - 1);
        assert!(!without.contains(&"deployment-controller"));
    }

    #[test]
    fn single_controllers_are_named() {
        assert_eq!(names(&["replicaset-controller"]), ["replicaset-controller"]);
    }

    #[test]
    fn specs_of_pods_are_cached_for_those_who_read_them() {
        let pod = doc!({
            "metadata": { "name": "a", "managedFields": [] },
            "spec": {
                "nodeName": "n", "containers": [{ "name": "c" }],
                "initContainers": [{ "name": "i" }], "volumes": []
            }
        });
        let cached = |words: &[&str]| prune_pods(&select(words).unwrap()).apply(&pod);
        let brief = doc!({
            "metadata": { "name": "a" },
            "spec": { "nodeName": "n", "initContainers": [{ "name": "i" }] }
        });
        let sets = ["replicaset-controller", "deployment-controller"];
        assert_eq!(cached(&sets), brief);
        let whole = pod.without("/metadata/managedFields").unwrap();
        assert_eq!(cached(&["*"]), whole);
        assert_eq!(cached(&["replicaset-controller", "scheduler"]), whole);
    }

    #[test]
    fn sidecar_restarts_rank_pods_alike_in_a_pruned_cache() {
        let pod = |restarts: i64| {
            doc!({
                "metadata": { "name": "a", "uid": "u" },
                "spec": {
                    "nodeName": "n",
                    "containers": [{ "name": "c" }],
                    "initContainers": [{ "name": "sidecar", "restartPolicy": "Always" }]
                },
                "status": {
                    "phase": "Running",
                    "initContainerStatuses": [{ "name": "sidecar", "restartCount": restarts }]
                }
            })
        };
        let prune = prune_pods(&select(&["replicaset-controller"]).unwrap());
        let now = windlass_core::Time::from_unix(0);
        let rank = |pod: &Doc| windlass_workloads::DeletionRank::of(pod, 0, now);
        assert!(rank(&pod(5)) < rank(&pod(0)), "more restarts go first");
        for restarts in [0, 5] {
            let whole = pod(restarts);
            assert_eq!(rank(&prune.apply(&whole)), rank(&whole));
        }
    }

    #[test]
    fn names_are_unique_and_unknown_ones_refused() {
        let unique: BTreeSet<_> = ALL.iter().map(|entry| entry.name).collect();
        assert_eq!(unique.len(), ALL.len());
        let error = select(&["*", "-replicaset"]).unwrap_err();
        assert_eq!(error, UnknownController("replicaset".to_owned()));
        assert!(error.to_string().contains("replicaset-controller"));
    }
}
