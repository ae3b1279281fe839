//! The nodes that the pods of a DaemonSet may run on.

use windlass_core::{Doc, LabelLookup, Operator, Requirement};

use super::template;

/// The field of a node that can be asked for.
const NAME: &str = "metadata.name";

/// The demands of a DaemonSet's pods on their nodes.
#[derive(Debug)]
pub(super) struct Placement {
    /// The node that the template names; empty if it names none.
    node_name: String,
    /// Labels that must be there; all of them.
    selector: Vec<(String, String)>,
    /// One of these must hold, if there are any.
    terms: Option<Vec<NodeTerm>>,
    tolerations: Vec<Doc>,
}

/// The verdict on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Eligibility {
    /// True if a pod is created there.
    pub(super) should_run: bool,
    /// True if a pod that is there may stay.
    pub(super) should_continue: bool,
}

impl Eligibility {
    const NEVER: Self = Self {
        should_run: false,
        should_continue: false,
    };
}

impl Placement {
    pub(super) fn of(set: &Doc) -> Self {
        let spec = set.at("/spec/template/spec");
        let selector = spec.at("/nodeSelector").as_object();
        let selector = selector.into_iter().flat_map(|pairs| pairs.iter());
        let required =
            spec.at("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
        let terms = required.at("/nodeSelectorTerms").items().iter();
        Self {
            node_name: spec.str_at("/nodeName").to_owned(),
            selector: selector
                .map(|(key, value)| (key.to_string(), value.as_str().unwrap_or("").to_owned()))
                .collect(),
            terms: (!required.is_null()).then(|| terms.map(NodeTerm::of).collect()),
            tolerations: template::tolerations(spec),
        }
    }

    /// The verdict on a node. Its readiness, its resources and whether it takes new pods do not
    /// matter.
    pub(super) fn eligibility(&self, node: &Doc) -> Eligibility {
        if !self.node_name.is_empty() && self.node_name != node.meta().name() {
            return Eligibility::NEVER;
        }
        let labels = node.meta().labels();
        let has = |(key, value): &(String, String)| labels.value(key) == Some(value.as_str());
        let terms = self.terms.as_ref();
        let is_wanted = self.selector.iter().all(has)
            && terms.is_none_or(|terms| terms.iter().any(|term| term.matches(node)));
        if !is_wanted {
            return Eligibility::NEVER;
        }
        let tolerates = |effects: &[&str]| {
            let taints = node.at("/spec/taints").items().iter();
            let mut taints = taints.filter(|it| effects.contains(&it.str_at("/effect")));
            taints.all(|taint| self.tolerations.iter().any(|it| tolerates(it, taint)))
        };
        Eligibility {
            should_run: tolerates(&["NoSchedule", "NoExecute"]),
            should_continue: tolerates(&["NoExecute"]),
        }
    }
}

fn tolerates(toleration: &Doc, taint: &Doc) -> bool {
    let is_for = |at: &str| {
        let text = toleration.str_at(at);
        text.is_empty() || text == taint.str_at(at)
    };
    is_for("/effect")
        && is_for("/key")
        && match toleration.str_at("/operator") {
            "" | "Equal" => toleration.str_at("/value") == taint.str_at("/value"),
            "Exists" => true,
            _ => false,
        }
}

/// Conditions on the labels and the name of a node, all of which must hold.
#[derive(Debug)]
struct NodeTerm {
    labels: Vec<Requirement>,
    names: Vec<Requirement>,
    /// An empty term, or one that cannot be read, matches nothing.
    is_void: bool,
}

impl NodeTerm {
    fn of(term: &Doc) -> Self {
        let (expressions, fields) = (
            term.at("/matchExpressions").items(),
            term.at("/matchFields").items(),
        );
        let labels: Option<Vec<_>> = expressions.iter().map(requirement).collect();
        let names: Option<Vec<_>> = fields.iter().map(requirement).collect();
        let is_empty = expressions.is_empty() && fields.is_empty();
        Self {
            is_void: is_empty || labels.is_none() || names.is_none(),
            labels: labels.unwrap_or_default(),
            names: names.unwrap_or_default(),
        }
    }

    fn matches(&self, node: &Doc) -> bool {
        let (labels, fields) = (node.meta().labels(), NodeFields(node.meta().name()));
        !self.is_void
            && self.labels.iter().all(|one| one.matches(&labels))
            && self.names.iter().all(|one| one.matches(&fields))
    }
}

/// The fields of a node that can be asked for: its name.
struct NodeFields<'a>(&'a str);

impl LabelLookup for NodeFields<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        (key == NAME).then_some(self.0)
    }
}

fn requirement(expression: &Doc) -> Option<Requirement> {
    let operator = match expression.str_at("/operator") {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::GreaterThan,
        "Lt" => Operator::LessThan,
        _ => return None,
    };
    let values = expression.at("/values").items().iter();
    let values = values.filter_map(|value| value.as_str().map(str::to_owned));
    Requirement::new(expression.str_at("/key"), operator, values).ok()
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    fn verdict(spec: Doc, node: &Doc) -> (bool, bool) {
        let set = doc!({ "spec": { "template": { "spec": spec } } });
        let verdict = Placement::of(&set).eligibility(node);
        (verdict.should_run, verdict.should_continue)
    }

    fn tainted(key: &str, effect: &str) -> Doc {
        doc!({ "metadata": { "name": "n" }, "spec": { "taints": [{ "key": key, "effect": effect }] } })
    }

    #[test]
    fn taints_keep_pods_away_unless_they_are_tolerated() {
        assert_eq!(
            verdict(doc!({}), &tainted("x", "NoSchedule")),
            (false, true)
        );
        assert_eq!(
            verdict(doc!({}), &tainted("x", "NoExecute")),
            (false, false)
        );
        assert_eq!(
            verdict(doc!({}), &tainted("x", "PreferNoSchedule")),
            (true, true)
        );
        for key in [
            "disk-pressure",
            "memory-pressure",
            "pid-pressure",
            "unschedulable",
        ] {
            let node = tainted(&format!("node.kubernetes.io/{key}"), "NoSchedule");
            assert_eq!(verdict(doc!({}), &node), (true, true), "{key}");
        }
        for key in ["not-ready", "unreachable"] {
            let node = tainted(&format!("node.kubernetes.io/{key}"), "NoExecute");
            assert_eq!(verdict(doc!({}), &node), (true, true), "{key}");
        }
        let network = || tainted("node.kubernetes.io/network-unavailable", "NoSchedule");
        assert_eq!(verdict(doc!({}), &network()), (false, true));
        assert_eq!(
            verdict(doc!({ "hostNetwork": true }), &network()),
            (true, true)
        );
        let everything = doc!({ "tolerations": [{ "operator": "Exists" }] });
        assert_eq!(
            verdict(everything, &tainted("x", "NoExecute")),
            (true, true)
        );
    }

    #[test]
    fn names_labels_and_affinity_choose_nodes() {
        let node = || doc!({ "metadata": { "name": "n", "labels": { "zone": "a" } } });
        let run = |spec: Doc| verdict(spec, &node()).0;
        assert!(run(doc!({ "nodeName": "n" })) && !run(doc!({ "nodeName": "m" })));
        assert!(run(doc!({ "nodeSelector": { "zone": "a" } })));
        assert!(!run(doc!({ "nodeSelector": { "zone": "b" } })));
        let affinity = |terms: Doc| {
            let required = doc!({ "nodeSelectorTerms": terms });
            let required = doc!({ "requiredDuringSchedulingIgnoredDuringExecution": required });
            doc!({ "affinity": { "nodeAffinity": required } })
        };
        let label = |operator: &str| {
            let expression = doc!({ "key": "zone", "operator": operator, "values": ["a"] });
            affinity(doc!([{ "matchExpressions": [expression] }]))
        };
        assert!(run(label("In")) && !run(label("NotIn")));
        let field = doc!({ "key": "metadata.name", "operator": "In", "values": ["n"] });
        assert!(run(affinity(doc!([{}, { "matchFields": [field] }]))));
        assert!(!run(affinity(doc!([{}]))) && !run(affinity(doc!([]))));
    }
}
