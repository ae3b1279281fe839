//! Validation of applied configurations.

use std::collections::BTreeSet;

use windlass_core::{Doc, Kind};

use super::element::PathElement;
use super::go;
use super::schema::{ListKind, ScalarKind, Schema, Structure, step_of};

/// The number of errors that are reported.
const FAULTS_LIMIT: usize = 100;

/// The errors of a configuration, each with its path.
pub(super) fn faults_of<S: Schema>(schema: S, config: &Doc) -> Vec<String> {
    let mut walk = Walk {
        path: Vec::new(),
        faults: Vec::new(),
    };
    walk.value(schema, config);
    walk.faults
}

struct Walk {
    path: Vec<PathElement>,
    faults: Vec<String>,
}

impl Walk {
    fn value<S: Schema>(&mut self, schema: S, value: &Doc) {
        if self.faults.len() >= FAULTS_LIMIT {
            return;
        }
        match (schema.structure(Some(value)), value.kind()) {
            (_, Kind::Null) => {}
            (Structure::Map | Structure::AtomicMap, Kind::Object(object)) => {
                for (key, value) in object.iter() {
                    self.path.push(PathElement::Field(key.clone()));
                    match schema.field(key) {
                        Some(inner) => self.value(inner, value),
                        None => self.fault("field not declared in schema"),
                    }
                    self.path.pop();
                }
            }
            (Structure::List(kind), Kind::Array(items)) => self.items(schema, kind, items),
            (Structure::Map | Structure::AtomicMap, _) => {
                self.fault(&format!("expected map, got &{{{}}}", go::plain(value)));
            }
            (Structure::List(_), _) => {
                self.fault(&format!("expected list, got &{{{}}}", go::plain(value)));
            }
            (Structure::Scalar, _) => self.scalar(schema.scalar(), value),
        }
    }

    fn scalar(&mut self, wanted: Option<ScalarKind>, value: &Doc) {
        match (wanted, value.kind()) {
            (Some(ScalarKind::String), Kind::Str(_))
            | (Some(ScalarKind::Numeric), Kind::Int(_) | Kind::UInt(_) | Kind::Float(_))
            | (Some(ScalarKind::Boolean), Kind::Bool(_)) => {}
            (Some(ScalarKind::String), _) => {
                let shown = go::literal(value);
                self.fault(&format!(
                    "expected string, got &value.valueUnstructured{{Value:{shown}}}"
                ));
            }
            (Some(ScalarKind::Numeric), _) => {
                let name = go::type_name(value);
                self.fault(&format!("expected numeric (int or float), got {name}"));
            }
            (Some(ScalarKind::Boolean), _) => {
                self.fault(&format!("expected boolean, got &{{{}}}", go::plain(value)));
            }
            (None, Kind::Object(_) | Kind::Array(_)) => {
                self.fault(&format!("expected scalar, got &{{{}}}", go::plain(value)));
            }
            (None, _) => {}
        }
    }

    fn items<S: Schema>(&mut self, schema: S, kind: ListKind<'_>, items: &[Doc]) {
        let mut seen = BTreeSet::new();
        for (at, item) in items.iter().enumerate() {
            let step = match kind {
                ListKind::Atomic => PathElement::Index(i64::try_from(at).unwrap_or(i64::MAX)),
                _ => match step_of(schema, kind, item) {
                    Ok(step) => step,
                    Err(fault) => {
                        self.fault(&format!("element {at}: {fault}"));
                        continue;
                    }
                },
            };
            if !seen.insert(step.clone()) {
                self.fault(&format!("duplicate entries for key {step}"));
            }
            self.path.push(step);
            if let Some(inner) = schema.item() {
                self.value(inner, item);
            }
            self.path.pop();
        }
    }

    fn fault(&mut self, fault: &str) {
        if self.faults.len() < FAULTS_LIMIT {
            let path: String = self.path.iter().map(ToString::to_string).collect();
            let colon = if path.is_empty() { "" } else { ": " };
            self.faults.push(format!("{path}{colon}{fault}"));
        }
    }
}
