//! Admission webhooks: MutatingWebhookConfigurations and ValidatingWebhookConfigurations.
//!
//! All webhooks of all configurations are compiled into one [`Webhooks`], configurations in the order
//! of their names. Mutating ones are called one after the other, validating ones all at once.

mod call;
mod matched;
mod mutating;
mod response;
mod review;

use std::sync::Arc;
use std::time::Duration;

use windlass_access::matching::Matcher;
use windlass_core::Doc;
use windlass_rules::match_conditions::MatchConditions;
use windlass_store::{Resource as Shelf, Snapshot};

use super::{Asked, Attributes, Compiled, Extension, Mutation, Review};
use crate::callout::ClientConfig;
use matched::Matching;
use mutating::MutatingPass;

pub(super) use review::cel_request;

const GROUP: &str = "admissionregistration.k8s.io";
/// The timeout of a webhook that says nothing.
const TIMEOUT_SECONDS: i64 = 10;

/// All webhooks that are configured.
#[derive(Debug)]
pub(super) struct Webhooks {
    mutating: Vec<Hook>,
    validating: Vec<Hook>,
}

/// One webhook.
#[derive(Debug)]
struct Hook {
    /// The name of its configuration.
    configuration: String,
    name: String,
    matcher: Matcher,
    conditions: MatchConditions,
    client: Result<ClientConfig, String>,
    /// `failurePolicy: Ignore`.
    fails_open: bool,
    timeout: Duration,
    side_effects: Option<String>,
    /// `v1` or `v1beta1`, whichever the webhook names first.
    review_version: Option<&'static str>,
    /// `reinvocationPolicy: IfNeeded`.
    is_reinvoked: bool,
}

/// The webhooks of a store, compiled.
pub(super) fn compiled() -> Compiled<Webhooks, 2> {
    let resources = [
        Shelf::new(GROUP, "mutatingwebhookconfigurations"),
        Shelf::new(GROUP, "validatingwebhookconfigurations"),
    ];
    Compiled::new(resources, |[mutating, validating]| {
        let all = Webhooks {
            mutating: hooks(mutating),
            validating: hooks(validating),
        };
        (!all.mutating.is_empty() || !all.validating.is_empty()).then_some(all)
    })
}

/// The webhooks of all configurations, in their order.
fn hooks(configurations: &Snapshot) -> Vec<Hook> {
    let configurations = configurations.iter().map(|entry| entry.doc());
    let hooks = configurations.flat_map(|configuration| {
        let name = configuration.meta().name();
        let hooks = configuration.at("/webhooks").items().iter();
        hooks.map(move |hook| Hook::new(name, hook))
    });
    hooks.collect()
}

impl Hook {
    fn new(configuration: &str, hook: &Doc) -> Self {
        let seconds = hook
            .at("/timeoutSeconds")
            .as_i64()
            .unwrap_or(TIMEOUT_SECONDS);
        let versions = hook.at("/admissionReviewVersions").items().iter();
        let mut known = versions.filter_map(|version| match version.as_str() {
            Some("v1") => Some("v1"),
            Some("v1beta1") => Some("v1beta1"),
            _ => None,
        });
        Self {
            configuration: configuration.to_owned(),
            name: hook.str_at("/name").to_owned(),
            matcher: Matcher::of_webhook(hook),
            conditions: MatchConditions::new(hook.at("/matchConditions")),
            client: ClientConfig::new(hook.at("/clientConfig")),
            fails_open: hook.str_at("/failurePolicy") == "Ignore",
            timeout: Duration::from_secs(u64::try_from(seconds).unwrap_or(0)),
            side_effects: hook.at("/sideEffects").as_str().map(str::to_owned),
            review_version: known.next(),
            is_reinvoked: hook.str_at("/reinvocationPolicy") == "IfNeeded",
        }
    }
}

impl Extension for Webhooks {
    fn concerns(&self, request: &Attributes<'_>) -> bool {
        // Webhooks cannot lock anybody out of their own configurations.
        if request.resource.needs.admission_configuration.is_some() {
            return false;
        }
        let target = request.target(request.resource);
        let mut all = self.mutating.iter().chain(&self.validating);
        all.any(|hook| hook.matcher.may_match(&target))
    }

    fn mutation(self: Arc<Self>) -> Box<dyn Mutation> {
        Box::new(MutatingPass::new(self))
    }

    fn validate<'a>(&'a self, review: &'a Review<'a>) -> Asked<'a, ()> {
        Box::pin(async move {
            let matching = Matching::new(review);
            let mut relevant = Vec::new();
            for hook in &self.validating {
                if let Some(versioned) = matching.of(hook, review, "validate").await? {
                    relevant.push((hook, versioned));
                }
            }
            call::check_deadline(review).map_err(|_| call::out_of_time())?;
            let calls = relevant
                .iter()
                .enumerate()
                .map(|(index, (hook, versioned))| call::validating(hook, review, versioned, index));
            let outcomes = futures_util::future::join_all(calls).await;
            outcomes.into_iter().collect()
        })
    }
}
