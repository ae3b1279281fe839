//! Rules in the expression language: `x-kubernetes-validations`.

use std::sync::Arc;

use windlass_cel::{Bindings, Budget, Decl, Environment, EvalError, Program, Type, Value};
use windlass_core::{Doc, Kind, quote};

use super::correlate::Correlation;
use super::schema::{Node, Sort};
use windlass_rules::field::{FieldErrors, FieldPath};

/// The longest message that an expression may make.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// One rule.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) text: String,
    pub(crate) message: String,
    pub(crate) message_text: String,
    pub(crate) reason: String,
    pub(crate) field_path: String,
    pub(crate) optional_old: Option<bool>,
    /// The compiled rule, or why there is none.
    pub(crate) program: Result<Program, String>,
    pub(crate) message_program: Option<Result<Program, String>>,
    /// Whether the rule compares with the value before.
    pub(crate) uses_old: bool,
}

impl Rule {
    /// The rules of a schema, not compiled yet.
    pub(crate) fn read(schema: &Doc) -> Vec<Self> {
        let rules = schema
            .get("x-kubernetes-validations")
            .map_or(&[][..], Doc::items);
        let read = |rule: &Doc| Self {
            text: rule.str_at("/rule").to_owned(),
            message: rule.str_at("/message").to_owned(),
            message_text: rule.str_at("/messageExpression").to_owned(),
            reason: rule.str_at("/reason").to_owned(),
            field_path: rule.str_at("/fieldPath").to_owned(),
            optional_old: rule.at("/optionalOldSelf").as_bool(),
            program: Err("no type information".to_owned()),
            message_program: None,
            uses_old: false,
        };
        rules.iter().map(read).collect()
    }

    fn compile(&mut self, decl: &Arc<Decl>) {
        let old = if self.optional_old == Some(true) {
            Decl::plain(Type::optional(decl.ty()), decl.size_max())
        } else {
            Arc::clone(decl)
        };
        let environment = Environment::builder()
            .variable("self", Arc::clone(decl))
            .variable("oldSelf", old)
            .build();
        self.program = match environment.compile(&self.text) {
            Err(error) => Err(format!("compilation failed: {error}")),
            Ok(program) if !program.result_type().is_bool() => {
                Err("cel expression must evaluate to a bool".to_owned())
            }
            Ok(program) => Ok(program),
        };
        self.uses_old = self
            .program
            .as_ref()
            .is_ok_and(|program| program.refers_to("oldSelf"));
        if !self.message_text.trim().is_empty() {
            self.message_program = Some(match environment.compile(&self.message_text) {
                Err(error) => Err(format!("messageExpression compilation failed: {error}")),
                Ok(program) if !program.result_type().is_string() => {
                    Err("messageExpression must evaluate to a string".to_owned())
                }
                Ok(program) => Ok(program),
            });
        }
    }

    /// The rule as messages quote it.
    fn shown(&self) -> String {
        match (self.message.trim(), self.text.trim().contains('\n')) {
            ("", _) => self.text.trim().to_owned(),
            (message, _) => format!(
                "{{Rule: {}, Message: {}}}",
                quote(self.text.trim()),
                quote(message)
            ),
        }
    }
}

/// Compiles every rule of a schema whose places are declared.
pub(crate) fn compile(node: &mut Node) {
    if !node.has_rules {
        return;
    }
    if let Some(decl) = node.decl.clone() {
        node.rules.iter_mut().for_each(|rule| rule.compile(&decl));
    }
    node.properties
        .iter_mut()
        .for_each(|(_, part)| compile(part));
    node.values.iter_mut().for_each(|part| compile(part));
    node.items.iter_mut().for_each(|part| compile(part));
}

/// Evaluates the rules of an object, those below included.
pub(crate) struct Evaluation<'a, 'b> {
    pub(crate) errors: &'a mut FieldErrors,
    pub(crate) budget: Budget<'b>,
}

/// Nothing more is to be evaluated.
pub(crate) struct Exhausted;

impl Evaluation<'_, '_> {
    /// Evaluates at and below a place. `old` is the value before, where one can be told.
    pub(crate) fn run(
        &mut self,
        node: &Node,
        new: &Doc,
        old: Option<&Doc>,
        path: &FieldPath,
    ) -> Result<(), Exhausted> {
        if !node.has_rules || new.is_null() {
            return Ok(());
        }
        for rule in &node.rules {
            self.rule(node, rule, new, old, path)?;
        }
        match new.kind() {
            Kind::Object(object) => {
                for (key, value) in object.iter() {
                    let (part, path) = match node.property(key) {
                        Some(part) => (part, path.child(key)),
                        None => match node.values.as_deref() {
                            Some(part) => (part, path.key(key)),
                            None => continue,
                        },
                    };
                    self.run(part, value, old.and_then(|old| old.get(key)), &path)?;
                }
            }
            Kind::Array(items) => {
                let Some(part) = node.items.as_deref().filter(|part| part.has_rules) else {
                    return Ok(());
                };
                let before = Correlation::of(node, old);
                for (at, item) in items.iter().enumerate() {
                    self.run(part, item, before.item(item), &path.index(at))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn rule(
        &mut self,
        node: &Node,
        rule: &Rule,
        new: &Doc,
        old: Option<&Doc>,
        path: &FieldPath,
    ) -> Result<(), Exhausted> {
        let (Ok(program), Some(decl)) = (&rule.program, &node.decl) else {
            return Ok(());
        };
        let old = old.filter(|old| !old.is_null());
        let is_optional = rule.optional_old == Some(true);
        let is_unchanged = old == Some(new);
        // What was accepted once stays acceptable, and a transition needs something to start from.
        if (rule.uses_old && old.is_none() && !is_optional) || (!rule.uses_old && is_unchanged) {
            return Ok(());
        }
        let mut bindings = Bindings::new().with("self", Value::declared(new, decl));
        let before = old.map(|old| Value::declared(old, decl));
        if is_optional {
            bindings = bindings.with("oldSelf", Value::Optional(before.map(Arc::new)));
        } else if let Some(before) = before {
            bindings = bindings.with("oldSelf", before);
        }
        let outcome = program.evaluate(&bindings, &mut self.budget);
        let sort = node.sort.name();
        let shown = rule.shown();
        match outcome {
            Ok(value) if value.as_bool() == Some(true) => Ok(()),
            Ok(_) => self.broken(node, rule, new, path, &bindings),
            Err(EvalError::Budget) => {
                self.errors
                    .invalid(path, sort, EvalError::Budget.to_string());
                Err(Exhausted)
            }
            // Nobody waits for the answer.
            Err(error @ EvalError::Interrupted) => {
                self.errors.invalid(path, sort, error.to_string());
                Err(Exhausted)
            }
            Err(error @ EvalError::CostLimit) => {
                let detail = format!(
                    "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {shown}"
                );
                self.errors.invalid(path, sort, detail);
                Err(Exhausted)
            }
            Err(error) => {
                let text = error.to_string();
                let detail = if text.starts_with("no such overload") {
                    format!(
                        "'{text}': call arguments did not match a supported operator, function or macro signature for rule: {shown}"
                    )
                } else {
                    format!("{text} evaluating rule: {shown}")
                };
                self.errors.invalid(path, sort, detail);
                Ok(())
            }
        }
    }

    /// Reports a rule that does not hold.
    fn broken(
        &mut self,
        node: &Node,
        rule: &Rule,
        new: &Doc,
        path: &FieldPath,
        bindings: &Bindings<'_>,
    ) -> Result<(), Exhausted> {
        let path = match rule.field_path.trim().trim_start_matches('.') {
            "" => path.clone(),
            relative => path.child(&normalized(relative)),
        };
        let made = match &rule.message_program {
            Some(Ok(program)) => self.message(program, bindings),
            _ => Ok(None),
        };
        let detail = match made {
            Ok(Some(text)) => text,
            Ok(None) if rule.message.is_empty() => format!("failed rule: {}", rule.text.trim()),
            Ok(None) => rule.message.trim().to_owned(),
            Err(detail) => {
                self.errors.invalid(&path, node.sort.name(), detail);
                return Err(Exhausted);
            }
        };
        let is_shown = !matches!(node.sort, Sort::Object | Sort::Array);
        match rule.reason.as_str() {
            "FieldValueForbidden" => self.errors.forbidden(&path, detail),
            "FieldValueRequired" => self.errors.required(&path, detail),
            "FieldValueDuplicate" if is_shown => self.errors.duplicate(&path, new),
            "FieldValueDuplicate" => self.errors.duplicate_unshown(&path),
            _ if is_shown => self.errors.invalid(&path, new, detail),
            _ => self.errors.invalid_unshown(&path, detail),
        }
        Ok(())
    }

    /// The message that an expression makes; `None` if it is of no use.
    fn message(
        &mut self,
        program: &Program,
        bindings: &Bindings<'_>,
    ) -> Result<Option<String>, String> {
        match program.evaluate(bindings, &mut self.budget) {
            Ok(value) => {
                let text = value.as_str().unwrap_or_default().trim();
                let is_usable = !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n');
                Ok(is_usable.then(|| text.to_owned()))
            }
            Err(EvalError::Budget) => Err(
                "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
                    .to_owned(),
            ),
            Err(EvalError::CostLimit) => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                quote(program.expression())
            )),
            Err(_) => Ok(None),
        }
    }
}

/// A path in the form of field paths: `a['b.c']` is `a[b.c]`.
fn normalized(path: &str) -> String {
    path.replace("['", "[").replace("']", "]")
}
