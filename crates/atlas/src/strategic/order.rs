//! The order of merged lists.

use std::collections::HashMap;

use windlass_core::{Array, Doc, Str};

use super::list::{self, Merge, Merged, keyed};
use super::schema::Schema;
use super::{ELEMENT_ORDER, Fields, PATCH, StrategicError, target, text, without_directives};

/// Merges the lists whose order the patch sets, and takes them out of the patch.
pub(super) fn apply(
    schema: Schema,
    merged: &mut Fields,
    patch: &mut Fields,
) -> Result<(), StrategicError> {
    let directives: Vec<Str> = patch
        .keys()
        .filter(|key| key.starts_with(ELEMENT_ORDER))
        .cloned()
        .collect();
    for directive in directives {
        let Some(order) = patch.remove(directive.as_str()) else {
            continue;
        };
        let order = as_array(&order)?;
        let key = target(&directive, ELEMENT_ORDER).ok_or(StrategicError::ElementOrder)?;
        let live = merged.get(key).map(as_array).transpose()?;
        let change = patch.get(key).map(as_array).transpose()?;
        let merge = Merge::of(schema, key)?;
        if let Some(list) = ordered(merge, &order, live.as_ref(), change.as_ref())? {
            merged.insert(Str::new(key), list.into());
            patch.remove(key);
        }
    }
    Ok(())
}

fn as_array(doc: &Doc) -> Result<Array, StrategicError> {
    doc.as_array()
        .cloned()
        .ok_or_else(|| StrategicError::wrong_type("[]interface {}", doc))
}

/// The merged list in the order that the patch sets.
fn ordered(
    merge: Merge,
    order: &[Doc],
    live: Option<&Array>,
    change: Option<&Array>,
) -> Result<Option<Vec<Doc>>, StrategicError> {
    check_agreement(merge.key, change.map_or(&[], |change| change), order)?;
    let none = &[][..];
    let merged = match (live, change) {
        (None, None) => return Ok(None),
        (Some(live), None) => Merged {
            list: live.to_vec(),
            live: live.to_vec(),
        },
        (None, Some(change)) => Merged {
            list: change
                .iter()
                .filter_map(|item| without_directives(item, false))
                .collect(),
            live: Vec::new(),
        },
        (Some(live), Some(change)) => merge.lists(live, change, false)?,
    };
    list::holds_objects(
        live.map_or(none, |live| live),
        change.map_or(none, |change| change),
    )?;
    arrange(merge.key, merged.list, order, &merged.live).map(Some)
}

/// The items of a patch must come in the order that the same patch sets.
fn check_agreement(key: Option<&str>, patch: &[Doc], order: &[Doc]) -> Result<(), StrategicError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter();
    for item in patch {
        if key.is_some() {
            list::as_object(item)?;
        }
        // A directive has no place in the order, but upstream wants some of the order left for it.
        let is_skipped = !rest.as_slice().is_empty() && item.get(PATCH).is_some();
        if is_skipped || is_deletion(item) {
            continue;
        }
        let mut found = false;
        for other in rest.by_ref() {
            found = name(key, item)? == name(key, other)?;
            if found {
                break;
            }
        }
        if !found {
            let (patch, order) = (text::list(patch), text::list(order));
            return Err(StrategicError::Other(format!(
                "The order in patch list:\n{patch}\n doesn't match {ELEMENT_ORDER} list:\n{order}\n"
            )));
        }
    }
    Ok(())
}

/// The identity of an item: the value of its merge key, or the item itself.
fn name<'a>(key: Option<&str>, item: &'a Doc) -> Result<&'a Doc, StrategicError> {
    key.map_or(Ok(item), |key| keyed(item, key).map(|(_, name)| name))
}

/// Puts the items that `order` names in that order, the others in the order of the live list, and
/// each of these before the first of those that it preceded in the live list.
pub(super) fn arrange(
    key: Option<&str>,
    merged: Vec<Doc>,
    order: &[Doc],
    live: &[Doc],
) -> Result<Vec<Doc>, StrategicError> {
    if let (Some(_), Some(at)) = (key, order.iter().position(|it| it.as_object().is_none())) {
        let fault = format!("value for key {at} is not a map");
        return Err(StrategicError::Other(fault));
    }
    let (order, live) = (positions(key, order)?, positions(key, live)?);
    let mut deleted = Vec::new();
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for item in merged {
        let name = name(key, &item)?;
        let (wanted, found) = (order.get(name).copied(), live.get(name).copied());
        match wanted {
            _ if is_deletion(&item) => deleted.push(item),
            Some(wanted) => named.push((wanted, found, item)),
            None => others.push((found, item)),
        }
    }
    named.sort_by_key(|(wanted, _, _)| *wanted);
    others.sort_by_key(|(found, _)| *found);
    let mut arranged = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, place, item) in named {
        while let Some((_, other)) = others.next_if(|(found, _)| found.is_some() && *found < place)
        {
            arranged.push(other);
        }
        arranged.push(item);
    }
    arranged.extend(others.map(|(_, item)| item));
    arranged.extend(deleted);
    Ok(arranged)
}

fn is_deletion(item: &Doc) -> bool {
    item.get(PATCH).and_then(Doc::as_str) == Some("delete")
}

/// The first position of each item.
fn positions<'a>(
    key: Option<&str>,
    items: &'a [Doc],
) -> Result<HashMap<&'a Doc, usize>, StrategicError> {
    let mut positions = HashMap::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        positions.entry(name(key, item)?).or_insert(at);
    }
    Ok(positions)
}
