//! Distributes endpoints over slices, changing as few of them as it can.

use std::collections::BTreeMap;

use windlass_core::{Doc, EditError};

use super::MAX_ENDPOINTS;

/// The ports of a slice, in a form that can be compared.
pub(crate) type PortsKey = Vec<[String; 4]>;

/// The endpoints that a set of ports should have.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) ports: Vec<Doc>,
    /// By what makes an endpoint the same one.
    pub(super) endpoints: BTreeMap<String, Doc>,
}

/// What is to be done about slices.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The ports and endpoints of slices that are missing.
    pub(super) create: Vec<(Vec<Doc>, Vec<Doc>)>,
    pub(super) update: Vec<Doc>,
    pub(super) delete: Vec<Doc>,
}

/// The ports of a slice, in a form that can be compared.
pub(crate) fn ports_key(ports: &[Doc]) -> PortsKey {
    let mut key: PortsKey = ports
        .iter()
        .map(|port| {
            let text = |at: &str| port.str_at(at).to_owned();
            let number = port.at("/port").as_i64().unwrap_or(0).to_string();
            [
                text("/name"),
                text("/protocol"),
                number,
                text("/appProtocol"),
            ]
        })
        .collect();
    key.sort();
    key
}

/// What makes an endpoint the same one.
pub(crate) fn endpoint_key(endpoint: &Doc) -> String {
    let addresses = endpoint.at("/addresses").items().iter();
    let mut parts: Vec<&str> = addresses.filter_map(Doc::as_str).collect();
    parts.sort_unstable();
    for at in ["/hostname", "/targetRef/namespace", "/targetRef/name"] {
        parts.push(endpoint.str_at(at));
    }
    parts.join("\n")
}

/// Distributes the endpoints of a group over the slices that it has.
pub(super) fn pack(
    mut group: Group,
    slices: &[Doc],
    with_labels: impl Fn(&Doc) -> Result<Doc, EditError>,
) -> Result<Changes, EditError> {
    let mut changes = Changes::default();
    let (mut touched, mut untouched) = (Vec::new(), Vec::new());
    for slice in slices {
        let known = slice.at("/endpoints").items();
        let wanted = |it: &Doc| group.endpoints.remove(&endpoint_key(it));
        let kept: Vec<Doc> = known.iter().filter_map(wanted).collect();
        let labelled = with_labels(slice)?;
        if kept == known {
            match labelled == *slice {
                true => untouched.push(slice.clone()),
                false => touched.push((labelled, kept)),
            }
        } else if kept.is_empty() {
            changes.delete.push(slice.clone());
        } else {
            touched.push((labelled, kept));
        }
    }
    let mut rest: Vec<Doc> = group.endpoints.into_values().collect();
    touched.sort_by_key(|(_, endpoints)| std::cmp::Reverse(endpoints.len()));
    for (_, endpoints) in &mut touched {
        fill(endpoints, &mut rest);
    }
    while !rest.is_empty() {
        let at = closest(&untouched, rest.len());
        let Some(slice) = at.map(|at| untouched.remove(at)) else {
            let mut endpoints = Vec::new();
            fill(&mut endpoints, &mut rest);
            changes.create.push((group.ports.clone(), endpoints));
            continue;
        };
        let mut endpoints = slice.at("/endpoints").items().to_vec();
        fill(&mut endpoints, &mut rest);
        touched.push((slice, endpoints));
    }
    for (slice, endpoints) in touched {
        changes.update.push(slice.with("/endpoints", endpoints)?);
    }
    Ok(changes)
}

/// Adds as many endpoints as fit.
fn fill(endpoints: &mut Vec<Doc>, rest: &mut Vec<Doc>) {
    let free = MAX_ENDPOINTS.saturating_sub(endpoints.len());
    endpoints.extend(rest.drain(..free.min(rest.len())));
}

/// The slice that so many endpoints would fill best, if they fit into one.
fn closest(slices: &[Doc], count: usize) -> Option<usize> {
    if count >= MAX_ENDPOINTS {
        return None;
    }
    let left = |slice: &Doc| {
        let used = slice.at("/endpoints").items().len() + count;
        MAX_ENDPOINTS.checked_sub(used)
    };
    let fitting = slices.iter().enumerate();
    let fitting = fitting.filter_map(|(at, slice)| Some((left(slice)?, at)));
    fitting.min().map(|(_, at)| at)
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    fn endpoint(number: usize) -> Doc {
        doc!({ "addresses": [(format!("10.0.0.{number}"))] })
    }

    fn group(numbers: impl Iterator<Item = usize>) -> Group {
        let endpoints = numbers.map(endpoint);
        Group {
            ports: Vec::new(),
            endpoints: endpoints.map(|it| (endpoint_key(&it), it)).collect(),
        }
    }

    fn slice(name: &str, numbers: impl Iterator<Item = usize>) -> Doc {
        let endpoints: Vec<Doc> = numbers.map(endpoint).collect();
        doc!({ "metadata": { "name": name }, "endpoints": endpoints })
    }

    fn changes(group: Group, slices: &[Doc]) -> Changes {
        pack(group, slices, |slice| Ok(slice.clone())).unwrap()
    }

    #[test]
    fn slices_are_filled_to_a_hundred() {
        let made = changes(group(0..101), &[]);
        let sizes: Vec<_> = made.create.iter().map(|(_, it)| it.len()).collect();
        assert_eq!(sizes, [100, 1]);
    }

    #[test]
    fn a_change_stays_in_its_slice() {
        let slices = [slice("a", 0..100), slice("b", 100..120)];
        let made = changes(group((1..120).chain([200])), &slices);
        assert!(made.create.is_empty() && made.delete.is_empty());
        assert_eq!(made.update.len(), 1);
        assert_eq!(made.update[0].meta().name(), "a");
        assert_eq!(made.update[0].at("/endpoints").items().len(), 100);
    }

    #[test]
    fn new_endpoints_go_where_they_fill_best_and_empty_slices_go() {
        let slices = [slice("a", 0..10), slice("b", 10..60), slice("c", 60..61)];
        let made = changes(group((0..60).chain(100..120)), &slices);
        assert_eq!(made.update.len(), 1);
        assert_eq!(made.update[0].meta().name(), "b");
        assert_eq!(made.delete[0].meta().name(), "c");
        assert!(changes(group(0..60), &slices[..2]).update.is_empty());
    }
}
