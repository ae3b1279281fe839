//! The expressions of a policy, compiled to find what is wrong with them.

use std::collections::HashSet;

use windlass_cel::{AdmissionVariables, CompileError, Composition};
use windlass_core::{Doc, names};

use super::super::webhooks::validate_conditions;
use crate::field::{FieldErrors, FieldPath};

const ANNOTATIONS_LIMIT: usize = 20;
/// The longest expression of an annotation, in bytes.
const ANNOTATION_BYTES_LIMIT: usize = 5 * 1024;
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

/// The surroundings of the expressions of one policy.
pub(super) struct Expressions {
    /// The variables of validations.
    variables: AdmissionVariables,
    composition: Composition,
    /// True if expressions may name `variables`.
    is_composed: bool,
}

impl Expressions {
    pub(super) fn new(policy: &Doc) -> Self {
        Self {
            variables: AdmissionVariables {
                has_params: !policy.at("/spec/paramKind").is_null(),
                has_authorizer: true,
                has_patch_types: false,
            },
            composition: Composition::default(),
            is_composed: true,
        }
    }

    /// Compiles an expression whose type must be one of those.
    fn compile(
        &self,
        variables: AdmissionVariables,
        text: &str,
        wanted: &[&str],
    ) -> Result<(), String> {
        let environment = match self.is_composed {
            true => variables.environment(&self.composition),
            false => variables.plain_environment(),
        };
        let program = environment.compile(text);
        let program = program.map_err(|error| format!("compilation failed: {error}"))?;
        program.result_type().mismatch(wanted).map_or(Ok(()), Err)
    }

    /// Validates the match conditions of a policy, which see no composed variables.
    pub(super) fn conditions(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
        let variables = AdmissionVariables {
            has_params: !spec.at("/paramKind").is_null(),
            has_authorizer: true,
            has_patch_types: false,
        };
        let environment = variables.plain_environment();
        let compile = |text: &str| {
            let program = environment.compile(text);
            let program = program.map_err(|error| format!("compilation failed: {error}"))?;
            program
                .result_type()
                .mismatch(&["bool"])
                .map_or(Ok(()), Err)
        };
        let conditions = spec.at("/matchConditions").items();
        validate_conditions(conditions, path, &compile, errors);
    }

    /// Validates the composed variables, each of which sees those before it.
    fn variables(&mut self, policy: &Doc, errors: &mut FieldErrors) {
        let list = policy.at("/spec/variables").items();
        let path = FieldPath::new("spec").child("variables");
        for (index, variable) in list.iter().enumerate() {
            let path = path.index(index);
            let (name, text) = (variable.str_at("/name"), variable.str_at("/expression"));
            if name.trim().is_empty() {
                errors.required(&path.child("name"), "name is not specified");
            } else if !is_identifier(name) {
                let detail = "must be a valid CEL identifier";
                errors.invalid(&path.child("name"), name, detail);
            }
            if text.trim().is_empty() {
                errors.required(&path.child("expression"), "expression is not specified");
            } else if let Err(error) = self.add_variable(name, text) {
                let detail = format!("compilation failed: {error}");
                errors.invalid(&path.child("expression"), text, detail);
            }
        }
    }

    fn add_variable(&mut self, name: &str, text: &str) -> Result<(), CompileError> {
        let environment = self.variables.environment(&self.composition);
        self.composition.add(&environment, name, text)
    }

    /// Validates variables, validations and audit annotations.
    pub(super) fn validations(mut self, policy: &Doc, errors: &mut FieldErrors) {
        self.is_composed = !policy.at("/spec/variables").items().is_empty();
        self.variables(policy, errors);
        let (spec, path) = (policy.at("/spec"), FieldPath::new("spec"));
        let validations = spec.at("/validations").items();
        let annotations = spec.at("/auditAnnotations").items();
        if validations.is_empty() && annotations.is_empty() {
            let detail = "validations or auditAnnotations must contain at least one item";
            errors.required(&path.child("validations"), detail);
            errors.required(&path.child("auditAnnotations"), detail);
            return;
        }
        for (index, validation) in validations.iter().enumerate() {
            let path = path.child("validations").index(index);
            self.validation(validation, &path, errors);
        }
        let path = path.child("auditAnnotations");
        if annotations.len() > ANNOTATIONS_LIMIT {
            let detail = format!("must not have more than {ANNOTATIONS_LIMIT} auditAnnotations");
            errors.invalid(&path, spec.at("/auditAnnotations").clone(), detail);
        }
        let mut seen = HashSet::new();
        for (index, annotation) in annotations.iter().enumerate() {
            self.annotation(policy.meta().name(), annotation, &path.index(index), errors);
            let key = annotation.str_at("/key");
            if !seen.insert(key) {
                errors.duplicate(&path.index(index).child("key"), key);
            }
        }
    }

    fn validation(&self, validation: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
        let text = validation.str_at("/expression");
        let at = path.child("expression");
        if text.trim().is_empty() {
            errors.required(&at, "expression is not specified");
        } else if let Err(why) = self.compile(self.variables, text, &["bool"]) {
            errors.invalid(&at, text, why);
        }
        let text = validation.str_at("/messageExpression");
        let at = path.child("messageExpression");
        let variables = AdmissionVariables {
            has_authorizer: false,
            ..self.variables
        };
        if !text.is_empty() && text.trim().is_empty() {
            errors.invalid(&at, text, "must be non-empty if specified");
        } else if !text.is_empty()
            && let Err(why) = self.compile(variables, text, &["string"])
        {
            errors.invalid(&at, text, why);
        }
        let (text, at) = (validation.str_at("/message"), path.child("message"));
        if !text.is_empty() && text.trim().is_empty() {
            errors.invalid(&at, text, "must be non-empty if specified");
        } else if text.trim().contains(['\n', '\r']) {
            errors.invalid(&at, text, "must not contain line breaks");
        }
        let reason = validation.at("/reason").as_str();
        if let Some(reason) = reason.filter(|it| !REASONS.contains(it)) {
            errors.not_supported(&path.child("reason"), reason, &REASONS);
        }
    }

    fn annotation(
        &self,
        policy: &str,
        annotation: &Doc,
        path: &FieldPath,
        errors: &mut FieldErrors,
    ) {
        let (key, at) = (annotation.str_at("/key"), path.child("key"));
        if policy.is_empty() {
            errors.invalid(&at, key, "requires metadata.name be non-empty");
        } else {
            let name = format!("{policy}/{key}");
            errors.invalid_each(&at, &name, names::qualified_name(&name));
        }
        let given = annotation.str_at("/valueExpression");
        let (text, at) = (given.trim(), path.child("valueExpression"));
        if text.is_empty() {
            errors.required(&at, "valueExpression is not specified");
        } else if text.len() > ANNOTATION_BYTES_LIMIT {
            let detail = format!("must not exceed {ANNOTATION_BYTES_LIMIT} bytes in length");
            errors.required(&at, detail);
        } else if let Err(why) = self.compile(self.variables, text, &["string", "null_type"]) {
            errors.invalid(&at, given, why);
        }
    }

    /// Validates variables and mutations.
    pub(super) fn mutations(mut self, policy: &Doc, errors: &mut FieldErrors) {
        self.variables(policy, errors);
        let mutations = policy.at("/spec/mutations").items();
        let path = FieldPath::new("spec").child("mutations");
        if mutations.is_empty() {
            errors.required(&path, "mutations must contain at least one item");
        }
        for (index, mutation) in mutations.iter().enumerate() {
            self.mutation(mutation, &path.index(index), errors);
        }
    }

    fn mutation(&self, mutation: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
        const KINDS: [(&str, &str, &str); 2] = [
            ("ApplyConfiguration", "applyConfiguration", "Object"),
            ("JSONPatch", "jsonPatch", "list(JSONPatch)"),
        ];
        let patch_type = mutation.str_at("/patchType");
        let at = path.child("patchType");
        if patch_type.is_empty() {
            return errors.required(&at, "");
        }
        if !KINDS.iter().any(|(name, ..)| *name == patch_type) {
            return errors.not_supported(&at, patch_type, &KINDS.map(|(name, ..)| name));
        }
        for (name, key, wanted) in KINDS {
            let at = path.child(key);
            match (name == patch_type, mutation.get(key)) {
                (true, None) => {
                    let detail = format!("must be specified when patchType is {patch_type}");
                    errors.required(&at, detail);
                }
                (true, Some(patch)) => {
                    self.patch(patch.str_at("/expression"), wanted, &at, errors);
                }
                (false, Some(_)) => {
                    let detail = format!("must not be specified when patchType is {patch_type}");
                    errors.invalid(&at, format!("{{{key}}}"), detail);
                }
                (false, None) => {}
            }
        }
    }

    fn patch(&self, text: &str, wanted: &str, path: &FieldPath, errors: &mut FieldErrors) {
        let (text, at) = (text.trim(), path.child("expression"));
        let variables = AdmissionVariables {
            has_patch_types: true,
            ..self.variables
        };
        if text.is_empty() {
            errors.required(&at, "");
        } else if let Err(why) = self.compile(variables, text, &[wanted]) {
            errors.invalid(&at, text, why);
        }
    }
}

/// Returns true if a name can be written in an expression.
fn is_identifier(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_other = |c: char| is_first(c) || c.is_ascii_digit();
    name.starts_with(is_first)
        && name.chars().all(is_other)
        // Only reserved words are escaped in this way.
        && windlass_cel::escape(name).is_none_or(|escaped| escaped != format!("__{name}__"))
}
