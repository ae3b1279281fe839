//! Which nodes a pod asks for: its node selector and its node affinity.

use std::collections::BTreeSet;

use windlass_core::{Doc, LabelLookup, Operator, Requirement};

/// The field of a node that can be asked for.
const NAME: &str = "metadata.name";

/// What a pod demands of its node.
#[derive(Debug, Default)]
pub(super) struct NodeDemand {
    /// Labels that must be there; all of them.
    selector: Vec<(String, String)>,
    /// One of these must hold, if there are any.
    terms: Option<Vec<NodeTerm>>,
    /// The nodes that the terms name, if all of them name some: no other is looked at.
    named: Option<BTreeSet<String>>,
}

/// What a pod would like its node to be, with the weight.
#[derive(Debug)]
pub(super) struct NodeWish {
    weight: i64,
    term: NodeTerm,
}

/// Conditions on the labels and the name of a node, all of which must hold.
#[derive(Debug)]
struct NodeTerm {
    labels: Vec<Requirement>,
    names: Vec<Requirement>,
    /// An empty term, or one that cannot be read, matches nothing.
    is_void: bool,
}

impl NodeDemand {
    pub(super) fn of(spec: &Doc) -> Self {
        let selector = spec.at("/nodeSelector").as_object();
        let selector = selector.into_iter().flat_map(|pairs| pairs.iter());
        let required =
            spec.at("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
        Self {
            selector: selector
                .map(|(key, value)| (key.to_string(), value.as_str().unwrap_or("").to_owned()))
                .collect(),
            terms: (!required.is_null())
                .then(|| required.at("/nodeSelectorTerms").items())
                .map(|terms| terms.iter().map(NodeTerm::of).collect()),
            named: named(required.at("/nodeSelectorTerms").items()),
        }
    }

    /// Whether the terms name nodes, and not this one.
    pub(super) fn names_others(&self, node: &Doc) -> bool {
        let named = self.named.as_ref();
        named.is_some_and(|named| !named.contains(node.meta().name()))
    }

    /// Whether each term names nodes that exclude each other.
    pub(super) fn is_conflicting(&self) -> bool {
        self.named.as_ref().is_some_and(BTreeSet::is_empty)
    }

    pub(super) fn matches(&self, node: &Doc) -> bool {
        if self.selector.is_empty() && self.terms.is_none() {
            return true;
        }
        let labels = node.meta().labels();
        let has = |(key, value): &(String, String)| labels.value(key) == Some(value);
        let terms = self.terms.as_ref();
        self.selector.iter().all(has)
            && terms.is_none_or(|terms| terms.iter().any(|term| term.matches(node)))
    }
}

impl NodeWish {
    pub(super) fn all_of(spec: &Doc) -> Vec<Self> {
        let preferred =
            spec.at("/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution");
        let read = preferred.items().iter().map(|entry| Self {
            weight: entry.at("/weight").as_i64().unwrap_or(0),
            term: NodeTerm::of(entry.at("/preference")),
        });
        read.filter(|wish| wish.weight != 0).collect()
    }

    /// The weights of the wishes that a node fulfils.
    pub(super) fn sum(wishes: &[Self], node: &Doc) -> i64 {
        let met = wishes.iter().filter(|wish| wish.term.matches(node));
        met.map(|wish| wish.weight).sum()
    }
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
        let fields = Fields(node.meta().name());
        !self.is_void
            && self
                .labels
                .iter()
                .all(|one| one.matches(&node.meta().labels()))
            && self.names.iter().all(|one| one.matches(&fields))
    }
}

/// The fields of a node that can be asked for: its name.
struct Fields<'a>(&'a str);

impl LabelLookup for Fields<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        (key == NAME).then_some(self.0)
    }
}

/// The nodes that terms name, if there are terms and all of them name some.
fn named(terms: &[Doc]) -> Option<BTreeSet<String>> {
    let mut named: Option<BTreeSet<String>> = None;
    for term in terms {
        let is_name =
            |field: &&Doc| field.str_at("/key") == NAME && field.str_at("/operator") == "In";
        let fields = term.at("/matchFields").items().iter().filter(is_name);
        let names = fields.map(|field| -> BTreeSet<String> {
            let values = field.at("/values").items().iter();
            values
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect()
        });
        let of_term = names.reduce(|all, some| all.intersection(&some).cloned().collect())?;
        named.get_or_insert_default().extend(of_term);
    }
    named
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
