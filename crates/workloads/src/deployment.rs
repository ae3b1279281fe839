//! Rolls out the pods of a Deployment by scaling ReplicaSets, one for each template it ever had.
//!
//! A sync takes the smallest step that is safe now: it creates the set of the current template, or
//! scales one set up, or others down, and then writes the status. The changes of the sets that
//! follow bring the next step. Nothing is remembered between syncs but what the objects say.

mod annotations;
mod clean_up;
mod conditions;
mod handlers;
mod limits;
mod new_set;
mod progress;
mod recreate;
mod rollback;
mod rolling;
mod rollout;
mod scale;
mod set;
mod status;
pub(crate) mod template;

use std::sync::Arc;

use windlass_cache::{Obj, SharedInformer};
use windlass_core::{Key, Selector};
use windlass_runtime::{
    Action, Context, Controller, Error, EventType, Manager, ResourceKind, Result,
};

use crate::{
    RefManager, is_namespace_terminating,
    owned::{self, apps_kind, core_kind},
    replicaset,
};
use handlers::Handlers;
use rollout::Rollout;
use set::Set;

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "deployment-controller";

/// How many Deployments are synced at the same time, as in kube-controller-manager.
pub const WORKERS: usize = 5;
/// How often a Deployment that fails is tried again before it is left until it changes.
pub const RETRIES_LIMIT: u32 = 15;

/// The numbers of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many Deployments are synced at the same time.
    pub workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { workers: WORKERS }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let kinds = Kinds {
        deployments: apps_kind("Deployment", "deployments"),
        sets: apps_kind("ReplicaSet", "replicasets"),
        pods: core_kind("Pod", "pods"),
    };
    let informer = |kind: &ResourceKind| manager.factory().dynamic(kind.gvr().clone());
    let engine = Arc::new(Engine {
        deployments: informer(&kinds.deployments),
        sets: informer(&kinds.sets),
        pods: informer(&kinds.pods),
        kinds,
    });
    owned::index_owners(&engine.deployments, owned::label_selector);
    owned::index_children(&engine.sets);
    owned::index_children(&engine.pods);
    manager.add(engine.controller(options.workers));
}

/// The kinds this is about.
struct Kinds {
    deployments: ResourceKind,
    sets: ResourceKind,
    pods: ResourceKind,
}

/// The controller.
struct Engine {
    kinds: Kinds,
    deployments: SharedInformer,
    sets: SharedInformer,
    pods: SharedInformer,
}

impl Engine {
    fn controller(self: Arc<Self>, workers: usize) -> Controller {
        let (deployments, sets, pods) = (
            self.kinds.deployments.clone(),
            self.kinds.sets.clone(),
            self.kinds.pods.clone(),
        );
        let handlers = Arc::new(Handlers::of(&self));
        let of_sets = handlers.clone();
        let sync = move |key: Key, cx: Context| {
            let engine = self.clone();
            async move { engine.sync(&key, &cx).await.map_err(resigned) }
        };
        Controller::of_kind(deployments, sync)
            .named(NAME)
            .queue_named("deployment")
            .workers(workers)
            .max_retries(RETRIES_LIMIT)
            .reacts_to_kind(sets, move |change| of_sets.on_set(change))
            .reacts_to_kind(pods, move |change| handlers.on_pod(change))
    }

    async fn sync(&self, key: &Key, cx: &Context) -> Result<Action> {
        let Some(deployment) = self.deployments.lister().get(key) else {
            return Ok(Action::done());
        };
        let selector = match owned::label_selector(deployment.doc()) {
            Ok(selector) => selector,
            Err(error) => return Err(error.context("invalid label selector")),
        };
        if selector.is_everything() {
            return self.refuse(cx, &deployment).await;
        }
        let sets = self.claim(cx, &deployment, &selector).await?;
        Rollout::new(self, cx, deployment.doc(), sets).step().await
    }

    /// A Deployment that selects everything gets nothing but an answer.
    async fn refuse(&self, cx: &Context, deployment: &Obj) -> Result<Action> {
        let message = "This deployment is selecting all pods. A non-empty selector is required.";
        cx.event(deployment, EventType::Warning, "SelectingAll", message);
        Rollout::new(self, cx, deployment.doc(), Vec::new())
            .acknowledge()
            .await;
        Ok(Action::done())
    }

    /// The sets that belong to a Deployment.
    async fn claim(&self, cx: &Context, deployment: &Obj, selector: &Selector) -> Result<Vec<Set>> {
        let sets = self.sets.lister().snapshot();
        let mut candidates = owned::children_of(&sets, deployment.doc());
        candidates.extend(owned::orphans(&sets, deployment.namespace(), selector));
        let (owner_kind, child_kind) = (&self.kinds.deployments, &self.kinds.sets);
        let manager = RefManager::new(cx, deployment.doc(), owner_kind, child_kind, selector);
        let claimed = manager.claim(candidates).await;
        if !claimed.errors.is_empty() {
            return Err(replicaset::together(&claimed.errors));
        }
        let sets = claimed.objects.into_iter();
        Ok(sets.map(|set| Set::new(set.doc().clone())).collect())
    }
}

/// What fails because the namespace is going is not tried again.
fn resigned(error: Error) -> Error {
    let request = error.downcast_ref::<windlass_client::Error>();
    if request.is_some_and(is_namespace_terminating) {
        return error.terminal();
    }
    error
}
