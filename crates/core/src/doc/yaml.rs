//! YAML in and out.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use super::Doc;

/// Text that is not YAML, or not YAML that JSON can hold.
#[derive(Debug, thiserror::Error)]
#[error("invalid YAML: {0}")]
pub struct YamlError(String);

/// A key that stands twice in one mapping of a YAML text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlDuplicate {
    /// The line of the later value, from 1.
    pub line: u64,
    /// The key.
    pub key: String,
}

impl Doc {
    /// Reads every document of a YAML text; empty documents are left out.
    pub fn parse_yaml(text: &str) -> Result<Vec<Self>, YamlError> {
        let docs: Vec<Self> =
            serde_saphyr::from_multiple(text).map_err(|error| YamlError::of(&error))?;
        Ok(without_empty(docs))
    }

    /// Reads every document of a YAML text in which keys may stand twice: the last value counts,
    /// and every such key is named.
    pub fn parse_yaml_with_duplicates(
        text: &str,
    ) -> Result<(Vec<Self>, Vec<YamlDuplicate>), YamlError> {
        let refused = match serde_saphyr::from_multiple::<Self>(text) {
            Ok(docs) => return Ok((without_empty(docs), Vec::new())),
            Err(refused) => refused,
        };
        // To read it again is worth the time only if keys that stand twice are what is wrong.
        let serde_saphyr::Error::DuplicateMappingKey { key, location } = refused.without_snippet()
        else {
            return Err(YamlError::of(&refused));
        };
        let options = || serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
        let docs = serde_saphyr::from_multiple_with_options::<Self>(text, options());
        let found = serde_saphyr::from_multiple_with_options::<Duplicates>(text, options());
        // What is wrong in other ways as well is refused as usual.
        let (Ok(docs), Ok(found)) = (docs, found) else {
            return Err(YamlError::of(&refused));
        };
        let found: Vec<_> = found.into_iter().flat_map(|found| found.0).collect();
        if !found.is_empty() {
            return Ok((without_empty(docs), found));
        }
        // Of keys that are whole numbers the library shows only the last: 1 and +1 are one key.
        let (line, key) = (location.line(), key.clone().unwrap_or_default());
        Ok((without_empty(docs), vec![YamlDuplicate { line, key }]))
    }

    /// The document as YAML.
    pub fn to_yaml(&self) -> Result<String, YamlError> {
        serde_saphyr::to_string(self).map_err(|error| YamlError::of(&error))
    }
}

fn without_empty(docs: Vec<Doc>) -> Vec<Doc> {
    docs.into_iter().filter(|doc| !doc.is_null()).collect()
}

impl YamlError {
    /// The first line says what and where; the rest draws it.
    fn of(error: &impl ToString) -> Self {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        Self(line.strip_prefix("error: ").unwrap_or(line).to_owned())
    }
}

/// The keys that stand twice in one YAML value, inner ones before the key that holds them.
struct Duplicates(Vec<YamlDuplicate>);

impl<'de> Deserialize<'de> for Duplicates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Finder)
    }
}

struct Finder;

impl<'de> Visitor<'de> for Finder {
    type Value = Duplicates;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Duplicates, E> {
        Ok(Duplicates(Vec::new()))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Duplicates, E> {
        Ok(Duplicates(Vec::new()))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Duplicates, E> {
        Ok(Duplicates(Vec::new()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Duplicates, E> {
        Ok(Duplicates(Vec::new()))
    }

    fn visit_str<E>(self, _: &str) -> Result<Duplicates, E> {
        Ok(Duplicates(Vec::new()))
    }

    fn visit_unit<E>(self) -> Result<Duplicates, E> {
        Ok(Duplicates(Vec::new()))
    }

    fn visit_none<E>(self) -> Result<Duplicates, E> {
        Ok(Duplicates(Vec::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Duplicates, A::Error> {
        let mut found = Vec::new();
        while let Some(item) = items.next_element::<Duplicates>()? {
            found.extend(item.0);
        }
        Ok(Duplicates(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Duplicates, A::Error> {
        let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
        while let Some((key, value)) = fields.next_entry::<String, Spanned<Duplicates>>()? {
            found.extend(value.value.0);
            if !seen.insert(key.clone()) {
                let line = value.referenced.line();
                found.push(YamlDuplicate { line, key });
            }
        }
        Ok(Duplicates(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_stand_twice_are_named_with_the_line_of_the_value() {
        let text = "a: 1\nl:\n  x: b\nl:\n  x: c\n  x:   d\n  e: >-\n    z\n  e:\n    z\ns: [{k: 1, k: 2}]\n";
        let (docs, duplicates) = Doc::parse_yaml_with_duplicates(text).unwrap();
        assert_eq!(docs.len(), 1);
        assert_eq!(docs[0].str_at("/l/x"), "d");
        assert_eq!(docs[0].at("/s/0/k").as_i64(), Some(2));
        let found: Vec<(u64, &str)> = duplicates
            .iter()
            .map(|duplicate| (duplicate.line, duplicate.key.as_str()))
            .collect();
        assert_eq!(found, [(6, "x"), (10, "e"), (5, "l"), (11, "k")]);
    }

    #[test]
    fn numbers_that_stand_twice_as_keys_are_named_too() {
        for (text, key) in [
            ("a: 1\n31: x\n31: y\n", "31"),
            ("{1: x, +1: y}", "+1"),
            ("{0x1f, 31: y}", "31"),
        ] {
            let (docs, duplicates) = Doc::parse_yaml_with_duplicates(text).unwrap();
            let names: Vec<&str> = duplicates.iter().map(|one| one.key.as_str()).collect();
            assert_eq!(names, [key], "{text}");
            assert_eq!(docs.len(), 1);
        }
    }

    #[test]
    fn text_without_such_keys_has_none_and_other_faults_stay_faults() {
        let (docs, duplicates) = Doc::parse_yaml_with_duplicates("a: 1\n---\nb: 2\n").unwrap();
        assert_eq!((docs.len(), duplicates.len()), (2, 0));
        assert!(Doc::parse_yaml_with_duplicates("a: 1\na: [").is_err());
    }
}
