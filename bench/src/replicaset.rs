//! ReplicaSets that are scaled up: how many pods per second whoever controls them makes.
//!
//! The sets exist and were looked at by their controller before the clock starts, and it stops
//! when the status of every set counts all its pods. Their template is a pod of the corpus, each
//! set its own. The same command drives every controller on every server; it follows the sets by
//! one watch, which is all it costs while the pods are made.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use anyhow::{Context, ensure};
use tokio::task::JoinSet;
use windlass_bench::contest::{self, Numbers};
use windlass_bench::corpus::{Corpus, PODS_PER_REPLICASET};
use windlass_bench::meter;
use windlass_core::{Doc, ParseOptions, Parser, Prune, doc};

use crate::server::wire::{Target, Wire};
use crate::server::{block_on, named};

const NAMESPACE: &str = "scaling";
/// Where the sets are.
const SETS: &str = "/apis/apps/v1/namespaces/scaling/replicasets";
const PODS: &str = "/api/v1/namespaces/scaling/pods";
/// Connections that create the sets, and that scale them.
const CLIENTS: usize = 16;

/// Makes so many sets without pods and, when told to by a line of input, scales them up to so many
/// pods together. Prints an empty line of figures when it is ready, and then the figures.
pub(crate) fn run(sets: usize, pods: usize) -> anyhow::Result<()> {
    ensure!(sets > 0 && pods.is_multiple_of(sets), "pods for every set");
    let per_set = pods / sets;
    block_on(async {
        let target = Target::from_environment()?;
        let names = create(&target, sets).await?;
        let mut statuses = Statuses::follow(&target).await?;
        statuses
            .until(|statuses| statuses.count(|status| status.is_observed) == sets)
            .await?;
        println!("{}", contest::to_json(&Numbers::new()));
        std::io::stdin().read_line(&mut String::new())?;
        let numbers = scale(&target, names, per_set, &mut statuses).await?;
        check(&target, pods).await?;
        println!("{}", contest::to_json(&numbers));
        Ok(())
    })
}

/// Creates the sets and returns their names.
async fn create(target: &Target, sets: usize) -> anyhow::Result<Vec<String>> {
    let body = doc!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
    let mut wire = target.connect().await?;
    let (status, _) = wire
        .request("POST", "/api/v1/namespaces", &body.to_json())
        .await?;
    ensure!(status == 201, "namespace: {status}");
    let corpus = Corpus::new(sets * PODS_PER_REPLICASET);
    let (mut names, mut calls) = (Vec::new(), VecDeque::new());
    for index in 0..sets {
        let set = set(&corpus, index * PODS_PER_REPLICASET)?;
        names.push(set.meta().name().to_owned());
        calls.push_back(Call {
            method: "POST",
            path: SETS.to_owned(),
            body: set.to_json(),
        });
    }
    send(connect(target, sets).await?, calls).await?;
    Ok(names)
}

/// A set that would make pods like this one of the corpus.
fn set(corpus: &Corpus, index: usize) -> anyhow::Result<Doc> {
    let mut text = Vec::new();
    corpus.write_create(index, &mut text);
    let pod = Doc::parse(&text)?;
    // Where a pod runs is not for its set to say.
    let spec = pod.at("/spec").without("/nodeName")?;
    let (labels, annotations) = (pod.at("/metadata/labels"), pod.at("/metadata/annotations"));
    let name = pod.str_at("/metadata/ownerReferences/0/name");
    Ok(doc!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": (labels.clone()) },
        "spec": {
            "replicas": 0,
            "selector": { "matchLabels": (labels.clone()) },
            "template": {
                "metadata": { "labels": (labels.clone()), "annotations": (annotations.clone()) },
                "spec": spec
            }
        }
    }))
}

async fn scale(
    target: &Target,
    names: Vec<String>,
    per_set: usize,
    statuses: &mut Statuses,
) -> anyhow::Result<Numbers> {
    let pods = per_set * names.len();
    let body = doc!({ "spec": { "replicas": per_set } }).to_json();
    let calls = names.iter().map(|name| Call {
        method: "PATCH",
        path: format!("{SETS}/{name}"),
        body: body.clone(),
    });
    let calls = calls.collect();
    let wires = connect(target, names.len()).await?;
    let (cpu, wall) = (meter::cpu(), meter::wall());
    let is_full =
        |statuses: &Statuses| statuses.count(|status| status.replicas == per_set) == names.len();
    tokio::try_join!(send(wires, calls), statuses.until(is_full))?;
    let (cpu, wall) = (meter::cpu() - cpu, meter::wall() - wall);
    Ok(named([
        ("pods_per_s", pods as f64 / wall.as_secs_f64()),
        ("client_cpu_s", cpu.as_secs_f64()),
    ]))
}

/// Whether there are as many pods as were asked for, and not one more.
async fn check(target: &Target, pods: usize) -> anyhow::Result<()> {
    let mut wire = target.connect().await?;
    let list = Doc::parse(&wire.fetch(&format!("{PODS}?limit=1")).await?)?;
    let rest = list
        .at("/metadata/remainingItemCount")
        .as_u64()
        .unwrap_or(0);
    let found = list.at("/items").items().len() as u64 + rest;
    ensure!(found == pods as u64, "{found} pods, not {pods}");
    Ok(())
}

struct Call {
    method: &'static str,
    path: String,
    body: Vec<u8>,
}

/// Connections for so many calls.
async fn connect(target: &Target, calls: usize) -> anyhow::Result<Vec<Wire>> {
    let mut wires = Vec::new();
    for _ in 0..calls.min(CLIENTS) {
        wires.push(target.connect().await?);
    }
    Ok(wires)
}

/// Makes calls on a few connections, one at a time on each.
async fn send(wires: Vec<Wire>, calls: VecDeque<Call>) -> anyhow::Result<()> {
    let calls = Arc::new(Mutex::new(calls));
    let mut tasks = JoinSet::new();
    for wire in wires {
        tasks.spawn(send_some(wire, calls.clone()));
    }
    while let Some(outcome) = tasks.join_next().await {
        outcome??;
    }
    Ok(())
}

async fn send_some(mut wire: Wire, calls: Arc<Mutex<VecDeque<Call>>>) -> anyhow::Result<()> {
    let next = || calls.lock().ok()?.pop_front();
    while let Some(Call { method, path, body }) = next() {
        let (status, _) = wire.request(method, &path, &body).await?;
        ensure!(matches!(status, 200 | 201), "{method} {path}: {status}");
    }
    Ok(())
}

/// What the sets say about their pods, as a watch tells it.
struct Statuses {
    target: Target,
    wire: Wire,
    /// Passes over what is not looked at, so that looking costs little beside what is measured.
    parser: Parser,
    by_name: BTreeMap<String, Status>,
}

struct Status {
    /// Whether the controller has seen the set.
    is_observed: bool,
    replicas: usize,
}

impl Statuses {
    async fn follow(target: &Target) -> anyhow::Result<Self> {
        Ok(Self {
            target: target.clone(),
            wire: Self::watch(target).await?,
            parser: Parser::new(ParseOptions::pruning(
                Prune::nothing()
                    .and("object.spec")
                    .and("object.metadata.managedFields"),
            )),
            by_name: BTreeMap::new(),
        })
    }

    /// A watch that begins with everything there is.
    async fn watch(target: &Target) -> anyhow::Result<Wire> {
        let mut wire = target.connect().await?;
        wire.open(&format!("{SETS}?watch=1")).await?;
        Ok(wire)
    }

    async fn until(&mut self, is_reached: impl Fn(&Self) -> bool) -> anyhow::Result<()> {
        while !is_reached(self) {
            let Ok(lines) = self.wire.lines().await else {
                // Servers end the watches of those who do not keep up.
                self.wire = Self::watch(&self.target).await?;
                continue;
            };
            for line in lines
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.is_empty())
            {
                let event = self.parser.parse(line)?.doc;
                self.note(&event)?;
            }
        }
        Ok(())
    }

    fn note(&mut self, event: &Doc) -> anyhow::Result<()> {
        let sort = event.str_at("/type");
        ensure!(matches!(sort, "ADDED" | "MODIFIED"), "a watch said {sort}");
        let set = event.at("/object");
        let count = |path: &str| set.at(path).as_u64().unwrap_or(0);
        let status = Status {
            is_observed: count("/status/observedGeneration") > 0,
            replicas: usize::try_from(count("/status/replicas")).context("replicas")?,
        };
        self.by_name.insert(set.meta().name().to_owned(), status);
        Ok(())
    }

    fn count(&self, is_meant: impl Fn(&Status) -> bool) -> usize {
        self.by_name
            .values()
            .filter(|status| is_meant(status))
            .count()
    }
}
