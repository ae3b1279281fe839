//! EndpointSlices that mirror Endpoints, seen by who sends traffic to Services.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

use std::time::Duration;

use windlass_client::Propagation;
use windlass_core::{Doc, Gvr, doc, merge_patch};
use windlass_testing::{
    Call, Cluster, Explored, Failure, Fault, Simulation, Stage, World as Objects,
};
use windlass_workloads::endpointslice_mirroring;

const SERVICES: Gvr = Gvr::constant("", "v1", "services");
const ENDPOINTS: Gvr = Gvr::constant("", "v1", "endpoints");
const SLICES: Gvr = Gvr::constant("discovery.k8s.io", "v1", "endpointslices");
const EVENTS: Gvr = Gvr::constant("", "v1", "events");

fn service() -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": { "ports": [{ "port": 80 }] }
    })
}

fn endpoints(metadata: Doc, subsets: Doc) -> Doc {
    let base = doc!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": { "name": "web", "namespace": "default" }, "subsets": subsets
    });
    merge_patch(&base, &doc!({ "metadata": metadata }))
}

fn subset(ips: impl IntoIterator<Item = String>) -> Doc {
    let addresses: Vec<Doc> = ips.into_iter().map(|ip| doc!({ "ip": ip })).collect();
    doc!({ "addresses": addresses, "ports": [{ "port": 80 }] })
}

fn one() -> Doc {
    doc!([(subset(["10.0.0.1".to_owned()]))])
}

struct World {
    cluster: Cluster,
}

impl World {
    async fn new() -> Self {
        let cluster = Cluster::start().await;
        cluster.run_with("mirroring", |manager| {
            let options = endpointslice_mirroring::Options::default();
            endpointslice_mirroring::add_to(manager, &options);
        });
        cluster.create_doc(&service()).await;
        Self { cluster }
    }

    async fn mirrored(metadata: Doc, subsets: Doc) -> Self {
        let world = Self::new().await;
        world
            .cluster
            .create_doc(&endpoints(metadata, subsets))
            .await;
        world
    }

    async fn slices(&self) -> Vec<Doc> {
        self.cluster.pass(Duration::from_secs(3)).await;
        self.cluster.list_docs(&SLICES, "default", "").await
    }

    async fn slice(&self) -> Doc {
        let slices = self.slices().await;
        assert_eq!(slices.len(), 1, "{slices:?}");
        slices[0].clone()
    }

    async fn patch(&self, resource: &Gvr, patch: Doc) {
        let object = self.cluster.find(resource, "default/web").await.unwrap();
        self.cluster.patch(&object, patch).await;
    }

    async fn delete(&self, resource: &Gvr) {
        let object = self.cluster.find(resource, "default/web").await.unwrap();
        self.cluster.delete(&object, Propagation::Background).await;
    }

    async fn told(&self) -> Vec<String> {
        self.cluster.pass(Duration::from_secs(3)).await;
        let events = self.cluster.list_docs(&EVENTS, "default", "").await;
        let text = |it: &Doc| ["/type", "/reason", "/message"].map(|at| it.str_at(at).to_owned());
        events.iter().map(|it| text(it).join(" ")).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn endpoints_that_somebody_wrote_are_mirrored_and_followed() {
    let metadata = doc!({ "labels": { "team": "x" }, "annotations": { "note": "y" } });
    let world = World::mirrored(metadata, one()).await;
    let slice = world.slice().await;
    assert_eq!(slice.str_at("/addressType"), "IPv4");
    assert_eq!(
        *slice.at("/endpoints/0/conditions"),
        doc!({ "ready": true })
    );
    let labels = slice.meta().labels();
    assert_eq!(labels.value("kubernetes.io/service-name"), Some("web"));
    let manager = Some("endpointslicemirroring-controller.k8s.io");
    assert_eq!(
        labels.value("endpointslice.kubernetes.io/managed-by"),
        manager
    );
    assert_eq!(labels.value("team"), Some("x"));
    assert_eq!(slice.meta().annotation("note"), Some("y"));
    assert_eq!(slice.meta().controller().unwrap().kind, "Endpoints");
    let two = doc!([(subset(["10.0.0.1".to_owned(), "10.0.0.2".to_owned()]))]);
    world.patch(&ENDPOINTS, doc!({ "subsets": two })).await;
    let changed = world.slice().await;
    assert_eq!(changed.meta().uid(), slice.meta().uid());
    assert_eq!(changed.at("/endpoints").items().len(), 2);
    world.patch(&ENDPOINTS, doc!({ "subsets": [] })).await;
    assert!(world.slices().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_not_to_be_mirrored_any_more_goes() {
    let skip = doc!({ "endpointslice.kubernetes.io/skip-mirror": "true" });
    let lock = doc!({ "control-plane.alpha.kubernetes.io/leader": "{}" });
    for (resource, patch) in [
        (ENDPOINTS, doc!({ "metadata": { "labels": skip } })),
        (ENDPOINTS, doc!({ "metadata": { "annotations": lock } })),
        (SERVICES, doc!({ "spec": { "selector": { "a": "b" } } })),
    ] {
        let world = World::mirrored(doc!({}), one()).await;
        world.slice().await;
        world.patch(&resource, patch.clone()).await;
        assert!(world.slices().await.is_empty(), "{patch}");
    }
    for resource in [SERVICES, ENDPOINTS] {
        let world = World::mirrored(doc!({}), one()).await;
        world.slice().await;
        world.delete(&resource).await;
        assert!(world.slices().await.is_empty(), "{resource}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_comes_later_or_loses_its_selector_is_served() {
    let world = World::new().await;
    world.delete(&SERVICES).await;
    world.cluster.create_doc(&endpoints(doc!({}), one())).await;
    assert!(world.slices().await.is_empty());
    let selecting = service()
        .with("/spec/selector", doc!({ "a": "b" }))
        .unwrap();
    world.cluster.create_doc(&selecting).await;
    assert!(world.slices().await.is_empty());
    world
        .patch(&SERVICES, doc!({ "spec": { "selector": null } }))
        .await;
    world.slice().await;
}

#[tokio::test(start_paused = true)]
async fn what_others_change_or_delete_is_put_right() {
    let world = World::mirrored(doc!({}), one()).await;
    let slice = world.slice().await;
    let patch = doc!({ "endpoints": [{ "addresses": ["10.9.9.9"] }] });
    world.cluster.patch(&slice, patch).await;
    let restored = world.slice().await;
    assert_eq!(restored.at("/endpoints"), slice.at("/endpoints"));
    world
        .cluster
        .delete(&restored, Propagation::Background)
        .await;
    assert_eq!(world.slice().await.at("/endpoints"), slice.at("/endpoints"));
}

#[tokio::test(start_paused = true)]
async fn no_more_than_a_thousand_addresses_are_mirrored() {
    let ips = (0..1200).map(|it| format!("10.0.{}.{}", it / 200, it % 200 + 1));
    let world = World::mirrored(doc!({}), doc!([(subset(ips))])).await;
    let slice = world.slice().await;
    assert_eq!(slice.at("/endpoints").items().len(), 1000);
    let text = "Warning TooManyAddressesToMirror A max of 1000 addresses can be mirrored to \
                EndpointSlices per Endpoints subset. 200 addresses were skipped";
    assert!(world.told().await.iter().any(|it| it == text));
}

#[tokio::test(start_paused = true)]
async fn a_slice_of_other_ports_is_used_again() {
    let world = World::mirrored(doc!({}), one()).await;
    let before = world.slice().await;
    let subset = doc!({ "addresses": [{ "ip": "10.0.0.1" }], "ports": [{ "port": 90 }] });
    world.patch(&ENDPOINTS, doc!({ "subsets": [subset] })).await;
    let after = world.slice().await;
    assert_eq!(after.meta().name(), before.meta().name());
    assert_eq!(*after.at("/ports/0/port"), 90);
}

#[tokio::test(start_paused = true)]
async fn both_families_are_mirrored() {
    let subsets = doc!([(subset(["10.0.0.1".to_owned(), "2001:db8::1".to_owned()]))]);
    let world = World::mirrored(doc!({}), subsets).await;
    let slices = world.slices().await;
    let mut families: Vec<&str> = slices.iter().map(|it| it.str_at("/addressType")).collect();
    families.sort_unstable();
    assert_eq!(families, ["IPv4", "IPv6"]);
}

/// Endpoints come, change and are skipped.
async fn mirror(stage: Stage) -> Vec<Doc> {
    let cluster = Cluster::builder().env(stage.env().clone()).start().await;
    stage.observe(&cluster.transport(), &[SLICES, ENDPOINTS]);
    let of_process = cluster.clone();
    stage.start("mirroring", &cluster.transport(), move |transport| {
        let manager = of_process
            .manager_on("mirroring", transport)
            .build()
            .unwrap();
        let options = endpointslice_mirroring::Options::default();
        endpointslice_mirroring::add_to(&manager, &options);
        async move { manager.run().await.unwrap() }
    });
    cluster.create_doc(&service()).await;
    let created = cluster.create_doc(&endpoints(doc!({}), one())).await;
    let until = async |sizes: &[usize]| {
        stage
            .until("the slices are right", async || {
                let slices = cluster.list_docs(&SLICES, "default", "").await;
                let found = slices.iter().map(|it| it.at("/endpoints").items().len());
                let mut found: Vec<usize> = found.collect();
                found.sort_unstable();
                found == sizes
            })
            .await;
    };
    until(&[1]).await;
    let both = doc!([(subset(["10.0.0.1".to_owned(), "2001:db8::1".to_owned()]))]);
    cluster.patch(&created, doc!({ "subsets": both })).await;
    until(&[1, 1]).await;
    let two = doc!([(subset(["10.0.0.1".to_owned(), "10.0.0.2".to_owned()]))]);
    cluster.patch(&created, doc!({ "subsets": two })).await;
    until(&[2]).await;
    stage.pass(Duration::from_secs(60)).await;
    stage.rest(Duration::from_secs(60)).await;
    let slices = cluster.list_docs(&SLICES, "default", "").await;
    // An update drops `generateName`, as upstream's does, so nothing tells that the name is random.
    let named = |slice: Doc| slice.with("/metadata/name", "web").unwrap();
    slices.into_iter().map(named).collect()
}

/// There are never more slices than families.
fn never_too_many(objects: &Objects) -> Result<(), String> {
    let count = objects.of("endpointslices").count();
    match count > 2 {
        true => Err(format!("{count} slices")),
        false => Ok(()),
    }
}

fn succeeded(outcome: Result<Explored, Failure>) {
    match outcome {
        Ok(explored) => assert!(explored.runs > 0, "{explored:?}"),
        Err(failure) => panic!("{failure}"),
    }
}

#[test]
fn mirroring_survives_a_crash_at_every_call() {
    let simulation = Simulation::new("mirroring").on_change(never_too_many);
    succeeded(simulation.crash_at_every_call(mirror));
}

#[test]
fn mirroring_survives_every_fault_at_every_call() {
    let simulation = Simulation::new("mirroring").on_change(never_too_many);
    let patient = simulation.ignore_counts();
    let faults = [
        Fault::Refuse(409, "Conflict"),
        Fault::Refuse(500, "InternalError"),
        Fault::NotSent,
        Fault::LostRequest,
        Fault::LostAnswer,
        Fault::Delay(Duration::from_secs(40)),
    ];
    let is_work = |call: &Call| !call.is_watch && !call.path.contains("/events");
    succeeded(patient.fault_at_every_call(is_work, &faults, mirror));
    let watches = [
        Fault::Cut(0),
        Fault::Cut(1),
        Fault::Lag(Duration::from_secs(400)),
    ];
    succeeded(patient.fault_at_every_call(|call| call.is_watch, &watches, mirror));
}
