//! The pod failure policy: rules by which some failures count and others do not.

use windlass_core::Doc;

/// The verdict of a policy about a pod that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FailureMatch {
    /// The action of the first rule that matches.
    pub(super) action: Option<FailureAction>,
    /// Why the whole Job fails, if it does.
    pub(super) job_failure: Option<String>,
}

/// The action of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FailureAction {
    Ignore,
    FailIndex,
    Count,
    FailJob,
}

impl FailureAction {
    fn of(rule: &Doc) -> Option<Self> {
        match rule.str_at("/action") {
            "Ignore" => Some(Self::Ignore),
            "FailIndex" => Some(Self::FailIndex),
            "Count" => Some(Self::Count),
            "FailJob" => Some(Self::FailJob),
            _ => None,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "Ignore",
            Self::FailIndex => "FailIndex",
            Self::Count => "Count",
            Self::FailJob => "FailJob",
        }
    }
}

impl FailureMatch {
    /// No rule matches: the failure counts.
    const NONE: Self = Self {
        action: None,
        job_failure: None,
    };

    /// Returns true if the failure counts against a limit.
    pub(super) fn is_counted(&self) -> bool {
        self.action != Some(FailureAction::Ignore)
    }
}

/// The first rule that matches a pod. Without a policy every failure counts.
pub(super) fn match_failure(policy: &Doc, pod: &Doc) -> FailureMatch {
    for (index, rule) in policy.at("/rules").items().iter().enumerate() {
        let (Some(action), Some(cause)) = (FailureAction::of(rule), cause(rule, pod)) else {
            continue;
        };
        let text = || format!("{cause} matching FailJob rule at index {index}");
        return FailureMatch {
            action: Some(action),
            job_failure: (action == FailureAction::FailJob).then(text),
        };
    }
    FailureMatch::NONE
}

/// The condition of a rule.
fn cause(rule: &Doc, pod: &Doc) -> Option<String> {
    let (meta, codes) = (pod.meta(), rule.at("/onExitCodes"));
    let (namespace, name) = (meta.namespace(), meta.name());
    if !codes.is_null() {
        let (container, code) = matching_exit(codes, pod)?;
        return Some(format!(
            "Container {container} for pod {namespace}/{name} failed with exit code {code}"
        ));
    }
    let kind = matching_condition(rule.at("/onPodConditions"), pod)?;
    Some(format!("Pod {namespace}/{name} has condition {kind}"))
}

/// The first container that has failed with a code that the rule means, and the code.
fn matching_exit<'p>(rule: &Doc, pod: &'p Doc) -> Option<(&'p str, i64)> {
    let mains = pod.at("/status/containerStatuses").items().iter();
    let inits = pod.at("/status/initContainerStatuses").items().iter();
    mains.chain(inits).find_map(|status| {
        let code = status.at("/state/terminated/exitCode").as_i64()?;
        let name = status.str_at("/name");
        let is_meant = ["", name].contains(&rule.str_at("/containerName"));
        let is_listed = rule.at("/values").items().iter().any(|it| *it == code);
        let is_match = match rule.str_at("/operator") {
            "In" => is_listed,
            "NotIn" => !is_listed,
            _ => false,
        };
        (code != 0 && is_meant && is_match).then_some((name, code))
    })
}

/// The type of the first condition that the patterns of a rule mean.
fn matching_condition<'p>(patterns: &Doc, pod: &'p Doc) -> Option<&'p str> {
    let same = |a: &Doc, b: &Doc| {
        let [kind, status] = ["/type", "/status"].map(|at| a.str_at(at) == b.str_at(at));
        kind && status
    };
    let mut conditions = pod.at("/status/conditions").items().iter();
    let patterns = patterns.items();
    let found = conditions.find(|condition| patterns.iter().any(|it| same(it, condition)))?;
    Some(found.str_at("/type"))
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    fn pod(code: i64) -> Doc {
        doc!({
            "metadata": { "name": "p", "namespace": "ns" },
            "status": {
                "phase": "Failed",
                "containerStatuses": [
                    { "name": "side", "state": { "terminated": { "exitCode": 0 } } },
                    { "name": "main", "state": { "terminated": { "exitCode": code } } }
                ],
                "conditions": [{ "type": "DisruptionTarget", "status": "True" }]
            }
        })
    }

    fn exit_rule(action: &str, operator: &str, code: i64) -> Doc {
        doc!({ "action": action, "onExitCodes": { "operator": operator, "values": [code] } })
    }

    fn matched(rules: Vec<Doc>, pod: &Doc) -> FailureMatch {
        match_failure(&doc!({ "rules": rules }), pod)
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rules = vec![
            exit_rule("Ignore", "In", 1),
            exit_rule("Count", "In", 42),
            exit_rule("FailJob", "In", 42),
        ];
        let found = matched(rules.clone(), &pod(42));
        assert_eq!(found.action, Some(FailureAction::Count));
        assert!(found.job_failure.is_none() && found.is_counted());
        assert!(!matched(rules.clone(), &pod(1)).is_counted());
        assert_eq!(matched(rules, &pod(7)), FailureMatch::NONE);
    }

    #[test]
    fn the_text_names_container_pod_code_and_rule() {
        let rules = vec![exit_rule("Ignore", "In", 1), exit_rule("FailJob", "In", 42)];
        let found = matched(rules, &pod(42));
        let text = "Container main for pod ns/p failed with exit code 42 matching FailJob rule at \
                    index 1";
        assert_eq!(found.job_failure.as_deref(), Some(text));
        let pattern = doc!({ "type": "DisruptionTarget", "status": "True" });
        let rule = doc!({ "action": "FailJob", "onPodConditions": [pattern] });
        let text = "Pod ns/p has condition DisruptionTarget matching FailJob rule at index 0";
        assert_eq!(
            matched(vec![rule], &pod(1)).job_failure.as_deref(),
            Some(text)
        );
    }

    #[test]
    fn other_codes_never_mean_success_nor_another_container() {
        let rule = exit_rule("FailIndex", "NotIn", 1);
        let found = matched(vec![rule.clone()], &pod(2));
        assert_eq!(found.action, Some(FailureAction::FailIndex));
        assert_eq!(matched(vec![rule.clone()], &pod(0)), FailureMatch::NONE);
        let elsewhere = rule.with("/onExitCodes/containerName", "side").unwrap();
        assert_eq!(matched(vec![elsewhere], &pod(2)), FailureMatch::NONE);
    }
}
