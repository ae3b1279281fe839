//! The mutating pass: webhooks one after the other, and some of them again.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::time::Instant;
use windlass_core::{Doc, JsonPatch, quote};
use windlass_rules::status::Status;

use super::super::{Asked, Mutating, Mutation, Versioned};
use super::call::{self, HookError};
use super::matched::Matching;
use super::{Hook, Webhooks};

/// One mutating pass over a request.
pub(super) struct MutatingPass {
    webhooks: Arc<Webhooks>,
    /// The object as the last round left it.
    last: Option<Doc>,
    /// Webhooks that were called and want to be called again after a later change.
    called: HashSet<usize>,
    /// Those of them after which there was a change.
    due: HashSet<usize>,
}

impl MutatingPass {
    pub(super) fn new(webhooks: Arc<Webhooks>) -> Self {
        Self {
            webhooks,
            last: None,
            called: HashSet::new(),
            due: HashSet::new(),
        }
    }

    /// The object has changed: whoever was called before it is due again.
    fn changed(&mut self) {
        self.due.extend(self.called.drain());
    }

    async fn round(&mut self, draft: &mut Mutating<'_>) -> Result<(), Status> {
        let is_again = draft.round > 0;
        if is_again && self.last != draft.review.object {
            self.changed();
        }
        let matching = Matching::new(&draft.review);
        let webhooks = Arc::clone(&self.webhooks);
        for (index, hook) in webhooks.mutating.iter().enumerate() {
            let Some(versioned) = matching.of(hook, &draft.review, "admit").await? else {
                continue;
            };
            // What was not called in the first round is not called in the second.
            if is_again && !self.due.contains(&index) {
                continue;
            }
            if mutate(hook, draft, &versioned, index).await? {
                self.changed();
                draft.reinvoke = true;
            }
            if hook.is_reinvoked {
                self.called.insert(index);
            }
        }
        self.last = draft.review.object.clone();
        Ok(())
    }
}

impl Mutation for MutatingPass {
    fn run<'a>(&'a mut self, draft: &'a mut Mutating<'_>) -> Asked<'a, ()> {
        Box::pin(self.round(draft))
    }
}

/// Calls one webhook, and gives true if it changed the object.
async fn mutate(
    hook: &Hook,
    draft: &mut Mutating<'_>,
    versioned: &Versioned,
    index: usize,
) -> Result<bool, Status> {
    let begun = Instant::now();
    let outcome = patched(hook, draft, versioned).await;
    call::count(hook, &draft.review, "admit", begun, &outcome);
    let place = format!("round_{}_index_{index}", draft.round);
    let is_changed = matches!(outcome, Ok(true));
    let notes = draft.review.surroundings.notes;
    // The order of the fields is upstream's.
    let (configuration, name) = (quote(&hook.configuration), quote(&hook.name));
    let value = format!(
        "{{\"configuration\":{configuration},\"webhook\":{name},\"mutated\":{is_changed}}}"
    );
    notes.annotate(format!("mutation.webhook.admission.k8s.io/{place}"), value);
    match outcome {
        Ok(is_changed) => Ok(is_changed),
        Err(HookError::Call { reason, .. }) if hook.fails_open => {
            tracing::warn!(
                webhook = hook.name,
                reason,
                "failed calling webhook, failing open"
            );
            let key = format!("failed-open.mutation.webhook.admission.k8s.io/{place}");
            notes.annotate(key, hook.name.clone());
            // The request may have no time left for others.
            call::check_deadline(&draft.review).map_err(|error| error.into_status(&hook.name))?;
            Ok(false)
        }
        Err(error) => Err(error.into_status(&hook.name)),
    }
}

/// Calls one webhook and puts the patched object into the draft.
async fn patched(
    hook: &Hook,
    draft: &mut Mutating<'_>,
    versioned: &Versioned,
) -> Result<bool, HookError> {
    let response = call::call(hook, &draft.review, versioned, true).await?;
    if response.patch.is_empty() {
        return Ok(false);
    }
    let undecodable = |why: String| {
        let why = format!("received undecodable patch in webhook response: {why}");
        HookError::call(why, 503)
    };
    let doc = Doc::parse(&response.patch).map_err(|error| undecodable(error.to_string()))?;
    if doc.as_array().is_none() {
        return Err(undecodable("the patch is not a list".to_owned()));
    }
    let patch = JsonPatch::from_doc(&doc).map_err(|error| undecodable(error.to_string()))?;
    if doc.items().is_empty() {
        return Ok(false);
    }
    let internal = |why: String| HookError::Internal(Status::internal(why));
    let Some(object) = &versioned.object else {
        let name = &hook.name;
        return Err(internal(format!(
            "admission webhook {name:?} attempted to modify the object, which is not supported for \
             this operation"
        )));
    };
    if response.patch_type != "JSONPatch" {
        let why = format!("unsupported patch type {:?}", response.patch_type);
        return Err(HookError::call(why, 400));
    }
    let changed = patch
        .apply(object)
        .map_err(|error| internal(error.to_string()))?;
    let outcome = versioned.put(&changed, draft).await;
    outcome.map_err(HookError::Internal)
}
