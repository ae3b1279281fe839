//! Restart policies of pods and containers, and the rules of containers.

use windlass_core::Doc;

use super::Sort;

/// What becomes of a container that has exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterExit {
    /// It is restarted after its back-off.
    Restart,
    /// All containers of the pod are restarted, in place.
    RestartAll,
    /// It has exited for good.
    Stay,
}

/// Decides about a container that has exited with a code: by the first of its rules that matches,
/// then by its own policy, then by that of the pod.
pub(super) fn after_exit(pod: &Doc, sort: Sort, container: &Doc, exit_code: i64) -> AfterExit {
    let by_policy = |policy: &str| match (policy, exit_code) {
        ("Never", _) | ("OnFailure", 0) => AfterExit::Stay,
        _ => AfterExit::Restart,
    };
    if sort == Sort::Ephemeral {
        return AfterExit::Stay;
    }
    let own = container.str_at("/restartPolicy");
    if !own.is_empty() {
        let rules = container.at("/restartPolicyRules").items().iter();
        let action = rules
            .filter(|rule| is_met(rule.at("/exitCodes"), exit_code))
            .map(|rule| rule.str_at("/action"))
            .next();
        match action {
            Some("Restart") => return AfterExit::Restart,
            Some("RestartAllContainers") => return AfterExit::RestartAll,
            _ => {}
        }
    }
    // An init container that has succeeded is done, whatever its policy says.
    if sort == Sort::Init && exit_code == 0 {
        return AfterExit::Stay;
    }
    match own {
        "" => by_policy(pod.str_at("/spec/restartPolicy")),
        own => by_policy(own),
    }
}

fn is_met(codes: &Doc, exit_code: i64) -> bool {
    let mut values = codes.at("/values").items().iter();
    let is_listed = values.any(|value| value.as_i64() == Some(exit_code));
    match codes.str_at("/operator") {
        "In" => is_listed,
        "NotIn" => !is_listed,
        _ => false,
    }
}

/// Returns true if a container of the pod can have all of them restarted.
pub(in crate::node) fn may_restart_all(pod: &Doc) -> bool {
    let mut all = Sort::all_of(pod);
    all.any(|(_, container)| {
        let mut rules = container.at("/restartPolicyRules").items().iter();
        rules.any(|rule| rule.str_at("/action") == "RestartAllContainers")
    })
}
