//! Parameters of policies: the objects that bindings name.

use std::sync::Arc;

use windlass_access::admission::policy::{ParamRef, ParamSelection};
use windlass_core::{Doc, Gvk};

use crate::extension::Surroundings;
use crate::registry::{Resource, Table};
use crate::storage;

/// Parameters of one evaluation; `None` where a policy or a binding has none.
pub(super) type Params = Option<Doc>;

/// The row of the kind of parameters.
///
/// # Errors
/// When no such kind is served, in upstream's words.
pub(super) fn row<'t>(table: &'t Table, kind: &Gvk) -> Result<&'t Arc<Resource>, String> {
    let version = table.version(kind.group(), kind.version());
    let mut rows = version.into_iter().flat_map(|it| it.resources.values());
    rows.find(|row| row.gvk == *kind).ok_or_else(|| {
        let api_version = match kind.group() {
            "" => format!("/{}", kind.version()),
            _ => kind.api_version(),
        };
        format!(
            "failed to find resource referenced by paramKind: '{api_version}, Kind={}'",
            kind.kind()
        )
    })
}

/// All parameters with which a policy is evaluated for a binding: none if there are none and that
/// is allowed. `row` is that of the policy's `paramKind`, `namespace` that of the request.
///
/// # Errors
/// When the reference does not fit the kind, or there are no parameters, in upstream's words.
pub(super) fn collect(
    around: &Surroundings<'_>,
    row: Option<&Arc<Resource>>,
    reference: Option<&ParamRef>,
    namespace: &str,
) -> Result<Vec<Params>, String> {
    let (Some(row), Some(reference)) = (row, reference) else {
        return Ok(vec![None]);
    };
    let namespace = match (row.is_namespaced(), reference.namespace.as_str()) {
        (true, "") if namespace.is_empty() => {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped \
                 resources"
                    .to_owned(),
            );
        }
        (true, "") => namespace,
        (true, namespace) => namespace,
        (false, "") => "",
        (false, _) => {
            return Err(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
                    .to_owned(),
            );
        }
    };
    let found = find(around, row, &reference.selection, namespace)?;
    if found.is_empty() && reference.is_required {
        return Err(
            "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned(),
        );
    }
    Ok(found.into_iter().map(Some).collect())
}

fn find(
    around: &Surroundings<'_>,
    row: &Resource,
    selection: &ParamSelection,
    namespace: &str,
) -> Result<Vec<Doc>, String> {
    let view = |doc: &Doc| row.view(doc);
    match selection {
        ParamSelection::Name(name) => {
            let entry = around
                .storage
                .get(&row.shelf, &storage::key(namespace, name));
            Ok(entry.iter().map(|entry| view(entry.doc())).collect())
        }
        ParamSelection::Labels(selector) => {
            let selector = selector.as_ref().map_err(Clone::clone)?;
            let all = around.storage.snapshot(&row.shelf);
            let selected = |doc: &&Doc| selector.matches(&doc.meta().labels());
            Ok(match namespace {
                "" => all
                    .iter()
                    .map(|it| it.doc())
                    .filter(selected)
                    .map(view)
                    .collect(),
                namespace => {
                    let entries = all.namespace(namespace, "");
                    entries
                        .map(|it| it.doc())
                        .filter(selected)
                        .map(view)
                        .collect()
                }
            })
        }
    }
}
