//! JSON and YAML texts.

use serde_json::Value;
use windlass_core::{Doc, Duplicates, ParseErrorKind, ParseOptions, Parser, Prune};

use crate::{Outcome, model, work};

/// How deep serde_json reads.
const SERDE_DEPTH_MAX: usize = 126;
/// Bytes of JSON that one byte of YAML may become, through aliases.
const ALIAS_FACTOR_MAX: usize = 256;
/// Bytes of JSON that any YAML may become.
const ALIAS_BYTES_FREE: usize = 1 << 20;

/// JSON text: accepted if and only if serde_json accepts it, with the same value.
///
/// The stated differences: keys that stand twice, whole numbers of more than 64 bits, `-0`, which is
/// a whole number here, and nesting deeper than serde_json reads.
pub fn json(data: &[u8]) -> Outcome {
    work::bounded(work::PURE, data.len(), || {
        let strict = Doc::parse(data);
        let options = ParseOptions {
            duplicates: Duplicates::KeepLast,
            ..ParseOptions::default()
        };
        let lenient = Parser::new(options).parse(data);
        let reference = serde_json::from_slice::<Value>(data);
        match (&lenient, &reference) {
            (Ok(parsed), Ok(tree)) => {
                let (ours, theirs) = (model::plain(&parsed.doc), tree.clone());
                assert_eq!(
                    unsigned_zeros(ours),
                    unsigned_zeros(theirs),
                    "values differ"
                );
            }
            (Ok(parsed), Err(error)) => {
                let depth = depth_of(&parsed.doc);
                assert!(depth > SERDE_DEPTH_MAX, "serde_json refuses: {error}");
            }
            (Err(error), Ok(_)) => {
                let is_large = matches!(error.kind(), ParseErrorKind::NumberRange);
                assert!(is_large, "serde_json accepts: {error}");
            }
            (Err(_), Err(_)) => {}
        }
        match (&strict, &lenient) {
            (Ok(doc), Ok(parsed)) => {
                assert_eq!(doc, &parsed.doc);
                assert!(parsed.duplicates.is_empty(), "strict and lenient differ");
            }
            (Ok(_), Err(error)) => panic!("only strict accepts: {error}"),
            (Err(_), Ok(parsed)) => assert!(!parsed.duplicates.is_empty(), "only lenient accepts"),
            (Err(_), Err(_)) => {}
        }
        lenient.map_or(Outcome::Refused, |parsed| printed(&parsed.doc))
    })
}

/// The tree with 0 in place of -0.0.
fn unsigned_zeros(mut tree: Value) -> Value {
    match &mut tree {
        Value::Number(number) if number.as_f64() == Some(0.0) => Value::from(0),
        Value::Array(items) => items.drain(..).map(unsigned_zeros).collect(),
        Value::Object(fields) => {
            let fields = std::mem::take(fields).into_iter();
            fields
                .map(|(key, value)| (key, unsigned_zeros(value)))
                .collect()
        }
        _ => tree,
    }
}

/// Printing and parsing again gives the same document.
fn printed(doc: &Doc) -> Outcome {
    let text = doc.to_json();
    assert_eq!(Doc::parse(&text).as_ref(), Ok(doc), "printed");
    let pretty = doc.to_json_pretty();
    assert_eq!(Doc::parse(pretty.as_bytes()).as_ref(), Ok(doc), "pretty");
    let pruned = ParseOptions::pruning(Prune::managed_fields().and("spec.name"));
    let prune = pruned.prune.clone();
    let parsed = Doc::parse_with(&text, &pruned);
    assert_eq!(parsed, Ok(prune.apply(doc)), "pruned while parsed or after");
    assert!(doc.diff(doc).is_empty());
    Outcome::Accepted
}

fn depth_of(doc: &Doc) -> usize {
    let fields = doc
        .as_object()
        .into_iter()
        .flat_map(|object| object.values());
    let inner = doc.items().iter().chain(fields).map(depth_of).max();
    let is_container = doc.as_array().is_some() || doc.as_object().is_some();
    inner.unwrap_or(0) + usize::from(is_container)
}

/// YAML text: printing and parsing again gives the same documents, the parser that allows keys to
/// stand twice agrees with the one that does not, and aliases multiply nothing without a limit.
pub fn yaml(data: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(data) else {
        return Outcome::Refused;
    };
    work::bounded(work::PURE, data.len(), || {
        let strict = Doc::parse_yaml(text);
        let lenient = Doc::parse_yaml_with_duplicates(text);
        match (&strict, &lenient) {
            (Ok(docs), Ok((same, duplicates))) => {
                assert_eq!(docs, same);
                assert!(duplicates.is_empty());
            }
            (Ok(_), Err(error)) => panic!("only strict accepts: {error}"),
            (Err(_), Ok((_, duplicates))) => assert!(!duplicates.is_empty()),
            (Err(_), Err(_)) => {}
        }
        let Ok((docs, _)) = lenient else {
            return Outcome::Refused;
        };
        let allowed = ALIAS_BYTES_FREE + ALIAS_FACTOR_MAX * data.len();
        for doc in &docs {
            let json = doc.to_json();
            assert!(json.len() <= allowed, "{} bytes of JSON", json.len());
            let Ok(printed) = doc.to_yaml() else {
                panic!("a document does not print as YAML: {doc}");
            };
            let again = Doc::parse_yaml(&printed);
            let again = again.unwrap_or_else(|error| panic!("{error}\n{printed}"));
            assert_eq!(again.first(), Some(doc), "printed:\n{printed}");
        }
        Outcome::Accepted
    })
}
