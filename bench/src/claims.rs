//! Pods that get devices: claims made, devices allocated, pods bound, all in one process.

use std::{sync::Arc, time::Duration};

use anyhow::ensure;
use windlass_bench::{contest::Numbers, meter};
use windlass_client::ListOptions;
use windlass_controllers::{
    allocator::{Deadline, Inventory, Outcome, Plan, Selectors},
    claims, driver,
    dynamic_resources::{self, DynamicResources},
    scheduler,
};
use windlass_core::{Doc, Gvr, doc};
use windlass_testing::{Cluster, Running};

const NODES: usize = 500;
const DEVICES_PER_NODE: usize = 10;
const PODS: usize = NODES * DEVICES_PER_NODE;
const POD: Gvr = Gvr::constant("", "v1", "pods");
const CLAIM: Gvr = Gvr::constant("resource.k8s.io", "v1", "resourceclaims");
const SLICE: Gvr = Gvr::constant("resource.k8s.io", "v1", "resourceslices");
/// How often the state is looked at. A look at all objects costs as much as a list of them, so it
/// is taken more seldom than one at those that are left.
const LOOK: Duration = Duration::from_millis(250);
const LOOK_AT_REST: Duration = Duration::from_millis(20);
/// How often a refusal is repeated.
const REFUSALS: u32 = 20;

/// Runs both parts.
pub(crate) fn run() -> anyhow::Result<Numbers> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let mut numbers = runtime.block_on(place())?;
    numbers.extend(refuse()?);
    Ok(numbers)
}

/// Places as many pods as there are devices.
async fn place() -> anyhow::Result<Numbers> {
    let cluster = Cluster::builder()
        .patience(Duration::from_secs(600))
        .start()
        .await;
    for number in 0..NODES {
        cluster.create_doc(&node(number)).await;
    }
    let publishing = publish(&cluster);
    until(&cluster, &SLICE, NODES, |_| true).await;
    publishing.stop().await;
    cluster.create_doc(&template()).await;
    for number in 0..PODS {
        cluster.create_doc(&pod(number)).await;
    }
    let mut numbers = Numbers::new();
    let started = meter::wall();
    let _claims = cluster.run_with("claims", |manager| {
        claims::add_to(manager, &claims::Options::default());
    });
    let is_recorded = |pod: &Doc| !pod.at("/status/resourceClaimStatuses").items().is_empty();
    until(&cluster, &POD, PODS, is_recorded).await;
    rate(&mut numbers, "claims_made_per_s", meter::wall() - started);

    let (started, cpu) = (meter::wall(), meter::cpu());
    schedule(&cluster);
    until_bound(&cluster).await?;
    rate(
        &mut numbers,
        "pods_allocated_and_bound_per_s",
        meter::wall() - started,
    );
    rate(
        &mut numbers,
        "pods_allocated_and_bound_per_cpu_s",
        meter::cpu() - cpu,
    );
    check(&cluster).await?;
    Ok(numbers)
}

fn rate(numbers: &mut Numbers, name: &str, took: Duration) {
    numbers.insert(name.to_owned(), PODS as f64 / took.as_secs_f64());
}

fn publish(cluster: &Cluster) -> Running {
    cluster.run_with("driver", |manager| {
        let options = driver::Options {
            devices_per_node: DEVICES_PER_NODE,
            is_reporting: false,
            ..driver::Options::default()
        };
        driver::add_to(manager, &options);
    })
}

fn schedule(cluster: &Cluster) {
    cluster.run_with("scheduler", |manager| {
        let plugin = DynamicResources::new(manager, &dynamic_resources::Options::default());
        let mut options = scheduler::Options::default();
        options.plugins.push(Arc::new(plugin));
        scheduler::add_to(manager, &options);
    });
}

/// Waits until so many objects are in a state.
async fn until(cluster: &Cluster, resource: &Gvr, count: usize, is: impl Fn(&Doc) -> bool) {
    let namespace = match resource.group() {
        "resource.k8s.io" => "",
        _ => "default",
    };
    loop {
        let objects = cluster.list_docs(resource, namespace, "").await;
        if objects.iter().filter(|object| is(object)).count() >= count {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until no pod is without a node.
async fn until_bound(cluster: &Cluster) -> anyhow::Result<()> {
    let pods = cluster.api(&POD, "default");
    let waiting = ListOptions {
        field_selector: "spec.nodeName=".to_owned(),
        limit: 1,
        ..ListOptions::default()
    };
    while !pods.list(&waiting).await?.items.is_empty() {
        tokio::time::sleep(LOOK_AT_REST).await;
    }
    Ok(())
}

/// Every device has been given once.
async fn check(cluster: &Cluster) -> anyhow::Result<()> {
    let claims = cluster.list_docs(&CLAIM, "default", "").await;
    let results = claims
        .iter()
        .flat_map(|claim| claim.at("/status/allocation/devices/results").items());
    let mut devices: Vec<(&str, &str)> = results
        .map(|result| (result.str_at("/pool"), result.str_at("/device")))
        .collect();
    devices.sort_unstable();
    devices.dedup();
    ensure!(
        devices.len() == PODS,
        "{} devices are in use",
        devices.len()
    );
    Ok(())
}

fn node(number: usize) -> Doc {
    let name = format!("n{number:03}");
    doc!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": (name.as_str()), "labels": { "kubernetes.io/hostname": (name.as_str()) } },
        "status": { "allocatable": { "cpu": "64", "memory": "256Gi", "pods": "250" } }
    })
}

fn template() -> Doc {
    doc!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": { "namespace": "default", "name": "t" },
        "spec": { "spec": { "devices": { "requests": [
            { "name": "gpu", "exactly": { "deviceClassName": (driver::DRIVER) } }
        ] } } }
    })
}

fn pod(number: usize) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "default", "name": (format!("p{number:04}")) },
        "spec": {
            "containers": [{ "name": "c", "image": "i" }],
            "resourceClaims": [{ "name": "gpu", "resourceClaimTemplateName": "t" }]
        }
    })
}

/// Refuses claims that cannot be met, on one node with all devices and on many nodes.
fn refuse() -> anyhow::Result<Numbers> {
    let mut numbers = Numbers::new();
    let cases = [
        ("one_node_too_many", 1, vec![(32, "false")]),
        ("one_node_pairs", 1, vec![(16, "true"), (1, "false")]),
        ("500_nodes", NODES, vec![(DEVICES_PER_NODE + 1, "true")]),
    ];
    for (name, nodes, requests) in cases {
        let ms = refuse_case(nodes, &requests)?;
        numbers.insert(format!("refusal_5000_devices_{name}_ms"), ms);
    }
    Ok(numbers)
}

fn refuse_case(nodes: usize, requests: &[(usize, &str)]) -> anyhow::Result<f64> {
    let selectors = Selectors::default();
    let requests = requests
        .iter()
        .enumerate()
        .map(|(at, (count, expression))| {
            doc!({ "name": (format!("r{at}")), "exactly": {
            "deviceClassName": "gpu", "count": (*count),
            "selectors": [{ "cel": { "expression": (*expression) } }]
        } })
        });
    let claim = doc!({
        "metadata": { "namespace": "default", "name": "c" },
        "spec": { "devices": {
            "requests": (requests.collect::<Vec<_>>()),
            "constraints": [{ "matchAttribute": (format!("{}/pcieRoot", driver::DRIVER)) }]
        } }
    });
    let class = |name: &str| Some(doc!({ "metadata": { "name": name }, "spec": {} }));
    let slices: Vec<Doc> = (0..nodes)
        .flat_map(|node| slices(node, PODS / nodes))
        .collect();
    let inventory = Inventory::of(&slices);
    let nodes: Vec<Doc> = (0..nodes).map(node).collect();
    let mut is_refused = true;
    let ns = meter::ns_per_call(REFUSALS, || {
        let Ok(plan) = Plan::new(std::slice::from_ref(&claim), &class, &selectors) else {
            is_refused = false;
            return;
        };
        for node in &nodes {
            let outcome = plan.allocate(&inventory, &|_| false, node, &Deadline::never());
            is_refused &= matches!(outcome, Ok(Outcome::Refused));
        }
    });
    ensure!(is_refused, "a claim that cannot be met was met");
    Ok(ns / 1e6)
}

/// The slices of a node with so many devices.
fn slices(node: usize, devices: usize) -> Vec<Doc> {
    let name = format!("n{node:03}");
    let all: Vec<Doc> = (0..devices).map(|at| driver::gpu(&name, at)).collect();
    let parts: Vec<&[Doc]> = all.chunks(driver::SLICE_DEVICES_LIMIT).collect();
    let slice = |(at, part): (usize, &&[Doc])| {
        doc!({
            "metadata": { "name": (format!("{name}-{at:02}")) },
            "spec": {
                "driver": (driver::DRIVER), "nodeName": (name.as_str()),
                "pool": {
                    "name": (name.as_str()), "generation": 1, "resourceSliceCount": (parts.len())
                },
                "devices": (part.to_vec())
            }
        })
    };
    parts.iter().enumerate().map(slice).collect()
}
