//! The way from a decision to a pod on its node.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use windlass_client::WriteOptions;
use windlass_core::{Doc, Str, doc};
use windlass_runtime::EventType;

use super::{
    cycle::{AttemptError, Cycles},
    metrics::Outcome,
    preemption::Nominating,
    queue::Popped,
    run::Scheduler,
};

/// How often a server that did not answer a binding is asked what became of it, and how long to
/// wait in between: twice as long each time.
const LOOKS: u32 = 5;
const LOOK_DELAY: Duration = Duration::from_millis(200);

/// A pod and the node it is to be bound to.
pub(super) struct Assignment {
    pub(super) popped: Popped,
    pub(super) node: Str,
    pub(super) cycles: Cycles,
    pub(super) began: Instant,
}

impl Scheduler {
    /// Binds a pod, or gives back what was taken for it.
    pub(super) async fn bind(self: Arc<Self>, mut assignment: Assignment) {
        let began = assignment.began;
        match self.try_bind(&mut assignment).await {
            Ok(()) => self.bound(&assignment),
            Err(error) => {
                let popped = self.undo(assignment).await;
                let error = AttemptError::Broken(error);
                if let Some(report) = self.settle(&popped, &error, &Nominating::Clear, began) {
                    self.report(report).await;
                }
            }
        }
    }

    async fn try_bind(&self, assignment: &mut Assignment) -> Result<(), String> {
        let gone = || "the pod is gone".to_owned();
        for (at, cycle) in &mut assignment.cycles {
            if !self.still_wants(&assignment.popped) {
                return Err(gone());
            }
            let plugin = self.plugins[*at].name();
            cycle
                .pre_bind()
                .await
                .map_err(|reason| format!("running PreBind plugin {plugin:?}: {reason}"))?;
        }
        if !self.still_wants(&assignment.popped) {
            return Err(gone());
        }
        if !self.state.lock().begin_binding(&assignment.popped.uid) {
            return Err("preempted by DefaultPreemption".to_owned());
        }
        let pod = &assignment.popped.pod;
        let meta = pod.meta();
        let api = self.pods.clone().namespaced(meta.namespace());
        let binding = binding(pod, &assignment.node);
        let bound = api
            .create_part(meta.name(), "binding", &binding, &WriteOptions::default())
            .await;
        let Err(error) = bound else {
            return Ok(());
        };
        // What the server refuses it has not done.
        let is_refused = error.status().is_some_and(|status| status.code < 500);
        if !is_refused && self.is_bound(pod, &assignment.node).await {
            return Ok(());
        }
        Err(format!("running Bind plugin \"DefaultBinder\": {error}"))
    }

    /// Whether a pod is on its node although the server did not say so. What is taken back from a
    /// pod that is there would be missed.
    async fn is_bound(&self, pod: &Doc, node: &Str) -> bool {
        let meta = pod.meta();
        let api = self.pods.clone().namespaced(meta.namespace());
        let mut delay = LOOK_DELAY;
        for _ in 0..LOOKS {
            match api.get(meta.name()).await {
                Ok(pod) => {
                    let is_same = pod.meta().uid_str() == meta.uid_str();
                    return is_same && pod.str_at("/spec/nodeName") == node.as_str();
                }
                Err(error) if error.is_not_found() => return false,
                Err(_) => tokio::time::sleep(delay).await,
            }
            delay *= 2;
        }
        false
    }

    /// Whether a pod still waits for its node.
    fn still_wants(&self, popped: &Popped) -> bool {
        self.state.lock().queue.contains(&popped.uid)
    }

    fn bound(&self, assignment: &Assignment) {
        let Popped {
            uid,
            pod,
            attempts,
            first,
            ..
        } = &assignment.popped;
        self.state.lock().queue.done(uid);
        let took = assignment.began.elapsed();
        self.metrics.attempted(Outcome::Scheduled, &self.name, took);
        self.metrics.scheduled(*attempts, first.elapsed());
        let message = format!(
            "Successfully assigned {} to {}",
            pod.meta().key(),
            assignment.node
        );
        self.recorder
            .event(pod, EventType::Normal, "Scheduled", &message);
    }

    /// Gives back what was taken for a pod.
    pub(super) async fn undo(&self, mut assignment: Assignment) -> Popped {
        for (_, cycle) in assignment.cycles.iter_mut().rev() {
            cycle.unreserve().await;
        }
        let popped = assignment.popped;
        self.state.lock().forget(&popped.uid, Instant::now());
        self.news.notify_one();
        popped
    }
}

fn binding(pod: &Doc, node: &Str) -> Doc {
    let meta = pod.meta();
    doc!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": (meta.name()), "namespace": (meta.namespace()), "uid": (meta.uid_str()),
        },
        "target": { "apiVersion": "v1", "kind": "Node", "name": (node.as_str()) },
    })
}
