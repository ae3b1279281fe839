//! Node selectors: whether a node matches, and the union of those of several devices.

use windlass_core::{Doc, doc};

/// A node selector cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operator:?} is not a valid selector operator")]
pub struct NodeSelectorError {
    operator: String,
}

/// Whether a node matches one of the terms of a selector.
///
/// # Errors
/// When an operator is not known.
pub fn matches(selector: &Doc, node: &Doc) -> Result<bool, NodeSelectorError> {
    let terms = selector.at("/nodeSelectorTerms").items();
    let mut is_match = false;
    for term in terms {
        is_match |= matches_term(term, node)?;
    }
    Ok(is_match)
}

/// A term without requirements matches no node.
fn matches_term(term: &Doc, node: &Doc) -> Result<bool, NodeSelectorError> {
    let (labels, fields) = (
        term.at("/matchExpressions").items(),
        term.at("/matchFields").items(),
    );
    let mut is_match = !(labels.is_empty() && fields.is_empty());
    for requirement in labels {
        let value = node.meta().label(requirement.str_at("/key"));
        is_match &= meets(requirement, value)?;
    }
    for requirement in fields {
        let is_name = requirement.str_at("/key") == "metadata.name";
        let value = is_name.then(|| node.meta().name());
        is_match &= meets(requirement, value)?;
    }
    Ok(is_match)
}

fn meets(requirement: &Doc, value: Option<&str>) -> Result<bool, NodeSelectorError> {
    let values = requirement.at("/values").items();
    let is_one_of = |value: &str| values.iter().any(|one| one == value);
    let bound = || values.first()?.as_str()?.parse::<i64>().ok();
    let number = || value?.parse::<i64>().ok();
    let compares = |is: fn(i64, i64) -> bool| match (number(), bound()) {
        (Some(number), Some(bound)) => is(number, bound),
        _ => false,
    };
    Ok(match requirement.str_at("/operator") {
        "In" => value.is_some_and(is_one_of),
        "NotIn" => !value.is_some_and(is_one_of),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compares(|number, bound| number > bound),
        "Lt" => compares(|number, bound| number < bound),
        other => {
            let operator = other.to_owned();
            return Err(NodeSelectorError { operator });
        }
    })
}

/// The selector of one node.
pub(super) fn of_node(name: &str) -> Doc {
    doc!({ "nodeSelectorTerms": [{
        "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [name] }]
    }] })
}

/// The selector that all given ones agree with; `None` if there are none. Each has one term.
pub(super) fn union<'a>(selectors: impl Iterator<Item = &'a Doc>) -> Result<Option<Doc>, String> {
    let (mut labels, mut fields) = (Vec::new(), Vec::new());
    let mut is_any = false;
    for selector in selectors {
        is_any = true;
        let [term] = selector.at("/nodeSelectorTerms").items() else {
            return Err("node selector does not have exactly one term".to_owned());
        };
        add_new(&mut labels, term.at("/matchExpressions").items());
        add_new(&mut fields, term.at("/matchFields").items());
    }
    if !is_any {
        return Ok(None);
    }
    let mut term = Doc::empty_object();
    for (pointer, requirements) in [("/matchExpressions", labels), ("/matchFields", fields)] {
        if !requirements.is_empty() {
            term = term
                .with(pointer, requirements)
                .map_err(|error| error.to_string())?;
        }
    }
    Ok(Some(doc!({ "nodeSelectorTerms": [term] })))
}

/// Adds requirements that are not there. The order of values does not matter.
fn add_new(to: &mut Vec<Doc>, requirements: &[Doc]) {
    for requirement in requirements {
        if !to.iter().any(|other| is_same(other, requirement)) {
            to.push(requirement.clone());
        }
    }
}

fn is_same(a: &Doc, b: &Doc) -> bool {
    let values = |doc: &Doc| {
        let values = doc.at("/values").items().iter();
        let mut values: Vec<String> = values
            .map(|value| value.as_str().unwrap_or("").into())
            .collect();
        values.sort_unstable();
        values.dedup();
        values
    };
    ["/key", "/operator"]
        .iter()
        .all(|pointer| a.at(pointer) == b.at(pointer))
        && values(a) == values(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> Doc {
        doc!({ "metadata": { "name": "n1", "labels": { "zone": "a", "cores": "8" } } })
    }

    fn selector(key: &str, operator: &str, values: &[&str]) -> Doc {
        let values: Vec<Doc> = values.iter().map(|value| Doc::from(*value)).collect();
        doc!({ "nodeSelectorTerms": [{
            "matchExpressions": [{ "key": key, "operator": operator, "values": values }]
        }] })
    }

    #[test]
    fn operators_compare_the_labels_of_a_node() {
        let cases = [
            ("zone", "In", &["a", "b"][..], true),
            ("zone", "In", &["b"], false),
            ("rack", "In", &["b"], false),
            ("zone", "NotIn", &["a"], false),
            ("rack", "NotIn", &["a"], true),
            ("zone", "Exists", &[], true),
            ("rack", "DoesNotExist", &[], true),
            ("cores", "Gt", &["4"], true),
            ("cores", "Lt", &["8"], false),
            ("zone", "Gt", &["4"], false),
        ];
        for (key, operator, values, expected) in cases {
            let found = matches(&selector(key, operator, values), &node());
            assert_eq!(found, Ok(expected), "{key} {operator} {values:?}");
        }
        let error = matches(&selector("zone", "Like", &[]), &node()).map_err(|e| e.to_string());
        assert_eq!(
            error,
            Err(r#""Like" is not a valid selector operator"#.to_owned())
        );
    }

    #[test]
    fn a_node_is_matched_by_name_and_an_empty_term_matches_nothing() {
        assert_eq!(matches(&of_node("n1"), &node()), Ok(true));
        assert_eq!(matches(&of_node("n2"), &node()), Ok(false));
        assert_eq!(
            matches(&doc!({ "nodeSelectorTerms": [{}] }), &node()),
            Ok(false)
        );
        assert_eq!(matches(&doc!({}), &node()), Ok(false));
    }

    #[test]
    fn the_union_has_every_requirement_once() {
        let (zone, disk) = (
            selector("zone", "In", &["a"]),
            selector("disk", "In", &["ssd"]),
        );
        let both = union([&zone, &disk, &zone].into_iter()).unwrap().unwrap();
        assert_eq!(
            both.at("/nodeSelectorTerms/0/matchExpressions")
                .items()
                .len(),
            2
        );
        assert_eq!(union([].into_iter()), Ok(None));
        assert!(union([&doc!({ "nodeSelectorTerms": [{}, {}] })].into_iter()).is_err());
    }
}
