//! Taints of nodes, and the tolerations of pods.

use windlass_core::Doc;

pub(crate) const NO_EXECUTE: &str = "NoExecute";

/// Returns true if a toleration covers a taint.
pub(crate) fn tolerates(toleration: &Doc, taint: &Doc) -> bool {
    let (effect, key) = (toleration.str_at("/effect"), toleration.str_at("/key"));
    if !effect.is_empty() && effect != taint.str_at("/effect") {
        return false;
    }
    if !key.is_empty() && key != taint.str_at("/key") {
        return false;
    }
    match toleration.str_at("/operator") {
        "" | "Equal" => toleration.str_at("/value") == taint.str_at("/value"),
        "Exists" => true,
        _ => false,
    }
}

/// For each taint the first toleration that covers it; `None` if one is not tolerated.
pub(crate) fn matching<'p>(taints: &[&Doc], tolerations: &'p [Doc]) -> Option<Vec<&'p Doc>> {
    let found = taints
        .iter()
        .map(|taint| tolerations.iter().find(|it| tolerates(it, taint)));
    found.collect()
}

/// The taints of a node that evict pods.
pub(crate) fn evicting(node: &Doc) -> Vec<&Doc> {
    let taints = node.at("/spec/taints").items().iter();
    taints
        .filter(|taint| taint.str_at("/effect") == NO_EXECUTE)
        .collect()
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    #[test]
    fn a_toleration_covers_by_effect_key_and_value() {
        let taint = doc!({ "key": "a", "value": "1", "effect": "NoExecute" });
        let cases = [
            (doc!({ "operator": "Exists" }), true),
            (doc!({ "key": "a", "operator": "Exists" }), true),
            (doc!({ "key": "b", "operator": "Exists" }), false),
            (doc!({ "key": "a", "value": "1" }), true),
            (
                doc!({ "key": "a", "value": "2", "operator": "Equal" }),
                false,
            ),
            (
                doc!({ "key": "a", "operator": "Exists", "effect": "NoSchedule" }),
                false,
            ),
            (doc!({ "key": "a", "value": "1", "operator": "Gt" }), false),
        ];
        for (toleration, expected) in cases {
            assert_eq!(tolerates(&toleration, &taint), expected, "{toleration}");
        }
    }
}
