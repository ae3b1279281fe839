//! Schemas of custom resources, compiled once into what every write needs.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use regex::Regex;
use windlass_core::{Doc, Kind, Memo, Str};

use super::formats::Format;
use super::rules::Rule;

/// How deep a schema may nest.
pub(crate) const DEPTH_LIMIT: usize = 100;

/// The schema at one place of an object.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) sort: Sort,
    pub(crate) is_nullable: bool,
    /// Whether fields that are not named stay.
    pub(crate) keeps_unknown: bool,
    /// Whether this is a whole object with a kind and metadata of its own.
    pub(crate) is_embedded: bool,
    /// Whether there is such an object here or below.
    pub(crate) holds_embedded: bool,
    /// By name, in order.
    pub(crate) properties: Vec<(Str, Self)>,
    /// What the values of a map are.
    pub(crate) values: Option<Box<Self>>,
    /// Whether any further field is allowed, as `additionalProperties: true` says.
    pub(crate) allows_any: bool,
    pub(crate) items: Option<Box<Self>>,
    pub(crate) default: Option<Doc>,
    /// Whether there is a default here or below.
    pub(crate) has_defaults: bool,
    pub(crate) list: List,
    /// Whether a map is one value when two authors write it.
    pub(crate) is_atomic: bool,
    pub(crate) checks: Option<Box<Checks>>,
    pub(crate) rules: Vec<Rule>,
    /// Whether there are rules here or below.
    pub(crate) has_rules: bool,
    /// How rules see the value.
    pub(crate) decl: Option<Arc<windlass_cel::Decl>>,
    /// The smallest JSON that a value can be, in bytes; known where rules are.
    pub(crate) smallest: u64,
}

/// The JSON type of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    #[default]
    Any,
    Object,
    Array,
    Text,
    Integer,
    Number,
    Bool,
    IntOrText,
}

/// How the items of a list are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum List {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// What a value of the right type must fulfil.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub(crate) choices: Vec<Doc>,
    /// The same, to find one of many.
    pub(crate) choice_set: HashSet<Doc>,
    pub(crate) pattern: Option<(String, Regex)>,
    pub(crate) format: Option<&'static Format>,
    pub(crate) minimum: Option<(Doc, bool)>,
    pub(crate) maximum: Option<(Doc, bool)>,
    pub(crate) multiple_of: Option<Doc>,
    /// Smallest and largest number of characters.
    pub(crate) length: (Option<usize>, Option<usize>),
    /// Smallest and largest number of items.
    pub(crate) items: (Option<usize>, Option<usize>),
    /// Smallest and largest number of entries.
    pub(crate) entries: (Option<usize>, Option<usize>),
    pub(crate) required: Vec<Str>,
    pub(crate) all_of: Vec<Node>,
    pub(crate) any_of: Vec<Node>,
    pub(crate) one_of: Vec<Node>,
    pub(crate) not: Option<Box<Node>>,
}

impl Sort {
    /// The word in schemas and messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::Object => "object",
            Self::Array => "array",
            Self::Text => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Bool => "boolean",
            Self::IntOrText => "integer,string",
        }
    }

    fn parse(text: &str) -> Self {
        match text {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::Text,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Bool,
            _ => Self::Any,
        }
    }

    /// Whether a value is of this type. Whole numbers written with a fraction are integers.
    pub(crate) fn fits(self, value: &Doc) -> bool {
        let is_whole = |value: &Doc| match value.kind() {
            Kind::Int(_) | Kind::UInt(_) => true,
            Kind::Float(number) => number.fract() == 0.0,
            _ => false,
        };
        match self {
            Self::Any => true,
            Self::Object => value.as_object().is_some(),
            Self::Array => value.as_array().is_some(),
            Self::Text => value.as_str().is_some(),
            Self::Integer => is_whole(value),
            Self::Number => value.as_f64().is_some(),
            Self::Bool => value.as_bool().is_some(),
            Self::IntOrText => value.as_str().is_some() || is_whole(value),
        }
    }
}

impl Node {
    /// Compiles a schema. Whatever validation refuses is left out here.
    fn compile(schema: &Doc) -> Self {
        let mut root = Self::compile_at(schema, 0);
        super::decl::declare(&mut root, true);
        super::rules::compile(&mut root);
        root
    }

    fn compile_at(schema: &Doc, depth: usize) -> Self {
        if depth > DEPTH_LIMIT {
            return Self::default();
        }
        let below = |part: &Doc| Self::compile_at(part, depth + 1);
        let flag = |name: &str| schema.get(name).and_then(Doc::as_bool).unwrap_or(false);
        let is_int_or_text = flag("x-kubernetes-int-or-string");
        let mut node = Self {
            sort: if is_int_or_text {
                Sort::IntOrText
            } else {
                Sort::parse(schema.str_at("/type"))
            },
            is_nullable: flag("nullable"),
            keeps_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            is_embedded: flag("x-kubernetes-embedded-resource"),
            properties: entries(schema.at("/properties"))
                .map(|(key, part)| (key.clone(), below(part)))
                .collect(),
            values: schema
                .get("additionalProperties")
                .filter(|part| part.as_object().is_some())
                .map(|part| Box::new(below(part))),
            allows_any: flag("additionalProperties"),
            items: schema
                .get("items")
                .filter(|part| part.as_object().is_some())
                .map(|part| Box::new(below(part))),
            default: schema.get("default").cloned(),
            list: list_of(schema),
            is_atomic: schema.str_at("/x-kubernetes-map-type") == "atomic",
            rules: Rule::read(schema),
            ..Self::default()
        };
        node.checks = Checks::compile(schema, is_int_or_text, below);
        node.sum_up();
        node
    }

    /// Notes what is below.
    fn sum_up(&mut self) {
        let children = || {
            let properties = self.properties.iter().map(|(_, node)| node);
            properties
                .chain(self.values.as_deref())
                .chain(self.items.as_deref())
        };
        self.holds_embedded = self.is_embedded || children().any(|node| node.holds_embedded);
        self.has_defaults = self.default.is_some() || children().any(|node| node.has_defaults);
        self.has_rules = !self.rules.is_empty() || children().any(|node| node.has_rules);
    }

    /// The schema of a named field.
    pub(crate) fn property(&self, name: &str) -> Option<&Self> {
        let found = self
            .properties
            .binary_search_by(|(key, _)| key.as_str().cmp(name));
        found.ok().map(|at| &self.properties[at].1)
    }

    /// The schema of a field or of an entry of a map.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        self.property(name).or(self.values.as_deref())
    }
}

/// How many compiled schemas are remembered: a definition is compiled when it is validated, and
/// again when it is served, and the same ones come back with every restart of a test.
const COMPILED_LIMIT: usize = 64;

/// A schema and what it was compiled to.
type Compiled = (Doc, Arc<Node>);

/// A schema, compiled unless it was a moment ago.
pub(crate) fn compiled(schema: &Doc) -> Arc<Node> {
    static COMPILED: Mutex<Vec<Compiled>> = Mutex::new(Vec::new());
    if let Some((_, node)) = COMPILED.lock().iter().find(|(known, _)| known == schema) {
        return Arc::clone(node);
    }
    let node = Arc::new(Node::compile(schema));
    let mut compiled = COMPILED.lock();
    if compiled.len() >= COMPILED_LIMIT {
        compiled.remove(0);
    }
    compiled.push((schema.clone(), Arc::clone(&node)));
    node
}

fn entries(map: &Doc) -> impl Iterator<Item = (&Str, &Doc)> {
    map.as_object().into_iter().flat_map(|object| object.iter())
}

fn list_of(schema: &Doc) -> List {
    match schema.str_at("/x-kubernetes-list-type") {
        "set" => List::Set,
        "map" => {
            let keys = schema.at("/x-kubernetes-list-map-keys").items();
            let keys = keys.iter().filter_map(Doc::as_str);
            List::Map(keys.map(str::to_owned).collect())
        }
        _ => List::Atomic,
    }
}

impl Checks {
    fn compile(
        schema: &Doc,
        is_int_or_text: bool,
        below: impl Fn(&Doc) -> Node,
    ) -> Option<Box<Self>> {
        let size = |name: &str| {
            schema
                .get(name)
                .and_then(Doc::as_u64)
                .and_then(|size| usize::try_from(size).ok())
        };
        let number = |name: &str, exclusive: &str| {
            let bound = schema.get(name).filter(|bound| bound.as_f64().is_some())?;
            Some((
                bound.clone(),
                schema
                    .get(exclusive)
                    .and_then(Doc::as_bool)
                    .unwrap_or(false),
            ))
        };
        let parts = |name: &str| -> Vec<Node> {
            let is_type_choice = is_int_or_text && name == "anyOf";
            schema
                .get(name)
                .filter(|_| !is_type_choice)
                .map(|parts| parts.items().iter().map(&below).collect())
                .unwrap_or_default()
        };
        let pattern = schema
            .get("pattern")
            .and_then(Doc::as_str)
            .filter(|pattern| !pattern.is_empty());
        let checks = Self {
            choices: schema.at("/enum").items().to_vec(),
            choice_set: schema.at("/enum").items().iter().cloned().collect(),
            pattern: pattern.and_then(|text| Some((text.to_owned(), compile_pattern(text).ok()?))),
            format: Format::named(schema.str_at("/format")),
            minimum: number("minimum", "exclusiveMinimum"),
            maximum: number("maximum", "exclusiveMaximum"),
            multiple_of: schema.get("multipleOf").cloned(),
            length: (size("minLength"), size("maxLength")),
            items: (size("minItems"), size("maxItems")),
            entries: (size("minProperties"), size("maxProperties")),
            required: schema
                .at("/required")
                .items()
                .iter()
                .filter_map(Doc::shared_str)
                .collect(),
            all_of: parts("allOf"),
            any_of: parts("anyOf"),
            one_of: parts("oneOf"),
            not: schema
                .get("not")
                .filter(|part| part.as_object().is_some())
                .map(|part| Box::new(below(part))),
        };
        checks.is_any().then(|| Box::new(checks))
    }

    /// Whether there is anything to check.
    fn is_any(&self) -> bool {
        let is_sized = [self.length, self.items, self.entries]
            .iter()
            .any(|(min, max)| min.is_some() || max.is_some());
        is_sized
            || !self.choices.is_empty()
            || self.pattern.is_some()
            || self.format.is_some()
            || self.minimum.is_some()
            || self.maximum.is_some()
            || self.multiple_of.is_some()
            || !self.required.is_empty()
            || !(self.all_of.is_empty() && self.any_of.is_empty() && self.one_of.is_empty())
            || self.not.is_some()
    }
}

/// The largest compiled pattern.
const PATTERN_BYTES_LIMIT: usize = 1 << 20;
/// Patterns that a thread remembers: definitions say the same one, such as that of quantities, over
/// and over.
const PATTERNS_LIMIT: usize = 32;

thread_local! {
    static PATTERNS: RefCell<Memo<String, Regex>> = RefCell::new(Memo::new(PATTERNS_LIMIT));
}

/// A pattern of a schema.
pub(crate) fn compile_pattern(text: &str) -> Result<Regex, regex::Error> {
    let text = text.to_owned();
    if let Some(known) = PATTERNS.with_borrow(|known| known.get(&text)) {
        return Ok(known);
    }
    let pattern = regex::RegexBuilder::new(&text)
        .size_limit(PATTERN_BYTES_LIMIT)
        .build()?;
    PATTERNS.with_borrow_mut(|known| known.put(text, pattern.clone()));
    Ok(pattern)
}
