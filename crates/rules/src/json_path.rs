//! Paths into objects, as printer columns write them: `.status.conditions[?(@.type=="Ready")].status`.

use windlass_core::{Doc, Kind};

/// The most values that a path may lead to.
const RESULTS_LIMIT: usize = 1_000;
/// The levels below a document that a path with two dots looks at.
const DEPTH_LIMIT: usize = 64;

/// A path.
#[derive(Clone, Debug)]
pub struct JsonPath(Vec<Step>);

#[derive(Clone, Debug)]
enum Step {
    Field(String),
    Index(i64),
    /// Items from one index to before another, every so many.
    Slice(Option<i64>, Option<i64>, usize),
    /// The values of several steps, one after the other.
    Union(Vec<Self>),
    /// The values of a field in everything below.
    Below(String),
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
            } else if let Some(after) = rest.strip_prefix("..") {
                let end = field_end(after);
                steps.push(Step::Below(after[..end].replace("\\.", ".")));
                rest = &after[end..];
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
    if text.contains(',') {
        let parts: Option<Vec<Step>> = text.split(',').map(bracket).collect();
        return parts.map(Step::Union);
    }
    if let Some(name) = unquoted(text) {
        return Some(Step::Field(name.to_owned()));
    }
    match text {
        // kubectl's parser reads an empty index as the first one.
        "" => Some(Step::Index(0)),
        text if text.contains(':') => slice(text),
        text => text.parse().ok().map(Step::Index),
    }
}

/// Indexes between colons: from, to and the width of a step.
fn slice(text: &str) -> Option<Step> {
    let mut parts = text.split(':').map(str::trim);
    let mut number = || match parts.next() {
        None | Some("") => Some(None),
        Some(part) => part.parse::<i64>().ok().map(Some),
    };
    let (start, end, step) = (number()?, number()?, number()?);
    let step = usize::try_from(step.unwrap_or(1)).ok()?;
    (parts.next().is_none() && step > 0).then_some(Step::Slice(start, end, step))
}

/// The items of a slice; none if it begins or ends outside of the list.
fn sliced(items: &[Doc], start: Option<i64>, end: Option<i64>, step: usize) -> Vec<&Doc> {
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let place = |index: i64| {
        let index = if index < 0 { length + index } else { index };
        usize::try_from(index).ok()
    };
    let (start, end) = (place(start.unwrap_or(0)), place(end.unwrap_or(length)));
    let range = start
        .zip(end)
        .and_then(|(start, end)| items.get(start..end));
    range.unwrap_or_default().iter().step_by(step).collect()
}

/// The values of a field in a document and everything below it.
fn below<'a>(doc: &'a Doc, name: &str, depth: usize, found: &mut Vec<&'a Doc>) {
    if depth == DEPTH_LIMIT || found.len() >= RESULTS_LIMIT {
        return;
    }
    found.extend(doc.get(name));
    let children = match doc.kind() {
        Kind::Object(object) => object.values(),
        Kind::Array(_) => doc.items(),
        _ => &[],
    };
    for child in children {
        below(child, name, depth + 1, found);
    }
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
            (Self::Slice(start, end, step), Kind::Array(_)) => {
                sliced(doc.items(), *start, *end, *step)
            }
            (Self::Union(steps), _) => steps.iter().flat_map(|step| step.follow(doc)).collect(),
            (Self::Below(name), _) => {
                let mut found = Vec::new();
                below(doc, name, 0, &mut found);
                found
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

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::doc;

    #[test]
    fn paths_are_read_as_kubectl_reads_them() {
        let object = doc!({ "spec": {
            "http": [{ "x": 1, "y": { "x": 4 } }, { "x": 2 }, { "x": 3 }], "name": "a"
        } });
        let found = |path: &str| -> Vec<String> {
            let path = JsonPath::parse(path).unwrap();
            path.find(&object).iter().map(|it| it.to_string()).collect()
        };
        assert_eq!(
            found(".spec.http[].x"),
            ["1"],
            "an empty index is the first one"
        );
        assert_eq!(found(".spec.http[*].x"), ["1", "2", "3"]);
        assert_eq!(found(".spec.http[0:2].x"), ["1", "2"]);
        assert_eq!(found(".spec.http[-2:].x"), ["2", "3"]);
        assert_eq!(found(".spec.http[::2].x"), ["1", "3"]);
        assert_eq!(found(".spec.http[0,2].x"), ["1", "3"]);
        assert_eq!(found(".spec['name','http'][]"), [r#"{"x":1,"y":{"x":4}}"#]);
        assert_eq!(found("..x"), ["1", "4", "2", "3"]);
        assert!(found(".spec.http[0:9].x").is_empty());
        assert!(JsonPath::parse(".spec.http[a:b]").is_none());
    }
}
