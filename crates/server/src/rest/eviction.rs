//! The eviction of pods: a delete that asks the disruption budget first.

use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use windlass_core::{Condition, Doc, GroupKind, Gvk, LabelSelector, Selector, Time};
use windlass_store::{Change, Entry};

use super::ask::Question;
use super::delete::{self, DeleteOptions};
use super::operation::Operation;
use super::write::Proposal;
use super::{Call, object, pod};
use crate::body::Body;
use crate::object_size::put_checked;
use crate::query::{self, FieldValidation};
use crate::storage;
use windlass_access::matching::OperationType;
use windlass_rules::field::Cause;
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::status::Status;

const EVICTION: Gvk = Gvk::constant("policy", "v1", "Eviction");
/// Upstream's retries of an eviction that lost against other writes, and the time between them.
const CONFLICT_RETRIES: u32 = 20;
const CONFLICT_DELAY: Duration = Duration::from_millis(500);

/// The part a disruption budget played in an eviction that it allows.
enum Allowance {
    /// There is no budget, or one disruption was taken from it.
    Granted,
    /// The pod is not healthy and costs nothing, as long as it stays so. Names the budget.
    Unhealthy(String),
}

/// Deletes a pod if its disruption budget allows.
pub(super) async fn evict(call: &Call) -> Result<Response<Body>, Status> {
    call.query.write_options("CreateOptions")?;
    let eviction = object::decode(call, &EVICTION, FieldValidation::Ignore, &mut Vec::new())?;
    let name = eviction.meta().name();
    if name != call.path.name {
        return Err(Status::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    let given = eviction.at("/deleteOptions");
    check_given(call, given)?;
    let dry_run = delete_options(call, given)?.dry_run;
    let question = Question {
        operation: call.operation(),
        sort: OperationType::Create,
        kind: EVICTION,
        object: eviction,
        dry_run,
    };
    let eviction = question.ask().await?;
    let given = eviction.at("/deleteOptions");
    let mut tries_left = CONFLICT_RETRIES;
    loop {
        let pod = call.find()?;
        crate::admission::evict(&call.operation().admission(), &pod)?;
        let options = delete_options(call, given)?;
        // Other writes change neither a uid nor the past: such a conflict stays.
        delete::check_preconditions(&call.resource, &pod, &options)?;
        tries_left -= 1;
        let is_final = options.revision.is_some() || tries_left == 0;
        let outcome = match needs_budget(&pod) {
            true => return guarded(call, &pod, options).await,
            false => unguarded(call, &pod, options).await,
        };
        match outcome {
            // The pod may be guarded now.
            Err(status) if status.code() == StatusCode::CONFLICT && !is_final => {
                tokio::time::sleep(CONFLICT_DELAY).await;
            }
            outcome => return outcome,
        }
    }
}

/// Refuses options that no eviction takes, and a dry run of which query and body say two things.
fn check_given(call: &Call, given: &Doc) -> Result<(), Status> {
    const IGNORE_ERRORS: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
    if given.get(IGNORE_ERRORS).and_then(Doc::as_bool) == Some(true) {
        let mut errors = FieldErrors::default();
        let detail = "can not be set for pod eviction, try after removing the option";
        let field = FieldPath::new("deleteOptions").child(IGNORE_ERRORS);
        errors.invalid(&field, true, detail);
        let kind = GroupKind::new("policy", "Eviction");
        return Err(Status::invalid(&kind, &call.path.name, &errors));
    }
    let asked: Vec<&str> = call.query.all("dryRun").collect();
    let body = given.at("/dryRun").items().iter();
    let body: Vec<&str> = body.filter_map(Doc::as_str).collect();
    if asked.is_empty() || body.is_empty() || asked == body {
        return Ok(());
    }
    // Upstream answers this with a plain failure.
    Err(Status::plain(format!(
        "Non-matching dry-run options in request and content: [{}] and [{}]",
        asked.join(" "),
        body.join(" ")
    )))
}

/// The options of the deletion. The query may ask for a dry run as well as the body.
fn delete_options(call: &Call, given: &Doc) -> Result<DeleteOptions, Status> {
    let mut errors = FieldErrors::default();
    let mut options = delete::options_in(given, &mut errors);
    options.dry_run |= call.query.all("dryRun").next().is_some();
    if errors.is_empty() {
        return Ok(options);
    }
    Err(query::options_invalid("DeleteOptions", &errors))
}

/// Evicts a pod that no budget guards, unless it becomes healthy meanwhile.
async fn unguarded(
    call: &Call,
    pod: &Doc,
    mut options: DeleteOptions,
) -> Result<Response<Body>, Status> {
    let is_starting = pod.str_at("/status/phase") == "Pending" && !pod.meta().is_deleting();
    if options.revision.is_none() && is_starting {
        options.revision = Some(pod.meta().resource_version().to_owned());
    }
    mark_and_delete(call, options).await
}

/// Evicts a pod if its budget allows.
async fn guarded(
    call: &Call,
    pod: &Doc,
    mut options: DeleteOptions,
) -> Result<Response<Body>, Status> {
    let is_conditional = options.revision.is_some();
    let Allowance::Unhealthy(budget) = spend_budget(call, pod, options.dry_run).await? else {
        return mark_and_delete(call, options).await;
    };
    options.revision = Some(pod.meta().resource_version().to_owned());
    match mark_and_delete(call, options).await {
        Err(status) if status.code() == StatusCode::CONFLICT && !is_conditional => {
            Err(still_processed(&budget))
        }
        outcome => outcome,
    }
}

/// Notes in the pod why it ends, then deletes it.
async fn mark_and_delete(
    call: &Call,
    mut options: DeleteOptions,
) -> Result<Response<Body>, Status> {
    if !options.dry_run {
        let now = call.server.inner().env.now();
        let mark = |pod: &Doc| {
            delete::check_preconditions(&call.resource, pod, &options)?;
            Ok(Proposal::Change(with_disruption(pod, now)))
        };
        let marked = pod::unattributed(call.operation(), false)
            .change(mark)
            .await?;
        // The note itself is a write.
        if options.revision.is_some() {
            options.revision = Some(marked.meta().resource_version().to_owned());
        }
        options.uid = Some(marked.meta().uid_str().to_owned());
    }
    // Extensions were asked about the eviction; upstream does not ask again.
    let operation = Operation {
        request: None,
        ..call.operation()
    };
    delete::delete_one(&operation, &options).await?;
    pod::success(call)
}

/// A pod that says why it ends.
fn with_disruption(pod: &Doc, now: Time) -> Doc {
    let message = "Eviction API: evicting";
    let condition = Condition::new("DisruptionTarget", true, "EvictionByEvictionAPI", message);
    windlass_core::with_condition(pod, &condition, now)
}

/// A pod that does not serve, or is going anyway, costs no budget.
fn needs_budget(pod: &Doc) -> bool {
    let phase = pod.str_at("/status/phase");
    !matches!(phase, "Succeeded" | "Failed" | "Pending") && !pod.meta().is_deleting()
}

/// Takes one disruption from the budget of a pod, if it has one.
async fn spend_budget(call: &Call, pod: &Doc, dry_run: bool) -> Result<Allowance, Status> {
    let store = &call.server.inner().storage;
    let budgets = store.snapshot_of("policy", "poddisruptionbudgets");
    let mut found = budgets
        .namespace(call.namespace(), "")
        .filter(|entry| covers(entry.doc(), pod));
    let Some(budget) = found.next() else {
        return Ok(Allowance::Granted);
    };
    if found.next().is_some() {
        return Err(Status::plain(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does \
             not support.",
        ));
    }
    let is_ready = windlass_core::condition(pod, "Ready").is_some_and(|ready| ready.is_true());
    let always = budget.doc().str_at("/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow";
    let healthy = budget
        .doc()
        .at("/status/currentHealthy")
        .as_i64()
        .unwrap_or(0);
    let desired = budget
        .doc()
        .at("/status/desiredHealthy")
        .as_i64()
        .unwrap_or(0);
    if !is_ready && (always || healthy >= desired && desired > 0) {
        let name = budget.doc().meta().name().to_owned();
        return Ok(Allowance::Unhealthy(name));
    }
    let name = pod.meta().name();
    let now = call.server.inner().env.now();
    let take = |current: Option<&Arc<Entry>>| match current {
        None => Ok((Change::Keep, ())),
        Some(entry) => match spent(entry.doc(), name, now) {
            Ok(_) if dry_run => Ok((Change::Keep, ())),
            Ok(doc) => Ok((put_checked(doc)?, ())),
            Err(status) => Err(status),
        },
    };
    let shelf = windlass_store::Resource::new("policy", "poddisruptionbudgets");
    let key = storage::key(call.namespace(), budget.doc().meta().name());
    // Upstream's answer after as many conflicts as it has the patience for.
    let busy = || {
        let budget = budget.doc().meta().name();
        Status::timeout(&format!(
            "couldn't update PodDisruptionBudget {budget:?} due to conflicts"
        ))
    };
    match store.settle((&shelf, &key), take).await {
        Ok(_) => Ok(Allowance::Granted),
        Err(error) => Err(storage::unsettled(error, busy)),
    }
}

fn covers(budget: &Doc, pod: &Doc) -> bool {
    let selector = budget.at("/spec/selector");
    let parsed = selector.decode::<LabelSelector>().ok();
    let selector = parsed.and_then(|parsed| Selector::try_from(&parsed).ok());
    selector.is_some_and(|selector| selector.matches(&pod.meta().labels()))
}

/// A budget with one disruption less, or the refusal.
fn spent(budget: &Doc, pod: &str, now: Time) -> Result<Doc, Status> {
    let name = budget.meta().name();
    if budget
        .at("/status/observedGeneration")
        .as_i64()
        .unwrap_or(0)
        < budget.meta().generation()
    {
        return Err(still_processed(name));
    }
    let allowed = budget
        .at("/status/disruptionsAllowed")
        .as_i64()
        .unwrap_or(0);
    if allowed <= 0 {
        let (needed, have) = (
            budget.at("/status/desiredHealthy").as_i64().unwrap_or(0),
            budget.at("/status/currentHealthy").as_i64().unwrap_or(0),
        );
        let message = format!(
            "The disruption budget {name} needs {needed} healthy pods and has {have} currently"
        );
        return Err(refuse(message, 0));
    }
    let disrupted = budget.at("/status/disruptedPods").as_object().cloned();
    let disrupted = disrupted.unwrap_or_else(windlass_core::Object::empty);
    let disrupted = disrupted.with(pod, now.to_string().into());
    let budget = object::put(budget.clone(), "/status/disruptionsAllowed", allowed - 1);
    Ok(object::put(budget, "/status/disruptedPods", disrupted))
}

/// 429 about a budget that has yet to take a change into account.
fn still_processed(budget: &str) -> Status {
    let message = format!("The disruption budget {budget} is still being processed by the server.");
    refuse(message, 10)
}

fn refuse(message: String, after_seconds: u64) -> Status {
    let cannot = "Cannot evict pod as it would violate the pod's disruption budget.";
    let status = Status::too_many_requests(cannot, Duration::from_secs(after_seconds));
    status.with_cause(Cause {
        reason: "DisruptionBudget",
        message,
        field: String::new(),
    })
}
