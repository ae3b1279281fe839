//! Fields that a built-in kind does not have.

use std::fmt;

use windlass_core::{Doc, Kind};

use crate::table::{Shape, Type};

/// The number of unknown fields that are reported of one object; upstream has the same limit.
pub const UNKNOWN_LIMIT: usize = 100;

/// A field that the kind of its object does not have.
///
/// Printed as strict field validation reports it: `unknown field "spec.foo"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    path: String,
}

impl UnknownField {
    /// The path of the field, such as `spec.containers[0].foo`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown field {}", windlass_core::quote(&self.path))
    }
}

/// The fields of an object that its kind does not have, at most [`UNKNOWN_LIMIT`].
///
/// Fields come in canonical order. What upstream reads without looking at its fields, such as a
/// JSON schema that may also be a boolean, is not looked into here either.
#[must_use]
pub fn unknown_fields(kind: &Type, doc: &Doc) -> Vec<UnknownField> {
    let mut search = Search {
        path: String::new(),
        found: Vec::new(),
    };
    search.object(kind, doc);
    search.found
}

struct Search {
    path: String,
    found: Vec<UnknownField>,
}

impl Search {
    fn object(&mut self, of: &Type, doc: &Doc) {
        let Kind::Object(object) = doc.kind() else {
            return;
        };
        for (key, value) in object.iter() {
            if self.found.len() >= UNKNOWN_LIMIT {
                return;
            }
            let field = of.field(key);
            self.inside(key, |search| match field {
                Some(field) => search.value(field.shape(), value),
                None => search.found.push(UnknownField {
                    path: search.path.clone(),
                }),
            });
        }
    }

    fn value(&mut self, shape: &Shape, doc: &Doc) {
        match (shape, doc.kind()) {
            (Shape::Message(of), _) => self.object(of.get(), doc),
            (Shape::List(inner), Kind::Array(items)) if leads_on(inner) => {
                for (at, item) in items.iter().enumerate() {
                    let length = self.path.len();
                    self.path.push_str(&format!("[{at}]"));
                    self.value(inner, item);
                    self.path.truncate(length);
                }
            }
            (Shape::Map(inner), Kind::Object(object)) if leads_on(inner) => {
                for (key, item) in object.iter() {
                    self.inside(key, |search| search.value(inner, item));
                }
            }
            _ => {}
        }
    }

    /// Runs something with the path one key longer.
    fn inside(&mut self, key: &str, run: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        run(self);
        self.path.truncate(length);
    }
}

/// Returns true if values of a shape can hold fields of a known type.
fn leads_on(shape: &Shape) -> bool {
    matches!(shape, Shape::Message(_) | Shape::List(_) | Shape::Map(_))
}

#[cfg(test)]
mod tests {
    use windlass_core::{Gvk, doc};

    use super::*;
    use crate::table::Atlas;

    fn unknown_in(gvk: &Gvk, doc: &Doc) -> Vec<String> {
        let kind = Atlas::kind(gvk).expect("a built-in kind");
        let unknown = unknown_fields(kind, doc);
        unknown.iter().map(ToString::to_string).collect()
    }

    const DEPLOYMENT: Gvk = Gvk::constant("apps", "v1", "Deployment");

    #[test]
    fn known_fields_are_not_reported() {
        let deployment = doc!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "web", "labels": { "a.b/c": "d" } },
            "spec": { "template": { "spec": { "containers": [
                { "name": "web", "livenessProbe": { "httpGet": { "port": 80 } },
                  "resources": { "limits": { "example.com/gpu": 1 } } }
            ], "volumes": [{ "name": "data", "emptyDir": {} }] } } },
        });
        assert_eq!(unknown_in(&DEPLOYMENT, &deployment), Vec::<String>::new());
    }

    #[test]
    fn unknown_fields_are_reported_with_their_paths() {
        let deployment = doc!({
            "foo": null,
            "metadata": { "Name": "case counts" },
            "spec": { "replica": 1, "template": { "spec": { "containers": [
                { "name": "web" }, { "imagePullpolicy": "Always" }
            ] } } },
        });
        let expected = [
            r#"unknown field "foo""#,
            r#"unknown field "metadata.Name""#,
            r#"unknown field "spec.replica""#,
            r#"unknown field "spec.template.spec.containers[1].imagePullpolicy""#,
        ];
        assert_eq!(unknown_in(&DEPLOYMENT, &deployment), expected);
    }

    #[test]
    fn json_of_any_form_is_not_looked_into() {
        let crd = Gvk::constant("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let version = |schema: Doc| doc!({ "spec": { "versions": [{ "schema": schema }] } });
        let any = version(doc!({ "openAPIV3Schema": { "default": { "foo": 1 },
            "items": { "foo": 1 }, "additionalProperties": { "foo": 1 } } }));
        assert_eq!(unknown_in(&crd, &any), Vec::<String>::new());
        let property =
            version(doc!({ "openAPIV3Schema": { "properties": { "a.b": { "foo": 1 } } } }));
        let path = "spec.versions[0].schema.openAPIV3Schema.properties.a.b.foo";
        assert_eq!(
            unknown_in(&crd, &property),
            [format!("unknown field \"{path}\"")]
        );
    }

    #[test]
    fn the_number_of_reports_is_limited() {
        let many = (0..500).map(|at| (format!("f{at}"), Doc::NULL));
        let many: windlass_core::Object = many.collect();
        assert_eq!(unknown_in(&DEPLOYMENT, &many.into()).len(), UNKNOWN_LIMIT);
    }
}
