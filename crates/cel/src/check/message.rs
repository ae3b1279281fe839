//! Messages that an expression constructs: `Object{spec: Object.spec{replicas: 1}}`.

use std::sync::Arc;

use super::Checker;
use crate::error::Issue;
use crate::plan::{Plan, Step};
use crate::syntax::MessageField;
use crate::types::Type;

/// The message type of one operation of a JSON patch.
const JSON_PATCH: &str = "JSONPatch";

impl Checker<'_> {
    pub(super) fn message(&mut self, at: usize, name: &str, fields: &[MessageField]) -> Plan {
        if !(self.environment.has_patch_types() && is_message(name)) {
            return self.issue(
                at,
                format!("undeclared reference to '{name}' (in container '')"),
            );
        }
        let mut plans = Vec::with_capacity(fields.len());
        for field in fields {
            let (value, ty) = self.element(&field.value, field.is_optional);
            self.check_field(name, field, &ty);
            plans.push((field.name.clone(), value, field.is_optional));
        }
        let name: Arc<str> = name.into();
        Plan {
            ty: Type::Message(Arc::clone(&name)),
            step: Step::Message(name, plans),
        }
    }

    fn check_field(&mut self, name: &str, field: &MessageField, found: &Type) {
        let Some(expected) = field_type(name, &field.name) else {
            let message = format!("undefined field '{}'", field.name);
            self.issues.push(Issue::new(field.at, message));
            return;
        };
        if !self.unifier.assign(&expected, found) {
            let found = self.unifier.resolve(found);
            let message = format!(
                "expected type of field '{}' is '{expected}' but provided type is '{found}'",
                field.name
            );
            self.issues.push(Issue::new(field.at, message));
        }
    }
}

fn is_message(name: &str) -> bool {
    name == JSON_PATCH || name == "Object" || name.starts_with("Object.")
}

/// The type of a field of a message; `None` if the message has no such field.
pub(super) fn field_type(message: &str, field: &str) -> Option<Type> {
    if message != JSON_PATCH {
        return Some(Type::Dyn);
    }
    match field {
        "op" | "path" | "from" => Some(Type::String),
        "value" => Some(Type::Dyn),
        _ => None,
    }
}
