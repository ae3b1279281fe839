//! RuntimeClasses.

use windlass_core::{Doc, doc, names};

use super::{pod_nodes, pod_resources};
use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;
use crate::labels;

/// Hooks of RuntimeClasses.
#[derive(Debug)]
pub struct RuntimeClasses;

impl Hooks for RuntimeClasses {
    fn validate_create(&self, class: &Doc, errors: &mut FieldErrors) {
        let field = FieldPath::new("handler");
        match class.str_at("/handler") {
            "" => errors.required(&field, ""),
            handler => errors.invalid_each(&field, handler, names::dns1123_label(handler)),
        }
        let overhead = class.at("/overhead");
        if !overhead.is_null() {
            // The amounts are checked as the limits of a container are.
            let limits = doc!({ "limits": (overhead.at("/podFixed").clone()) });
            pod_resources::validate(&limits, &FieldPath::new("overhead"), errors);
        }
        let scheduling = FieldPath::new("scheduling");
        let selector = class.at("/scheduling/nodeSelector");
        labels::labels(&scheduling.child("nodeSelector"), selector, errors);
        let tolerations = class.at("/scheduling/tolerations");
        let field = scheduling.child("tolerations");
        pod_nodes::validate_tolerations(tolerations, &field, errors);
        check_duplicates(tolerations, &field, errors);
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        let field = FieldPath::new("handler");
        errors.immutable(&field, new.at("/handler"), old.at("/handler"));
    }
}

/// Finds tolerations that differ in no more than their seconds.
fn check_duplicates(tolerations: &Doc, field: &FieldPath, errors: &mut FieldErrors) {
    let key = |toleration: &Doc| {
        let bare = toleration.without("/tolerationSeconds");
        bare.unwrap_or_else(|_| toleration.clone())
    };
    let items = tolerations.items();
    for (index, toleration) in items.iter().enumerate() {
        if items[..index]
            .iter()
            .any(|known| key(known) == key(toleration))
        {
            errors.duplicate(&field.index(index), toleration.clone());
        }
    }
}
