//! Merging a partial object into a whole one without ownership, as mutating admission policies do.

use windlass_core::{Doc, Kind};

use super::element::PathElement;
use super::merge::merge;
use super::schema::{ListKind, Schema, Structure};
use super::validate::faults_of;

/// Merges a partial object into a whole one. The error is in upstream's words.
///
/// # Errors
/// When the partial object does not fit the schema, or sets a list, map or object that is one value
/// to the schema: what it leaves out there would be lost.
pub fn overlay<S: Schema>(schema: S, whole: &Doc, partial: &Doc) -> Result<Doc, String> {
    let faults = faults_of(schema, partial);
    if let [first, ..] = faults.as_slice() {
        let faults = match faults.len() {
            1 => first.clone(),
            _ => format!("errors:\n  {}", faults.join("\n  ")),
        };
        return Err(format!(
            "failed to convert patch object to typed object: {faults}"
        ));
    }
    let mut atomics = Vec::new();
    find_atomics(schema, partial, &mut Vec::new(), &mut atomics);
    if !atomics.is_empty() {
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomics.join(", ")
        ));
    }
    Ok(merge(schema, whole, partial))
}

/// Finds the paths of atomic lists, maps and objects. Entries of maps are not looked into, as
/// upstream has it; fields of objects and items of lists are.
fn find_atomics<S: Schema>(
    schema: S,
    value: &Doc,
    path: &mut Vec<PathElement>,
    atomics: &mut Vec<String>,
) {
    let structure = schema.structure(Some(value));
    let is_atomic = matches!(
        structure,
        Structure::AtomicMap | Structure::List(ListKind::Atomic)
    );
    match value.kind() {
        Kind::Object(fields) if matches!(structure, Structure::Map | Structure::AtomicMap) => {
            if is_atomic {
                atomics.push(text_of(path));
            }
            for (name, value) in fields.iter() {
                if schema.is_declared(name)
                    && let Some(inner) = schema.field(name)
                {
                    path.push(PathElement::Field(name.clone()));
                    find_atomics(inner, value, path, atomics);
                    path.pop();
                }
            }
        }
        Kind::Array(items) if matches!(structure, Structure::List(_)) => {
            if is_atomic {
                atomics.push(text_of(path));
            }
            let Some(inner) = schema.item() else {
                return;
            };
            for (index, item) in items.iter().enumerate() {
                path.push(PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX)));
                find_atomics(inner, item, path, atomics);
                path.pop();
            }
        }
        _ => {}
    }
}

fn text_of(path: &[PathElement]) -> String {
    path.iter().map(PathElement::to_string).collect()
}
