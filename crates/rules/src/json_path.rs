//! Paths into objects, as printer columns write them: `.status.conditions[?(@.type=="Ready")].status`.

use windlass_core::{Doc, Kind};

/// The most values that a path may lead to.
const RESULTS_LIMIT: usize = 1_000;

/// A path.
#[derive(Clone, Debug)]
pub struct JsonPath(Vec<Step>);

#[derive(Clone, Debug)]
enum Step {
    Field(String),
    Index(i64),
    Every,
    /// Items whose value at a path compares with a text.
    Where(Box<JsonPath>, bool, String),
    /// Items that have a value at a path.
    WhereSet(Box<JsonPath>),
}

impl JsonPath {
    /// Reads a path; `None` if it is not one that columns may have.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim();
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('[') {
                let end = closing(after)?;
                steps.push(bracket(&after[..end])?);
                rest = &after[end + 1..];
            } else {
                let after = rest.strip_prefix('.').unwrap_or(rest);
                let end = field_end(after);
                if end > 0 {
                    steps.push(match &after[..end] {
                        "*" => Step::Every,
                        name => Step::Field(name.replace("\\.", ".")),
                    });
                } else if !after.starts_with('[') {
                    return None;
                }
                rest = &after[end..];
            }
        }
        (!steps.is_empty()).then_some(Self(steps))
    }

    /// The values a path leads to.
    #[must_use]
    pub fn find<'a>(&self, doc: &'a Doc) -> Vec<&'a Doc> {
        let mut found = vec![doc];
        for step in &self.0 {
            found = found
                .into_iter()
                .flat_map(|doc| step.follow(doc))
                .take(RESULTS_LIMIT)
                .collect();
        }
        found
    }

    /// The JSON pointer of a path that only names fields.
    #[must_use]
    pub fn pointer(&self) -> Option<String> {
        let mut pointer = String::new();
        for step in &self.0 {
            let Step::Field(name) = step else {
                return None;
            };
            pointer.push('/');
            pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        }
        Some(pointer)
    }
}

/// Where a field name ends; a dot after a backslash belongs to it.
fn field_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    (0..bytes.len())
        .find(|at| match bytes[*at] {
            b'[' => true,
            b'.' => *at == 0 || bytes[*at - 1] != b'\\',
            _ => false,
        })
        .unwrap_or(bytes.len())
}

/// Where the bracket ends that is open; quoted brackets do not count.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, ']') => return Some(at),
            (None, _) => {}
        }
    }
    None
}

fn bracket(text: &str) -> Option<Step> {
    let text = text.trim();
    if text == "*" {
        return Some(Step::Every);
    }
    if let Some(condition) = text
        .strip_prefix("?(")
        .and_then(|text| text.strip_suffix(')'))
    {
        return filter(condition);
    }
    if let Some(name) = unquoted(text) {
        return Some(Step::Field(name.to_owned()));
    }
    text.parse().ok().map(Step::Index)
}

fn filter(condition: &str) -> Option<Step> {
    for (operator, is_equal) in [("==", true), ("!=", false)] {
        if let Some((left, right)) = condition.split_once(operator) {
            let path = JsonPath::parse(left.trim().strip_prefix('@')?)?;
            let value = unquoted(right.trim()).unwrap_or(right.trim());
            return Some(Step::Where(Box::new(path), is_equal, value.to_owned()));
        }
    }
    Some(Step::WhereSet(Box::new(JsonPath::parse(
        condition.trim().strip_prefix('@')?,
    )?)))
}

fn unquoted(text: &str) -> Option<&str> {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

impl Step {
    fn follow<'a>(&self, doc: &'a Doc) -> Vec<&'a Doc> {
        match (self, doc.kind()) {
            (Self::Field(name), Kind::Object(_)) => doc.get(name).into_iter().collect(),
            (Self::Every, Kind::Array(_)) => doc.items().iter().collect(),
            (Self::Every, Kind::Object(object)) => object.values().iter().collect(),
            (Self::Index(index), Kind::Array(items)) => {
                let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let index = if *index < 0 { length + index } else { *index };
                usize::try_from(index)
                    .ok()
                    .and_then(|index| doc.item(index))
                    .into_iter()
                    .collect()
            }
            (Self::Where(path, is_equal, wanted), Kind::Array(_)) => {
                let text = |doc: &Doc| doc.as_str().map_or_else(|| doc.to_string(), str::to_owned);
                let fits = |item: &&Doc| {
                    path.find(item)
                        .iter()
                        .any(|value| (text(value) == *wanted) == *is_equal)
                };
                doc.items().iter().filter(fits).collect()
            }
            (Self::WhereSet(path), Kind::Array(_)) => doc
                .items()
                .iter()
                .filter(|item| !path.find(item).is_empty())
                .collect(),
            _ => Vec::new(),
        }
    }
}
