//! The agent behind all pretend nodes.

mod memory;
mod show;
mod stopped;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{task::JoinSet, time::Instant};
use windlass_cache::{Deleted, Handler, Lister, Obj};
use windlass_client::{DeleteOptions, DynamicApi, DynamicClient, Error};
use windlass_core::{Doc, Env, Gvr, Key, Selector};
use windlass_queue::WorkQueue;
use windlass_runtime::{EventRecorder, EventType, Manager, Result, Shutdown};

pub(super) use self::stopped::is_stopped;
use self::{
    memory::{Known, Memory, Rest},
    show::Shown,
    stopped::{NodeHandler, StoppedNodes},
};
use super::{
    NAME, Options,
    behaviour::Behaviour,
    register::{LEASES, NODES, leases_of, resources},
    resize::ResizeVerdict,
    run::Step,
};
use crate::scheduler::{Resources, requests_of};

const PODS: Gvr = Gvr::constant("", "v1", "pods");

/// Pods that are worked on at once.
const WORKERS: usize = 64;

/// How long to wait before what a pod needs is asked for again.
const PREPARE_INTERVAL: Duration = Duration::from_secs(1);

/// Steps in a row for one pod. A pod needs a handful; more would be a mistake.
const STEPS_LIMIT: usize = 32;

/// Serves all pods of all pretend nodes.
pub(super) struct Agent {
    pub(super) options: Options,
    pub(super) nodes: DynamicApi,
    pub(super) leases: DynamicApi,
    pub(super) env: Env,
    /// The numbers of the nodes by name.
    pub(super) hosts: BTreeMap<String, usize>,
    /// The Leases as they were last written, by the name of the node.
    pub(super) held: Mutex<BTreeMap<String, Doc>>,
    /// The nodes that an annotation has stopped.
    pub(super) stopped: StoppedNodes,
    pods: DynamicApi,
    lister: Lister,
    queue: WorkQueue<Key>,
    memory: Memory,
    recorder: EventRecorder,
}

impl Agent {
    pub(super) fn new(manager: &Manager, options: &Options) -> Arc<Self> {
        let client = DynamicClient::new(manager.client().clone());
        let names = (0..options.nodes).map(|number| format!("{}{number}", options.name_prefix));
        Arc::new(Self {
            nodes: client.resource(NODES),
            leases: leases_of(client.resource(LEASES)),
            env: manager.env().clone(),
            hosts: names.zip(0..).collect(),
            held: Mutex::default(),
            stopped: StoppedNodes::default(),
            pods: client.resource(PODS),
            lister: manager.factory().dynamic(PODS).lister(),
            queue: WorkQueue::new(),
            memory: Memory::default(),
            recorder: manager.recorder("kubelet"),
            options: options.clone(),
        })
    }

    pub(super) fn add_to(self: Arc<Self>, manager: &Manager) {
        let handler = PodHandler(self.clone());
        if let Err(failure) = manager.factory().dynamic(PODS).add_handler(handler) {
            tracing::error!(%failure, "a handler could not be added");
        }
        let handler = NodeHandler(self.clone());
        if let Err(failure) = manager.factory().dynamic(NODES).add_handler(handler) {
            tracing::error!(%failure, "a handler could not be added");
        }
        manager.add_task(NAME, move |shutdown| async move {
            self.run(shutdown).await;
            Result::Ok(())
        });
    }

    async fn run(self: Arc<Self>, shutdown: Shutdown) {
        let mut tasks = JoinSet::new();
        tasks.spawn(self.clone().keep_nodes(shutdown.clone()));
        for _ in 0..WORKERS {
            tasks.spawn(self.clone().work());
        }
        shutdown.requested().await;
        self.queue.shut_down();
        while tasks.join_next().await.is_some() {}
    }

    async fn work(self: Arc<Self>) {
        while let Some(item) = self.queue.get().await {
            match self.serve(item.key()).await {
                Ok(()) => self.queue.forget(item.key()),
                Err(error) => {
                    tracing::warn!(pod = %item.key(), %error, "a pretend pod was not served");
                    self.queue.add_rate_limited(item.key().clone());
                }
            }
        }
    }

    /// Takes a pod as far as it goes now.
    async fn serve(&self, key: &Key) -> Result<(), Error> {
        for _ in 0..STEPS_LIMIT {
            let cached = self.lister.get(key);
            let cached = cached
                .as_ref()
                .map(Obj::doc)
                .filter(|pod| self.is_here(pod));
            let node = cached.map_or("", |pod| pod.str_at("/spec/nodeName"));
            // A node that has stopped says nothing of its pods. They are served when it is back.
            if self.stopped.contains(node) {
                return Ok(());
            }
            let (now, wall) = (Instant::now(), self.env.now_micro());
            let (known, left) = self.memory.take(key, cached, now, wall);
            if let Some(pod) = left {
                self.unprepare(&pod);
            }
            let Some(mut known) = known else {
                return Ok(());
            };
            // What comes back from the watch is mostly what was written from here.
            if known.rest.lasts(now) {
                let rest = known.rest;
                self.memory.put(key, known);
                self.come_back(key, rest, now);
                return Ok(());
            }
            let rest = self.step(&mut known).await;
            if let Ok(rest) = &rest {
                known.rest = *rest;
            }
            self.memory.put(key, known);
            let rest = rest?;
            if rest != Rest::None {
                self.come_back(key, rest, now);
                return Ok(());
            }
        }
        tracing::error!(pod = %key, limit = STEPS_LIMIT, "a pretend pod makes no progress");
        Ok(())
    }

    /// Looks at a pod again when its rest is over. A queue that already waits for the pod comes
    /// back at the earlier time only, so whoever comes too early says it again.
    fn come_back(&self, key: &Key, rest: Rest, now: Instant) {
        if let Rest::Until(end) = rest {
            let after = end.saturating_duration_since(now);
            self.queue.add_after(key.clone(), after);
        }
    }

    /// Does what is next for a pod, and says how long there is nothing more to do.
    async fn step(&self, known: &mut Known) -> Result<Rest, Error> {
        let (now, wall) = (Instant::now(), self.env.now());
        let does = Behaviour::of(&known.pod, &self.options);
        self.tell_problems(known, &does);
        let judge = || self.judge_resize(&known.pod);
        let run = &mut known.run;
        run.settle_resize(&known.pod, does.resize_after, (now, wall), judge);
        let step = run.advance(&known.pod, &does, now, wall);
        self.tell_notes(known);
        match step {
            Step::Show(after) => {
                let due = after.map(|after| now + after);
                Ok(match (self.show(known, &does).await?, due) {
                    (Shown::Outdated, _) => Rest::None,
                    (Shown::Later(later), Some(due)) if due > now => Rest::Until(later.min(due)),
                    (Shown::Later(later), _) => Rest::Until(later),
                    (Shown::Yes, None) => Rest::Forever,
                    (Shown::Yes, Some(due)) if due <= now => Rest::None,
                    (Shown::Yes, Some(due)) => Rest::Until(due),
                })
            }
            Step::Prepare => match self.prepare(&known.pod) {
                Ok(()) => {
                    known.run.has_prepared();
                    Ok(Rest::None)
                }
                Err(message) => {
                    let reason = "FailedPrepareDynamicResources";
                    self.recorder
                        .event(&known.pod, EventType::Warning, reason, &message);
                    self.show(known, &does).await?;
                    Ok(Rest::Until(now + PREPARE_INTERVAL))
                }
            },
            Step::Remove if known.run.is_gone => Ok(Rest::Forever),
            Step::Remove => self.remove(known).await.map(|()| Rest::Forever),
        }
    }

    /// Tells which annotations of a pod could not be used, once for each set of annotations.
    fn tell_problems(&self, known: &mut Known, does: &Behaviour) {
        let annotations = known.pod.at("/metadata/annotations");
        if does.problems.is_empty() || known.told == *annotations {
            return;
        }
        known.told = annotations.clone();
        for problem in &does.problems {
            let reason = "InvalidAnnotation";
            self.recorder
                .event(&known.pod, EventType::Warning, reason, problem);
        }
    }

    /// Tells what has happened to the containers of a pod.
    fn tell_notes(&self, known: &mut Known) {
        for note in known.run.notes.drain(..) {
            self.recorder
                .event(&known.pod, EventType::Warning, note.reason, &note.message);
        }
    }

    /// Compares the resources that a pod asks for with what its node has, and with what the other
    /// pods there have.
    fn judge_resize(&self, pod: &Doc) -> ResizeVerdict {
        let node = pod.str_at("/spec/nodeName");
        let wanted = requests_of(pod.at("/spec"));
        let has = Resources::of(&resources(&self.options.capacity));
        let mut used = Resources::default();
        for other in self.lister.list(&Selector::everything()) {
            let is_other = other.doc().str_at("/spec/nodeName") == node
                && other.meta().uid_str() != pod.meta().uid_str()
                && !crate::pod::is_pod_terminal(other.doc());
            if is_other {
                used.add(&requests_of(other.doc().at("/spec")));
            }
        }
        for (name, wanted, has, used) in [
            ("cpu", wanted.cpu_milli, has.cpu_milli, used.cpu_milli),
            ("memory", wanted.memory, has.memory, used.memory),
        ] {
            if wanted > has {
                return ResizeVerdict::Infeasible(format!(
                    "Node didn't have enough capacity: {name}, requested: {wanted}, capacity: {has}"
                ));
            }
            if used.saturating_add(wanted) > has {
                return ResizeVerdict::Deferred(format!(
                    "Node didn't have enough resource: {name}, requested: {wanted}, used: {used}, \
                     capacity: {has}"
                ));
            }
        }
        ResizeVerdict::Fits
    }

    /// The address of a node.
    pub(super) fn host_address(&self, name: &str) -> String {
        let number = self.hosts.get(name).copied().unwrap_or(0);
        format!("172.18.{}.{}", number / 250 % 256, number % 250 + 2)
    }

    fn prepare(&self, pod: &Doc) -> Result<(), String> {
        match &self.options.resources {
            Some(resources) => resources.prepare(pod.str_at("/spec/nodeName"), pod),
            None => Ok(()),
        }
    }

    fn unprepare(&self, pod: &Doc) {
        if let Some(resources) = &self.options.resources {
            resources.unprepare(pod.str_at("/spec/nodeName"), pod);
        }
    }

    /// Finishes the deletion of a pod.
    async fn remove(&self, known: &mut Known) -> Result<(), Error> {
        self.unprepare(&known.pod);
        let meta = known.pod.meta();
        let api = self.pods.clone().namespaced(meta.namespace());
        let options = DeleteOptions {
            grace_period: Some(Duration::ZERO),
            ..DeleteOptions::uid(meta.uid_str())
        };
        match api.delete(meta.name(), &options).await {
            // Another pod of that name is shown by the cache, sooner or later.
            Err(error) if !error.is_not_found() => return Err(error),
            _ => known.run.is_gone = true,
        }
        Ok(())
    }

    /// Whether a pod is on one of the nodes.
    fn is_here(&self, pod: &Doc) -> bool {
        self.hosts.contains_key(pod.str_at("/spec/nodeName"))
    }
}

struct PodHandler(Arc<Agent>);

impl PodHandler {
    fn seen(&self, pod: &Obj) {
        if self.0.is_here(pod.doc()) {
            self.0.queue.add(pod.key());
        }
    }
}

impl Handler<Doc> for PodHandler {
    async fn on_add(&self, pod: Obj, _is_initial: bool) {
        self.seen(&pod);
    }

    async fn on_update(&self, _old: Obj, new: Obj) {
        self.seen(&new);
    }

    async fn on_delete(&self, deleted: Deleted) {
        self.seen(deleted.object());
    }
}
