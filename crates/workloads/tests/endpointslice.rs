//! EndpointSlices, seen by who sends traffic to Services.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

use std::time::Duration;

use windlass_client::{DeleteOptions, Propagation, WriteOptions};
use windlass_core::{Doc, Gvr, doc, merge_patch};
use windlass_testing::Cluster;
use windlass_workloads::endpointslice;

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const SERVICES: Gvr = Gvr::constant("", "v1", "services");
const SLICES: Gvr = Gvr::constant("discovery.k8s.io", "v1", "endpointslices");
const EVENTS: Gvr = Gvr::constant("", "v1", "events");

struct World {
    cluster: Cluster,
}

impl World {
    async fn new() -> Self {
        let cluster = Cluster::start().await;
        for (name, zone) in [("n1", "a"), ("n2", "b")] {
            let node = doc!({ "apiVersion": "v1", "kind": "Node", "metadata": {
                "name": name, "labels": { "topology.kubernetes.io/zone": zone }
            } });
            cluster.create_doc(&node).await;
        }
        cluster.run_with("slices", |manager| {
            endpointslice::add_to(manager, &endpointslice::Options::default());
        });
        Self { cluster }
    }

    async fn service(&self, spec: Doc) -> Doc {
        let base = doc!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": "web", "namespace": "default", "labels": { "team": "x" } },
            "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80, "targetPort": 8080 }] }
        });
        let object = merge_patch(&base, &doc!({ "spec": spec }));
        self.cluster.create_doc(&object).await
    }

    /// A pod with an address, ready or not.
    async fn pod(&self, number: usize, spec: Doc, is_ready: bool) -> Doc {
        let base = doc!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": (format!("p{number}")), "namespace": "default", "labels": { "app": "web" }
            },
            "spec": { "nodeName": "n1", "containers": [{ "name": "c", "image": "i" }] }
        });
        let object = merge_patch(&base, &doc!({ "spec": spec }));
        let pod = self.cluster.create_doc(&object).await;
        let ip = format!("10.0.{}.{}", number / 250, number % 250 + 1);
        self.show(&pod, &[ip.as_str()], is_ready).await
    }

    async fn show(&self, pod: &Doc, addresses: &[&str], is_ready: bool) -> Doc {
        let ips: Vec<Doc> = addresses.iter().map(|ip| doc!({ "ip": (*ip) })).collect();
        let ready = if is_ready { "True" } else { "False" };
        let status = doc!({
            "phase": "Running", "podIP": (addresses[0]), "podIPs": ips,
            "conditions": [{ "type": "Ready", "status": ready }]
        });
        self.cluster.patch_status(pod, status).await
    }

    async fn settle(&self) {
        self.cluster.pass(Duration::from_secs(3)).await;
    }

    async fn slices(&self) -> Vec<Doc> {
        self.settle().await;
        self.cluster.list_docs(&SLICES, "default", "").await
    }

    /// The only slice.
    async fn slice(&self) -> Doc {
        let slices = self.slices().await;
        assert_eq!(slices.len(), 1, "{slices:?}");
        slices[0].clone()
    }

    async fn delete_pod(&self, name: &str, grace: Option<u64>) {
        let options = DeleteOptions {
            grace_period: grace.map(Duration::from_secs),
            ..DeleteOptions::default()
        };
        self.cluster
            .api(&PODS, "default")
            .delete(name, &options)
            .await
            .unwrap();
    }
}

fn sizes(slices: &[Doc]) -> Vec<usize> {
    let all = slices.iter().map(|it| it.at("/endpoints").items().len());
    let mut all: Vec<usize> = all.collect();
    all.sort_unstable();
    all
}

fn conditions(slice: &Doc) -> Vec<[bool; 3]> {
    let all = slice.at("/endpoints").items().iter();
    let flags = |it: &Doc| {
        ["ready", "serving", "terminating"]
            .map(|at| *it.at("/conditions").at(&format!("/{at}")) == true)
    };
    all.map(flags).collect()
}

#[tokio::test(start_paused = true)]
async fn ready_pods_are_endpoints_of_one_slice() {
    let world = World::new().await;
    let service = world.service(doc!({})).await;
    for number in 0..3 {
        world.pod(number, doc!({}), true).await;
    }
    let slice = world.slice().await;
    assert_eq!(slice.str_at("/addressType"), "IPv4");
    assert_eq!(conditions(&slice), [[true, true, false]; 3]);
    assert!(slice.meta().name().starts_with("web-"));
    assert!(slice.meta().is_controlled_by(&service.meta().uid()));
    let label = |key: &str| slice.meta().label(key).map(str::to_owned);
    assert_eq!(label("kubernetes.io/service-name").as_deref(), Some("web"));
    let manager = label("endpointslice.kubernetes.io/managed-by");
    assert_eq!(manager.as_deref(), Some("endpointslice-controller.k8s.io"));
    assert_eq!(label("team").as_deref(), Some("x"));
    assert_eq!(*slice.at("/ports/0/port"), 8080);
    let first = slice.at("/endpoints/0");
    assert_eq!(first.str_at("/nodeName"), "n1");
    assert_eq!(first.str_at("/zone"), "a");
    assert_eq!(first.str_at("/targetRef/kind"), "Pod");
}

#[tokio::test(start_paused = true)]
async fn a_service_without_pods_has_an_empty_slice() {
    let world = World::new().await;
    world.service(doc!({})).await;
    let empty = world.slice().await;
    assert!(empty.at("/endpoints").items().is_empty());
    world.pod(0, doc!({}), true).await;
    let filled = world.slice().await;
    assert_eq!(filled.meta().uid(), empty.meta().uid(), "it is used again");
    world.delete_pod("p0", Some(0)).await;
    assert!(world.slice().await.at("/endpoints").items().is_empty());
}

#[tokio::test(start_paused = true)]
async fn slices_have_a_hundred_endpoints_at_most() {
    let world = World::new().await;
    for number in 0..101 {
        world.pod(number, doc!({}), true).await;
    }
    world.service(doc!({})).await;
    assert_eq!(sizes(&world.slices().await), [1, 100]);
}

#[tokio::test(start_paused = true)]
async fn readiness_serving_and_terminating_are_told_apart() {
    let world = World::new().await;
    world.service(doc!({})).await;
    let pod = world.pod(0, doc!({}), false).await;
    assert_eq!(conditions(&world.slice().await), [[false, false, false]]);
    world.show(&pod, &["10.0.0.1"], true).await;
    assert_eq!(conditions(&world.slice().await), [[true, true, false]]);
    world.delete_pod("p0", None).await;
    assert_eq!(conditions(&world.slice().await), [[false, true, true]]);
    world
        .cluster
        .patch_status(&pod, doc!({ "phase": "Succeeded" }))
        .await;
    assert!(conditions(&world.slice().await).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_service_may_publish_pods_that_are_not_ready() {
    let world = World::new().await;
    world
        .service(doc!({ "publishNotReadyAddresses": true }))
        .await;
    world.pod(0, doc!({ "nodeName": "unknown" }), false).await;
    assert_eq!(conditions(&world.slice().await), [[true, false, false]]);
}

#[tokio::test(start_paused = true)]
async fn a_named_port_that_differs_makes_another_slice() {
    let world = World::new().await;
    world
        .service(doc!({ "ports": [{ "port": 80, "targetPort": "http" }] }))
        .await;
    for (number, port) in [(0, 8080), (1, 9090)] {
        let ports = doc!([{ "name": "http", "containerPort": port }]);
        let container = doc!({ "name": "c", "image": "i", "ports": ports });
        world
            .pod(number, doc!({ "containers": [container] }), true)
            .await;
    }
    let slices = world.slices().await;
    let mut ports: Vec<_> = slices
        .iter()
        .map(|it| it.at("/ports/0/port").as_i64())
        .collect();
    ports.sort_unstable();
    assert_eq!(ports, [Some(8080), Some(9090)]);
}

#[tokio::test(start_paused = true)]
async fn a_headless_service_says_so_and_pods_have_their_names() {
    let world = World::new().await;
    world
        .service(doc!({ "clusterIP": "None", "ports": null }))
        .await;
    world
        .pod(0, doc!({ "hostname": "db-0", "subdomain": "web" }), true)
        .await;
    let slice = world.slice().await;
    assert_eq!(
        slice.meta().label("service.kubernetes.io/headless"),
        Some("")
    );
    assert!(slice.at("/ports").items().is_empty());
    assert_eq!(slice.str_at("/endpoints/0/hostname"), "db-0");
}

#[tokio::test(start_paused = true)]
async fn labels_of_the_service_follow_but_for_the_reserved() {
    let world = World::new().await;
    let service = world.service(doc!({})).await;
    world.pod(0, doc!({}), true).await;
    world.slice().await;
    let labels = doc!({ "team": "y", "kubernetes.io/service-name": "other" });
    world
        .cluster
        .patch(&service, doc!({ "metadata": { "labels": labels } }))
        .await;
    let slice = world.slice().await;
    assert_eq!(slice.meta().label("team"), Some("y"));
    assert_eq!(
        slice.meta().label("kubernetes.io/service-name"),
        Some("web")
    );
}

#[tokio::test(start_paused = true)]
async fn what_others_change_or_delete_is_put_right() {
    let world = World::new().await;
    world.service(doc!({})).await;
    world.pod(0, doc!({}), true).await;
    let slice = world.slice().await;
    let edited = slice.with("/endpoints/0/conditions/ready", false).unwrap();
    let api = world.cluster.api(&SLICES, "default");
    api.update(&edited, &WriteOptions::default()).await.unwrap();
    assert_eq!(conditions(&world.slice().await), [[true, true, false]]);
    world.cluster.delete(&slice, Propagation::Background).await;
    let again = world.slice().await;
    assert_ne!(again.meta().uid(), slice.meta().uid());
    assert_eq!(sizes(&[again]), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_service_of_the_same_name_does_not_take_over_slices() {
    let world = World::new().await;
    let first = world.service(doc!({})).await;
    world.pod(0, doc!({}), true).await;
    let old = world.slice().await;
    world.cluster.delete(&first, Propagation::Background).await;
    let second = world.service(doc!({})).await;
    let new = world.slice().await;
    assert_ne!(new.meta().uid(), old.meta().uid());
    assert!(new.meta().is_controlled_by(&second.meta().uid()));
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_an_unknown_node_is_left_out_and_told_of() {
    let world = World::new().await;
    world.service(doc!({})).await;
    world.pod(0, doc!({}), true).await;
    world.pod(1, doc!({ "nodeName": "lost" }), true).await;
    assert_eq!(sizes(&[world.slice().await]), [1]);
    let events = world.cluster.list_docs(&EVENTS, "default", "").await;
    let told = events.iter().map(|it| it.str_at("/reason"));
    assert!(
        told.into_iter()
            .any(|it| it == "FailedToUpdateEndpointSlices")
    );
}

#[tokio::test(start_paused = true)]
async fn preferred_zones_are_hints_of_ready_endpoints() {
    let world = World::new().await;
    world
        .service(doc!({ "trafficDistribution": "PreferSameZone" }))
        .await;
    world.pod(0, doc!({}), true).await;
    world.pod(1, doc!({ "nodeName": "n2" }), false).await;
    let slice = world.slice().await;
    let of = |name: &str| {
        let mut all = slice.at("/endpoints").items().iter();
        all.find(|it| it.str_at("/targetRef/name") == name)
            .unwrap()
            .clone()
    };
    assert_eq!(of("p0").str_at("/hints/forZones/0/name"), "a");
    assert!(of("p1").at("/hints").is_null());
}

#[tokio::test(start_paused = true)]
async fn a_service_without_a_selector_is_left_to_others() {
    let world = World::new().await;
    let service = world.service(doc!({})).await;
    world.pod(0, doc!({}), true).await;
    let slice = world.slice().await;
    world
        .cluster
        .patch(&service, doc!({ "spec": { "selector": null } }))
        .await;
    world.delete_pod("p0", Some(0)).await;
    let left = world.slice().await;
    assert_eq!(left.at("/endpoints"), slice.at("/endpoints"));
    assert!(world.cluster.find(&SERVICES, "default/web").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_preferred_node_is_a_hint_beside_its_zone() {
    let world = World::new().await;
    world
        .service(doc!({ "trafficDistribution": "PreferSameNode" }))
        .await;
    world.pod(0, doc!({}), true).await;
    let slice = world.slice().await;
    let hints = doc!({ "forZones": [{ "name": "a" }], "forNodes": [{ "name": "n1" }] });
    assert_eq!(*slice.at("/endpoints/0/hints"), hints);
}

impl World {
    /// Asks for topology-aware hints.
    async fn be_aware(&self, service: &Doc, mode: &str) {
        let annotations = doc!({ "service.kubernetes.io/topology-mode": mode });
        let patch = doc!({ "metadata": { "annotations": annotations } });
        self.cluster.patch(service, patch).await;
    }

    /// Makes a node ready with some CPUs.
    async fn make_ready(&self, name: &str) {
        let node = self.cluster.find(&NODES, name).await.unwrap();
        let status = doc!({
            "allocatable": { "cpu": "4" }, "conditions": [{ "type": "Ready", "status": "True" }]
        });
        self.cluster.patch_status(&node, status).await;
    }

    async fn told(&self) -> Vec<String> {
        self.settle().await;
        let events = self.cluster.list_docs(&EVENTS, "default", "").await;
        let text = |it: &Doc| ["/type", "/reason", "/message"].map(|at| it.str_at(at).to_owned());
        events.iter().map(|it| text(it).join(" ")).collect()
    }
}

const NODES: Gvr = Gvr::constant("", "v1", "nodes");

#[tokio::test(start_paused = true)]
async fn topology_aware_hints_follow_the_shares_of_zones() {
    let world = World::new().await;
    let service = world.service(doc!({})).await;
    for number in 0..4 {
        world.pod(number, doc!({}), true).await;
    }
    // One zone is not enough.
    world.make_ready("n1").await;
    world.be_aware(&service, "Auto").await;
    let slice = world.slice().await;
    assert!(slice.at("/endpoints/0/hints").is_null());
    let disabled = "Warning TopologyAwareHintsDisabled Insufficient Node information: allocatable \
                    CPU or zone not specified on one or more nodes, addressType: IPv4";
    assert!(world.told().await.iter().any(|it| it == disabled));
    world.make_ready("n2").await;
    let slice = world.slice().await;
    let zones = slice.at("/endpoints").items().iter();
    let mut zones: Vec<&str> = zones
        .map(|it| it.str_at("/hints/forZones/0/name"))
        .collect();
    zones.sort_unstable();
    assert_eq!(zones, ["a", "a", "b", "b"]);
    let enabled = "Normal TopologyAwareHintsEnabled Topology Aware Hints has been enabled, \
                   addressType: IPv4";
    assert!(world.told().await.iter().any(|it| it == enabled));
    world.be_aware(&service, "Disabled").await;
    let slice = world.slice().await;
    assert!(slice.at("/endpoints/0/hints").is_null());
    let disabled = "Warning TopologyAwareHintsDisabled Topology Aware Hints has been disabled, \
                    addressType: IPv4";
    assert!(world.told().await.iter().any(|it| it == disabled));
}

#[tokio::test(start_paused = true)]
async fn each_family_has_its_slice_and_one_that_is_given_up_loses_it() {
    let world = World::new().await;
    let families = doc!({
        "clusterIP": "None", "ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv4", "IPv6"]
    });
    let service = world.service(families).await;
    let pod = world.pod(0, doc!({}), true).await;
    world.show(&pod, &["10.0.0.1", "fd00::1"], true).await;
    let slices = world.slices().await;
    let mut types: Vec<(&str, &str)> = slices
        .iter()
        .map(|it| {
            (
                it.str_at("/addressType"),
                it.str_at("/endpoints/0/addresses/0"),
            )
        })
        .collect();
    types.sort_unstable();
    let is_dual = service.at("/spec/ipFamilies").items().len() == 2;
    assert!(
        is_dual,
        "the server keeps both families: {}",
        service.at("/spec")
    );
    assert_eq!(types, [("IPv4", "10.0.0.1"), ("IPv6", "fd00::1")]);
    let single = doc!({ "ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"] });
    world
        .cluster
        .patch(&service, doc!({ "spec": single }))
        .await;
    assert_eq!(world.slice().await.str_at("/addressType"), "IPv4");
}

#[tokio::test(start_paused = true)]
async fn a_slice_that_is_taken_away_by_its_label_is_replaced() {
    let world = World::new().await;
    world.service(doc!({})).await;
    world.pod(0, doc!({}), true).await;
    let taken = world.slice().await;
    let labels = doc!({ "endpointslice.kubernetes.io/managed-by": "somebody" });
    world
        .cluster
        .patch(&taken, doc!({ "metadata": { "labels": labels } }))
        .await;
    // Unlike upstream, whose tracker waits for the slice until it is restarted.
    let slices = world.slices().await;
    assert_eq!(slices.len(), 2);
    let is_ours = |it: &&Doc| it.meta().name() != taken.meta().name();
    let ours = slices.iter().find(is_ours).unwrap();
    assert_eq!(ours.at("/endpoints").items().len(), 1);
}
