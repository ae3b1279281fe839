//! Label and field selectors of a request.

use std::borrow::Cow;

use windlass_core::{
    Doc, FieldRequirement, FieldSelector, FieldSelectorError, Kind, Selector, SelectorError,
};

use crate::registry::{Resource, SelectableField};
use windlass_rules::status::Status;

/// Which objects a request is about.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    labels: Selector,
    fields: Vec<Field>,
}

/// A requirement and where the value stands.
#[derive(Clone, Debug)]
struct Field {
    pointer: String,
    /// Where the value stands if it is not there; empty for nowhere else.
    fallback: &'static str,
    absent: &'static str,
    requirement: FieldRequirement,
}

impl Filter {
    /// Reads both selectors.
    pub(crate) fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self, Status> {
        let labels: Selector = labels
            .parse()
            .map_err(|error: SelectorError| Status::bad_request(error.to_string()))?;
        let selector: FieldSelector = fields
            .parse()
            .map_err(|error: FieldSelectorError| Status::bad_request(error.to_string()))?;
        let mut requirements = Vec::new();
        for requirement in selector.requirements() {
            let place = place(resource, &requirement.field)?;
            requirements.push(Field {
                pointer: place.pointer.to_string(),
                fallback: place.fallback,
                absent: place.absent,
                requirement: requirement.clone(),
            });
        }
        Ok(Self {
            labels,
            fields: requirements,
        })
    }

    /// Narrows the filter to one name.
    pub(crate) fn require_name(&mut self, name: &str) -> Result<(), Status> {
        if self
            .exact("metadata.name")
            .is_some_and(|known| known != name)
        {
            return Err(Status::bad_request(
                "field metadata.name does not match the name of the path",
            ));
        }
        let requirement = FieldRequirement {
            field: "metadata.name".to_owned(),
            value: name.to_owned(),
            is_negated: false,
        };
        self.fields.push(Field {
            pointer: "/metadata/name".to_owned(),
            fallback: "",
            absent: "",
            requirement,
        });
        Ok(())
    }

    /// Whether everything matches.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_empty()
    }

    /// Whether an object matches.
    pub(crate) fn matches(&self, object: &Doc) -> bool {
        let fits = |field: &Field| {
            let mut value = text(object.at(&field.pointer), field.absent);
            if value.is_empty() && !field.fallback.is_empty() {
                value = text(object.at(field.fallback), field.absent);
            }
            (value == field.requirement.value) != field.requirement.is_negated
        };
        self.fields.iter().all(fits) && self.labels.matches(&object.meta().labels())
    }

    /// The one namespace that can match, if the fields say so.
    pub(crate) fn single_namespace(&self) -> Option<&str> {
        self.exact("metadata.namespace")
    }

    fn exact(&self, field: &str) -> Option<&str> {
        let requirements = self.fields.iter().map(|known| &known.requirement);
        let mut exact = requirements.filter(|known| known.field == field && !known.is_negated);
        exact.next().map(|known| known.value.as_str())
    }
}

/// Where the value of a field label stands in an object, and the meaning of its absence.
fn place(resource: &Resource, label: &str) -> Result<SelectableField, Status> {
    let metadata = |pointer: &'static str| SelectableField {
        label: Cow::Owned(label.to_owned()),
        pointer: Cow::Borrowed(pointer),
        fallback: "",
        absent: "",
    };
    match label {
        "metadata.name" => return Ok(metadata("/metadata/name")),
        "metadata.namespace" if resource.is_namespaced() => {
            return Ok(metadata("/metadata/namespace"));
        }
        _ => {}
    }
    match resource.fields.iter().find(|known| known.label == label) {
        Some(field) => Ok(field.clone()),
        None if resource.fields.is_empty() => Err(Status::bad_request(format!(
            "{label:?} is not a known field selector: only \"metadata.name\", \
             \"metadata.namespace\""
        ))),
        None => Err(Status::bad_request(format!(
            "field label not supported: {label}"
        ))),
    }
}

/// A value as field selectors compare it.
fn text<'a>(value: &'a Doc, absent: &'static str) -> Cow<'a, str> {
    match value.kind() {
        Kind::Null => Cow::Borrowed(absent),
        Kind::Str(text) => Cow::Borrowed(text),
        _ => Cow::Owned(value.to_string()),
    }
}
