//! Whether the rules of a schema can be compiled and will not cost too much.

use windlass_core::{Doc, quote};

use crate::custom::decl;
use crate::custom::rules::Rule;
use crate::custom::schema::{List, Node};
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::json_path::JsonPath;

/// What one rule may cost at most, by its estimate.
const RULE_COST_LIMIT: u64 = 10_000_000;
/// What all rules of a schema may cost together, by their estimates.
const SCHEMA_COST_LIMIT: u64 = 100_000_000;
/// Why a rule is refused, at most so often.
const EXPENSIVE_LIMIT: usize = 4;
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// Finds what is wrong with the rules of a schema.
pub(super) fn check(node: &Node, schema: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if !has_rules(schema) {
        return;
    }
    let mut check = Check {
        errors,
        total: 0,
        expensive: Vec::new(),
    };
    let place = Place {
        cardinality: Some(1),
        uncorrelated: None,
    };
    check.node(node, schema, path, &place);
    check.finish(path);
}

fn has_rules(schema: &Doc) -> bool {
    let own = schema
        .get("x-kubernetes-validations")
        .is_some_and(|rules| !rules.items().is_empty());
    own || schema.as_object().is_some_and(|object| {
        object.iter().any(|(key, value)| match key.as_str() {
            "properties" => value
                .as_object()
                .is_some_and(|parts| parts.values().iter().any(has_rules)),
            "items" | "additionalProperties" => has_rules(value),
            _ => false,
        })
    })
}

struct Check<'a> {
    errors: &'a mut FieldErrors,
    total: u64,
    /// The dearest rules, with what they cost.
    expensive: Vec<(u64, FieldPath)>,
}

/// Where a schema stands, as far as rules care.
#[derive(Clone)]
struct Place {
    /// How often a value can be there in one object; `None` if nothing limits it.
    cardinality: Option<u64>,
    /// The list around whose items cannot be told apart.
    uncorrelated: Option<FieldPath>,
}

impl Place {
    fn inside(&self, limit: Option<usize>) -> Self {
        let limit = limit.and_then(|limit| u64::try_from(limit).ok());
        let cardinality = match (self.cardinality, limit) {
            (Some(count), Some(limit)) => Some(count.saturating_mul(limit)),
            _ => None,
        };
        Self {
            cardinality,
            ..self.clone()
        }
    }
}

impl Check<'_> {
    fn node(&mut self, node: &Node, schema: &Doc, path: &FieldPath, place: &Place) {
        for (key, part) in &node.properties {
            if let Some(inner) = schema.at("/properties").get(key) {
                self.node(part, inner, &path.child("properties").key(key), place);
            }
        }
        let checks = node.checks.as_deref();
        if let Some(part) = node.values.as_deref() {
            let place = place.inside(checks.and_then(|checks| checks.entries.1));
            self.node(
                part,
                schema.at("/additionalProperties"),
                &path.child("additionalProperties"),
                &place,
            );
        }
        if let Some(part) = node.items.as_deref() {
            let mut place = place.inside(checks.and_then(|checks| checks.items.1));
            if !matches!(node.list, List::Map(_)) && place.uncorrelated.is_none() {
                place.uncorrelated = Some(path.clone());
            }
            self.node(part, schema.at("/items"), &path.child("items"), &place);
        }
        for (at, rule) in node.rules.iter().enumerate() {
            let raw = schema
                .at("/x-kubernetes-validations")
                .item(at)
                .cloned()
                .unwrap_or_default();
            let path = path.child("x-kubernetes-validations").index(at);
            if self.wording(rule, schema, &path) {
                self.rule(node, rule, &raw, &path, place);
            }
        }
    }

    /// Whether the words of a rule are as they must be.
    fn wording(&mut self, rule: &Rule, schema: &Doc, path: &FieldPath) -> bool {
        let before = self.errors.len();
        let has_newline = |text: &str| text.contains(['\n', '\r']);
        if rule.text.trim().is_empty() {
            self.errors
                .required(&path.child("rule"), "rule is not specified");
        } else if !rule.message.is_empty() && rule.message.trim().is_empty() {
            self.errors.invalid(
                &path.child("message"),
                rule.message.as_str(),
                "must be non-empty if specified",
            );
        } else if has_newline(rule.message.trim()) {
            self.errors.invalid(
                &path.child("message"),
                rule.message.as_str(),
                "must not contain line breaks",
            );
        } else if has_newline(rule.text.trim()) && rule.message.trim().is_empty() {
            let why = "message must be specified if rule contains line breaks";
            self.errors.required(&path.child("message"), why);
        }
        if !rule.message_text.is_empty() && rule.message_text.trim().is_empty() {
            let why = "messageExpression must be non-empty if specified";
            self.errors.required(&path.child("messageExpression"), why);
        }
        if !rule.reason.is_empty() && !REASONS.contains(&rule.reason.as_str()) {
            self.errors
                .not_supported(&path.child("reason"), &rule.reason, &REASONS);
        }
        if !rule.field_path.is_empty() {
            let field = path.child("fieldPath");
            if rule.field_path.trim().is_empty() {
                self.errors.invalid(
                    &field,
                    rule.field_path.as_str(),
                    "must be non-empty if specified",
                );
            }
            if has_newline(&rule.field_path) {
                self.errors.invalid(
                    &field,
                    rule.field_path.as_str(),
                    "must not contain line breaks",
                );
            }
            if !leads_somewhere(schema, &rule.field_path) {
                self.errors
                    .invalid(&field, rule.field_path.as_str(), "must be a valid path");
            }
        }
        self.errors.len() == before
    }

    fn rule(&mut self, node: &Node, rule: &Rule, raw: &Doc, path: &FieldPath, place: &Place) {
        let times = place.cardinality.unwrap_or_else(|| decl::cardinality(node));
        let field = path.child("rule");
        match &rule.program {
            Err(why) => self
                .errors
                .invalid_shown(&field, internal(raw), why.as_str()),
            Ok(program) => {
                let cost = program.estimated_cost().max.saturating_mul(times);
                self.spend("estimated rule cost", cost, &field);
            }
        }
        let message_field = path.child("messageExpression");
        match &rule.message_program {
            Some(Err(why)) => {
                self.errors
                    .invalid_shown(&message_field, internal(raw), why.as_str())
            }
            Some(Ok(program)) => {
                self.spend(
                    "estimated messageExpression cost",
                    program.estimated_cost().max,
                    &message_field,
                );
            }
            None => {}
        }
        match (
            &rule.program,
            rule.uses_old,
            &place.uncorrelated,
            rule.optional_old,
        ) {
            (Ok(_), true, Some(list), _) => {
                let why = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                );
                self.errors.invalid(&field, rule.text.as_str(), why);
            }
            (Ok(_), false, _, Some(value)) => {
                let why = "may not be set if oldSelf is not used in rule";
                self.errors
                    .invalid(&path.child("optionalOldSelf"), value, why);
            }
            _ => {}
        }
    }

    fn spend(&mut self, what: &str, cost: u64, path: &FieldPath) {
        if cost > RULE_COST_LIMIT {
            self.errors
                .forbidden(path, too_dear(what, cost, RULE_COST_LIMIT));
        }
        self.total = self.total.saturating_add(cost);
        self.expensive.push((cost, path.clone()));
    }

    fn finish(mut self, path: &FieldPath) {
        if self.total <= SCHEMA_COST_LIMIT {
            return;
        }
        self.expensive.sort_by(|(a, _), (b, _)| b.cmp(a));
        for (_, path) in self.expensive.iter().take(EXPENSIVE_LIMIT) {
            let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            self.errors.forbidden(path, why);
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        self.errors
            .forbidden(path, too_dear(what, self.total, SCHEMA_COST_LIMIT));
    }
}

fn too_dear(what: &str, cost: u64, limit: u64) -> String {
    let times = cost as f64 / limit as f64;
    let factor = if times > 100.0 {
        "more than 100x".to_owned()
    } else if times < 1.5 {
        format!("{times:.6}x")
    } else {
        format!("{times:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// Whether a path relative to a schema names something.
fn leads_somewhere(schema: &Doc, path: &str) -> bool {
    let Some(pointer) = JsonPath::parse(path).and_then(|path| path.pointer()) else {
        return false;
    };
    let mut schema = schema;
    for name in pointer.split('/').skip(1) {
        let name = name.replace("~1", "/").replace("~0", "~");
        schema = match (
            schema.at("/properties").get(&name),
            schema.get("additionalProperties"),
        ) {
            (Some(part), _) => part,
            (None, Some(values)) if schema.get("properties").is_none() => values,
            _ => return false,
        };
    }
    path.starts_with('.') || path.starts_with('[')
}

/// A rule as upstream's messages show it: in its internal form.
fn internal(rule: &Doc) -> String {
    let text = |key: &str| {
        let quoted = quote(rule.get(key).and_then(Doc::as_str).unwrap_or_default());
        quoted
            .replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026")
    };
    let optional = |key: &str| match rule.get(key).and_then(Doc::as_str) {
        Some(_) => text(key),
        None => "null".to_owned(),
    };
    let old = rule
        .get("optionalOldSelf")
        .and_then(Doc::as_bool)
        .map_or("null".to_owned(), |old| old.to_string());
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{old}}}",
        text("rule"),
        text("message"),
        text("messageExpression"),
        optional("reason"),
        text("fieldPath"),
    )
}
