//! Whether a value is as its schema says, in upstream's words.

use windlass_core::{Doc, Kind, Object, Quantity, quote};

use super::correlate::Correlation;
use super::schema::{Checks, List, Node, Sort};
use windlass_rules::field::{FieldErrors, FieldPath};

/// A walk through a value beside its schema.
pub(crate) struct Validation<'a> {
    pub(crate) errors: &'a mut FieldErrors,
    /// Where the value stands that the walk began with.
    pub(crate) base: FieldPath,
}

impl Validation<'_> {
    /// Validates a value. `old` is the value before; what did not change stays acceptable.
    pub(crate) fn run(&mut self, node: &Node, value: &Doc, old: Option<&Doc>, name: &FieldPath) {
        // A body can be wrong in more places than are told; the rest need not be looked at.
        if old == Some(value) || self.errors.is_full() {
            return;
        }
        if !self.sort(node, value, name) {
            return;
        }
        if let Some(checks) = node.checks.as_deref() {
            self.combinations(checks, value, name);
            match value.kind() {
                Kind::Str(text) => self.text(checks, text, name),
                Kind::Int(_) | Kind::UInt(_) | Kind::Float(_) => self.number(checks, value, name),
                _ => {}
            }
        }
        match value.kind() {
            Kind::Array(items) => self.array(node, items, old, name),
            Kind::Object(object) => self.object(node, object, old, name),
            _ => {}
        }
        if let Some(checks) = node.checks.as_deref() {
            self.choices(checks, value, name);
        }
    }

    fn at(&self, name: &FieldPath) -> FieldPath {
        self.base.join(name)
    }

    /// Whether the value is of the type.
    fn sort(&mut self, node: &Node, value: &Doc, name: &FieldPath) -> bool {
        if value.is_null() && node.is_nullable || node.sort.fits(value) {
            return true;
        }
        let found = value.kind().name();
        let detail = format!(
            "{name} in body must be of type {}: {}",
            node.sort.name(),
            quote(found)
        );
        self.errors.type_invalid(&self.at(name), found, detail);
        if node.sort == Sort::Integer && value.as_f64().is_some() {
            let detail =
                format!("Checked value must be of type integer (default format) in {name}");
            self.errors.invalid(&FieldPath::new("<nil>"), "", detail);
        }
        false
    }

    fn general(&mut self, detail: String) {
        self.errors.invalid(&FieldPath::new("<nil>"), "", detail);
    }

    /// The errors of a value under another schema.
    fn trial(&self, node: &Node, value: &Doc, name: &FieldPath) -> FieldErrors {
        let mut errors = FieldErrors::default();
        let mut validation = Validation {
            errors: &mut errors,
            base: self.base.clone(),
        };
        validation.run(node, value, None, name);
        errors
    }

    fn combinations(&mut self, checks: &Checks, value: &Doc, name: &FieldPath) {
        if !checks.any_of.is_empty() {
            self.any_of(checks, value, name);
        }
        if !checks.one_of.is_empty() {
            self.one_of(checks, value, name);
        }
        if !checks.all_of.is_empty() {
            self.all_of(checks, value, name);
        }
        if let Some(not) = checks.not.as_deref()
            && self.trial(not, value, name).is_empty()
        {
            self.general(format!("\"{name}\" must not validate the schema (not)"));
        }
    }

    fn any_of(&mut self, checks: &Checks, value: &Doc, name: &FieldPath) {
        let mut first = None;
        for part in &checks.any_of {
            let errors = self.trial(part, value, name);
            if errors.is_empty() {
                return;
            }
            first.get_or_insert(errors);
        }
        self.general(format!(
            "\"{name}\" must validate at least one schema (anyOf)"
        ));
        if let Some(first) = first {
            self.errors.append(first);
        }
    }

    fn one_of(&mut self, checks: &Checks, value: &Doc, name: &FieldPath) {
        let trials: Vec<FieldErrors> = checks
            .one_of
            .iter()
            .map(|part| self.trial(part, value, name))
            .collect();
        let valid = trials.iter().filter(|errors| errors.is_empty()).count();
        if valid == 1 {
            return;
        }
        let found = match valid {
            0 => "Found none valid".to_owned(),
            count => format!("Found {count} valid alternatives"),
        };
        self.general(format!(
            "\"{name}\" must validate one and only one schema (oneOf). {found}"
        ));
        if valid == 0
            && let Some(first) = trials.into_iter().next()
        {
            self.errors.append(first);
        }
    }

    fn all_of(&mut self, checks: &Checks, value: &Doc, name: &FieldPath) {
        let mut valid = 0;
        for part in &checks.all_of {
            let errors = self.trial(part, value, name);
            valid += usize::from(errors.is_empty());
            self.errors.append(errors);
        }
        if valid == checks.all_of.len() {
            return;
        }
        let none = if valid == 0 { ". None validated" } else { "" };
        self.general(format!(
            "\"{name}\" must validate all the schemas (allOf){none}"
        ));
    }

    fn text(&mut self, checks: &Checks, text: &str, name: &FieldPath) {
        let path = self.at(name);
        let count = text.chars().count();
        match checks.length {
            (_, Some(max)) if count > max => self.errors.too_long(&path, max),
            (Some(min), _) if count < min => {
                self.errors.invalid(
                    &path,
                    text,
                    format!("{name} in body should be at least {min} chars long"),
                );
            }
            _ => {
                if let Some((pattern, regex)) = &checks.pattern
                    && !regex.is_match(text)
                {
                    self.errors.invalid(
                        &path,
                        text,
                        format!("{name} in body should match '{pattern}'"),
                    );
                }
            }
        }
        if let Some(format) = checks.format
            && !(format.is_valid)(text)
        {
            let detail = format!(
                "{name} in body must be of type {}: {}",
                format.name,
                quote(text)
            );
            self.errors.type_invalid(&path, text, detail);
        }
    }

    fn number(&mut self, checks: &Checks, value: &Doc, name: &FieldPath) {
        let path = self.at(name);
        let number = value.as_f64().unwrap_or(0.0);
        if let Some(factor) = &checks.multiple_of
            && !is_multiple(value, factor)
        {
            self.errors.invalid(
                &path,
                value,
                format!("{name} in body should be a multiple of {factor}"),
            );
        }
        if let Some((bound, is_exclusive)) = &checks.maximum {
            let limit = bound.as_f64().unwrap_or(f64::MAX);
            if number > limit || (*is_exclusive && number == limit) {
                let words = if *is_exclusive {
                    "less than"
                } else {
                    "less than or equal to"
                };
                self.errors.invalid(
                    &path,
                    value,
                    format!("{name} in body should be {words} {bound}"),
                );
            }
        }
        if let Some((bound, is_exclusive)) = &checks.minimum {
            let limit = bound.as_f64().unwrap_or(f64::MIN);
            if number < limit || (*is_exclusive && number == limit) {
                let words = if *is_exclusive {
                    "greater than"
                } else {
                    "greater than or equal to"
                };
                self.errors.invalid(
                    &path,
                    value,
                    format!("{name} in body should be {words} {bound}"),
                );
            }
        }
    }

    fn array(&mut self, node: &Node, items: &[Doc], old: Option<&Doc>, name: &FieldPath) {
        if let Some(part) = node.items.as_deref() {
            let before = Correlation::of(node, old);
            for (at, item) in items.iter().enumerate() {
                self.run(part, item, before.item(item), &name.index(at));
            }
        }
        let Some(checks) = node.checks.as_deref() else {
            return;
        };
        let path = self.at(name);
        if let Some(min) = checks.items.0.filter(|min| items.len() < *min) {
            self.errors.invalid(
                &path,
                items.len(),
                format!("{name} in body should have at least {min} items"),
            );
        }
        if let Some(max) = checks.items.1.filter(|max| items.len() > *max) {
            self.errors.too_many(&path, items.len(), max);
        }
    }

    fn object(&mut self, node: &Node, object: &Object, old: Option<&Doc>, name: &FieldPath) {
        if let Some(checks) = node.checks.as_deref() {
            let path = self.at(name);
            if let Some(min) = checks.entries.0.filter(|min| object.len() < *min) {
                let detail = format!("{name} in body should have at least {min} properties");
                return self.errors.invalid(&path, object.len(), detail);
            }
            if let Some(max) = checks.entries.1.filter(|max| object.len() > *max) {
                return self.errors.too_many(&path, object.len(), max);
            }
            for key in checks
                .required
                .iter()
                .filter(|key| !object.contains_key(key))
            {
                self.errors.required(&path.child(key), "");
            }
        }
        for (key, value) in object.iter() {
            let Some(part) = node.field(key) else {
                continue;
            };
            let name = name.child(key);
            self.run(part, value, old.and_then(|old| old.get(key)), &name);
        }
    }

    fn choices(&mut self, checks: &Checks, value: &Doc, name: &FieldPath) {
        if checks.choices.is_empty() || checks.choice_set.contains(value) {
            return;
        }
        let names: Vec<String> = checks
            .choices
            .iter()
            .map(|choice| {
                choice
                    .as_str()
                    .map_or_else(|| choice.to_string(), str::to_owned)
            })
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.errors
            .not_supported_shown(&self.at(name), value, &names);
    }

    /// Finds whole objects inside that do not say what they are.
    pub(crate) fn embedded(&mut self, node: &Node, value: &Doc, path: &FieldPath) {
        match value.kind() {
            Kind::Object(object) => {
                if node.is_embedded {
                    for key in ["apiVersion", "kind"] {
                        if object
                            .get(key)
                            .and_then(Doc::as_str)
                            .is_none_or(str::is_empty)
                        {
                            self.errors.required(&path.child(key), "");
                        }
                    }
                }
                for (key, value) in object.iter() {
                    if let Some(part) = node.field(key) {
                        self.embedded(part, value, &path.child(key));
                    }
                }
            }
            Kind::Array(items) => {
                if let Some(part) = node.items.as_deref() {
                    for (at, item) in items.iter().enumerate() {
                        self.embedded(part, item, &path.index(at));
                    }
                }
            }
            _ => {}
        }
    }

    /// Finds items of sets and keyed lists that are there twice.
    pub(crate) fn uniqueness(&mut self, node: &Node, value: &Doc, path: &FieldPath) {
        match value.kind() {
            Kind::Object(object) => {
                for (key, value) in object.iter() {
                    let part = match (node.property(key), node.values.as_deref()) {
                        (Some(part), _) => (part, path.child(key)),
                        (None, Some(part)) => (part, path.key(key)),
                        (None, None) => continue,
                    };
                    self.uniqueness(part.0, value, &part.1);
                }
            }
            Kind::Array(items) => {
                self.unique_items(&node.list, items, path);
                if let Some(part) = node.items.as_deref() {
                    for (at, item) in items.iter().enumerate() {
                        self.uniqueness(part, item, &path.index(at));
                    }
                }
            }
            _ => {}
        }
    }

    fn unique_items(&mut self, list: &List, items: &[Doc], path: &FieldPath) {
        let identity = |item: &Doc| match list {
            List::Atomic => None,
            List::Set => Some(item.clone()),
            List::Map(keys) => {
                let keyed = keys
                    .iter()
                    .filter_map(|key| Some((key.as_str().into(), item.get(key)?.clone())));
                Some(Object::new(keyed.collect()).into())
            }
        };
        let mut seen = std::collections::HashSet::new();
        for (at, item) in items.iter().enumerate() {
            let Some(identity) = identity(item) else {
                return;
            };
            if matches!(list, List::Map(_)) && item.as_object().is_none() {
                let why = "must be an object for an array of list-type map";
                self.errors.invalid(&path.index(at), item, why);
                continue;
            }
            if !seen.insert(identity.clone()) {
                self.errors.duplicate(&path.index(at), identity);
            }
        }
    }
}

/// Whether a number is a whole multiple of another, counted in decimals.
fn is_multiple(value: &Doc, factor: &Doc) -> bool {
    if let (Some(value), Some(factor)) = (value.as_i64(), factor.as_i64()) {
        return factor != 0 && value % factor == 0;
    }
    let (Ok(exact), Some(value), Some(factor)) = (
        value.to_string().parse::<Quantity>(),
        value.as_f64(),
        factor.as_f64(),
    ) else {
        return false;
    };
    let quotient = value / factor;
    exact.is_zero() || (quotient - quotient.round()).abs() < 1e-9
}
