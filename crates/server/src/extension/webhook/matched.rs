//! The webhooks that a request reaches, and the version of its resource that each of them sees.

use std::sync::Arc;

use windlass_rules::match_conditions::Verdict;
use windlass_rules::status::Status;

use super::super::{Review, Versioned, equivalents};
use super::Hook;
use super::review::cel_request;
use crate::registry::Resource;
use crate::work;

/// The versions of the resource of a request.
pub(super) struct Matching {
    others: Vec<Arc<Resource>>,
}

impl Matching {
    pub(super) fn new(review: &Review<'_>) -> Self {
        let row = review.attributes.resource;
        Self {
            others: equivalents(review.surroundings.table, row),
        }
    }

    /// The objects as a webhook is to see them; `None` if it is not called.
    pub(super) async fn of(
        &self,
        hook: &Hook,
        review: &Review<'_>,
        sort: &'static str,
    ) -> Result<Option<Versioned>, Status> {
        let Some(row) = self.row(hook, review) else {
            return Ok(None);
        };
        if !hook.matcher.selects(&review.selected())? {
            return Ok(None);
        }
        let versioned = Versioned::of(review, row).await?;
        let is_matched = hook.conditions.is_empty() || meets(hook, review, &versioned, sort)?;
        Ok(is_matched.then_some(versioned))
    }

    fn row<'a>(&'a self, hook: &Hook, review: &Review<'a>) -> Option<&'a Arc<Resource>> {
        let requested = review.attributes.resource;
        if !hook.matcher.may_match(&review.attributes.target(requested)) {
            return None;
        }
        match hook
            .matcher
            .resource(&review.attributes.targets(&self.others))?
        {
            0 => Some(requested),
            at => self.others.get(at - 1),
        }
    }
}

/// Returns true if the match conditions hold.
fn meets(
    hook: &Hook,
    review: &Review<'_>,
    versioned: &Versioned,
    sort: &'static str,
) -> Result<bool, Status> {
    let null = windlass_core::Doc::NULL;
    let request = cel_request(review.attributes, versioned);
    let (object, old) = (&versioned.object, &versioned.old);
    let documents = (
        object.as_ref().unwrap_or(&null),
        old.as_ref().unwrap_or(&null),
        &request,
    );
    let metrics = &review.surroundings.metrics.webhooks;
    let operation = review.attributes.operation.as_str();
    match hook.conditions.evaluate(documents, &work::is_cancelled) {
        Verdict::Matches => Ok(true),
        Verdict::Excludes => {
            metrics.excluded(&hook.name, sort, operation);
            Ok(false)
        }
        Verdict::Fails(reasons) => {
            metrics.condition_failed(&hook.name, sort, operation);
            if hook.fails_open {
                return Ok(false);
            }
            let why = match reasons.as_slice() {
                [one] => one.clone(),
                many => format!("[{}]", many.join(", ")),
            };
            let resource = review.attributes.resource.group_resource();
            Err(Status::forbidden(&resource, &review.attributes.name, &why))
        }
    }
}
