//! The disruption controller: keeps the status of PodDisruptionBudgets, which the eviction of pods
//! asks.
//!
//! A sync counts the healthy pods that a budget selects, works out how many there must be, and
//! writes how many disruptions are allowed. Pods that were evicted and are not deleted yet count as
//! disrupted for two minutes. A second controller takes back the condition `DisruptionTarget` of
//! pods that nobody deleted after all.

mod scale;
mod selector_text;
mod stale;
mod status;

use std::{sync::Arc, time::Duration};

use windlass_cache::{Obj, SharedInformer};
use windlass_client::{DiscoveryClient, WriteOptions};
use windlass_core::{Doc, GroupVersion, IntOrString, Key, LabelSelector, MicroTime, Selector};
use windlass_runtime::{
    Action, Change, Context, Controller, Error, EventRecorder, EventType, Manager, ResourceKind,
    Result, Trigger,
};

use crate::owned::{self, core_kind};
use status::BudgetStatus;

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "disruption-controller";

/// The fields of a pod's spec that this controller reads.
pub const POD_SPEC_FIELDS: &[&str] = &[];

/// The time in which an evicted pod must be deleted. After it the pod counts as healthy again.
pub const DELETION_TIMEOUT: Duration = Duration::from_secs(120);

/// The component of the events, which is not the name of the controller.
const COMPONENT: &str = "controllermanager";

/// The numbers of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Budgets that are synced at the same time.
    pub workers: usize,
    /// The time after which a pod with the condition `DisruptionTarget` that is not being deleted
    /// loses it.
    pub stale_after: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workers: 1,
            stale_after: DELETION_TIMEOUT,
        }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let informer = |kind: &ResourceKind| manager.factory().dynamic(kind.gvr().clone());
    let kind = budgets();
    let engine = Arc::new(Engine {
        budgets: informer(&kind),
        pods: informer(&core_kind("Pod", "pods")),
        owners: scale::Owners::new(manager),
        discovery: DiscoveryClient::new(manager.client().clone()),
        recorder: manager.recorder(COMPONENT),
        kind,
    });
    manager.add(stale::controller(options.stale_after));
    manager.add(engine.controller(options.workers));
}

fn budgets() -> ResourceKind {
    let group_version = GroupVersion::constant("policy", "v1");
    ResourceKind::namespaced(group_version, "PodDisruptionBudget", "poddisruptionbudgets")
}

/// The controller.
struct Engine {
    kind: ResourceKind,
    budgets: SharedInformer,
    pods: SharedInformer,
    owners: scale::Owners,
    discovery: DiscoveryClient,
    recorder: EventRecorder,
}

/// The pods that a budget expects and needs.
struct Expected {
    /// All pods that there should be.
    pods: i64,
    /// The pods that must be healthy.
    healthy: i64,
    /// True if pods without a controller were left out.
    has_unmanaged: bool,
}

impl Engine {
    fn controller(self: Arc<Self>, workers: usize) -> Controller {
        let (kind, of_pods) = (self.kind.clone(), self.clone());
        let mut controller = Controller::of_kind(kind, move |key: Key, cx: Context| {
            let engine = self.clone();
            async move { engine.sync(&key, &cx).await }
        })
        .named(NAME)
        .queue_named("disruption")
        .component(COMPONENT)
        .workers(workers)
        .reacts_to_kind(core_kind("Pod", "pods"), move |change| {
            of_pods.on_pod(change)
        });
        for kind in scale::kinds() {
            controller = controller.reads_kind(kind);
        }
        controller
    }

    /// A pod concerns the first budget that selects it. The labels that it had before do not count.
    fn on_pod(&self, change: &Change<'_>) -> Vec<Trigger> {
        let Some(pod) = change.object() else {
            return Vec::new();
        };
        let budgets = self.budgets.lister();
        let budgets = budgets.list_in(pod.namespace(), &Selector::everything());
        let selects = |budget: &&Obj| {
            let selector = owned::label_selector(budget.doc());
            selector.is_ok_and(|selector| selector.matches(&pod.labels()))
        };
        let mut selecting = budgets.iter().filter(selects);
        let Some(first) = selecting.next() else {
            return Vec::new();
        };
        if selecting.next().is_some() {
            let (namespace, name) = (pod.namespace(), pod.name());
            let text = format!(
                "Pod {namespace:?}/{name:?} matches multiple PodDisruptionBudgets.  Chose {:?} arbitrarily.",
                first.name()
            );
            let (kind, reason) = (EventType::Warning, "MultiplePodDisruptionBudgets");
            self.recorder.event(pod.doc(), kind, reason, &text);
        }
        vec![Trigger::now(first.key())]
    }

    async fn sync(&self, key: &Key, cx: &Context) -> Result<Action> {
        let Some(budget) = self.budgets.lister().get(key) else {
            return Ok(Action::done());
        };
        match self.try_to_sync(cx, budget.doc()).await {
            // Somebody else wrote the budget: the next sync sees it.
            Err(error) if is_conflict(&error) => Err(error),
            Err(error) => {
                tracing::error!(budget = %key, %error, "a budget allows nothing: its sync failed");
                self.fail_safe(cx, budget.doc(), &error).await?;
                Ok(Action::done())
            }
            done => done,
        }
    }

    async fn try_to_sync(&self, cx: &Context, budget: &Doc) -> Result<Action> {
        let recorder = cx.recorder();
        let selector = owned::label_selector(budget).inspect_err(|error| {
            let text = format!("Failed to get pods: {error}");
            recorder.event(budget, EventType::Warning, "NoPods", &text);
        })?;
        let namespace = budget.meta().namespace();
        let pods = self.pods.lister().list_in(namespace, &selector);
        if pods.is_empty() {
            let text = "No matching pods found";
            recorder.event(budget, EventType::Normal, "NoPods", text);
        }
        let expected = self.expected(budget, &pods).await.inspect_err(|error| {
            let text = format!("Failed to calculate the number of expected pods: {error}");
            let reason = "CalculateExpectedPodCountFailed";
            recorder.event(budget, EventType::Warning, reason, &text);
        })?;
        if expected.has_unmanaged {
            tell_unmanaged(cx, budget);
        }
        let now = cx.env().now_micro();
        let (status, again) = self.status(budget, &pods, &expected, now);
        if let Some(changed) = status.written_to(budget, now.to_time())? {
            self.write(cx, &changed).await?;
        }
        Ok(again.map_or_else(Action::done, Action::requeue_after))
    }

    /// The number of pods that a budget expects, and how many of them must be healthy.
    async fn expected(&self, budget: &Doc, pods: &[Obj]) -> Result<Expected> {
        let (most, least) = (
            budget.at("/spec/maxUnavailable"),
            budget.at("/spec/minAvailable"),
        );
        if !most.is_null() {
            let scale = self.expected_scale(pods).await?;
            let most: IntOrString = most.decode()?;
            let healthy = (scale.pods - most.scaled_up(scale.pods)?).max(0);
            return Ok(Expected { healthy, ..scale });
        }
        if least.is_null() {
            return Ok(Expected {
                pods: 0,
                healthy: 0,
                has_unmanaged: false,
            });
        }
        match least.decode()? {
            IntOrString::Int(number) => Ok(Expected {
                pods: i64::try_from(pods.len()).unwrap_or(i64::MAX),
                healthy: number.into(),
                has_unmanaged: false,
            }),
            share @ IntOrString::String(_) => {
                let scale = self.expected_scale(pods).await?;
                let healthy = share.scaled_up(scale.pods)?;
                Ok(Expected { healthy, ..scale })
            }
        }
    }

    /// The status of a budget, and when to look again at pods that were evicted.
    fn status(
        &self,
        budget: &Doc,
        pods: &[Obj],
        expected: &Expected,
        now: MicroTime,
    ) -> (BudgetStatus, Option<Duration>) {
        let disrupted = status::disrupted(budget, pods, now, |pod| {
            // Upstream prints the namespace twice.
            let namespace = budget.meta().namespace();
            let text = format!(
                "Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
            );
            let kind = EventType::Warning;
            self.recorder.event(pod.doc(), kind, "NotDeleted", &text);
        });
        let again = disrupted.next_expiry(now);
        let healthy = disrupted.healthy(pods, now);
        let status = BudgetStatus::new(budget, expected, healthy, disrupted);
        (status, again)
    }

    /// Allows nothing while it is not known how much is allowed.
    async fn fail_safe(&self, cx: &Context, budget: &Doc, error: &Error) -> Result<()> {
        let text = api_message(error);
        let changed = status::failed(budget, &text, cx.env().now())?;
        self.write(cx, &changed).await
    }

    async fn write(&self, cx: &Context, budget: &Doc) -> Result<()> {
        let api = cx.api(&self.kind, budget.meta().namespace());
        let options = WriteOptions::default().metadata_only();
        api.update_status(budget, &options).await?;
        Ok(())
    }
}

fn tell_unmanaged(cx: &Context, budget: &Doc) {
    let selector: LabelSelector = budget.at("/spec/selector").decode().unwrap_or_default();
    let text = format!(
        "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a \
         result, the status of the PDB cannot be calculated correctly, which may result in \
         undefined behavior. To account for these pods please set \".spec.minAvailable\" field of \
         the PDB to an integer value.",
        selector_text::of(&selector)
    );
    let recorder = cx.recorder();
    recorder.event(budget, EventType::Warning, "UnmanagedPods", &text);
}

fn is_conflict(error: &Error) -> bool {
    let api = error.downcast_ref::<windlass_client::Error>();
    api.is_some_and(windlass_client::Error::is_conflict)
}

/// The text of an error as kube-apiserver's clients in Go print it: the message of the answer.
fn api_message(error: &Error) -> String {
    let api = error.downcast_ref::<windlass_client::Error>();
    let status = api.and_then(windlass_client::Error::status);
    status.map_or_else(|| error.to_string(), |status| status.message.clone())
}
