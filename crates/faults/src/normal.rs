//! Objects without what differs from run to run.

use std::collections::BTreeMap;

use windlass_core::{Array, Doc, Kind, MicroTime, Object, Time};

/// Fields that are different each time.
const IGNORED: [&str; 2] = ["resourceVersion", "managedFields"];

/// Objects in a form that two runs of a scenario can be compared by: without resource versions and
/// managed fields, without times, with `*` in place of the random part of a generated name, and
/// with the name of an object in place of its uid. They are sorted.
#[must_use]
pub fn normalized(objects: &[Doc], ignored: &[String]) -> Vec<Doc> {
    let mut words = BTreeMap::new();
    for object in objects {
        let meta = object.meta();
        let name = generic_name(object);
        if name != meta.name() {
            words.insert(meta.name().to_owned(), name.clone());
        }
        let title = format!("uid of {} {name}", object.str_at("/kind"));
        words.insert(meta.uid_str().to_owned(), title);
    }
    words.remove("");
    let mut normal: Vec<Doc> = objects
        .iter()
        .map(|object| normal(object, &words, ignored))
        .collect();
    normal.sort_by_key(Doc::to_json);
    normal
}

fn generic_name(object: &Doc) -> String {
    let meta = object.meta();
    match meta.generate_name() {
        "" => meta.name().to_owned(),
        base => format!("{base}*"),
    }
}

fn normal(doc: &Doc, words: &BTreeMap<String, String>, ignored: &[String]) -> Doc {
    match doc.kind() {
        Kind::Object(object) => {
            let kept = object.iter().filter(|(name, _)| !is_ignored(name, ignored));
            let fields = kept.map(|(name, value)| (name.clone(), normal(value, words, ignored)));
            Doc::from(Object::new(fields.collect::<Vec<_>>()))
        }
        Kind::Array(_) => {
            let items = doc.items().iter().map(|item| normal(item, words, ignored));
            Doc::from(Array::new(&items.collect::<Vec<_>>()))
        }
        Kind::Str(text) => word(doc, text, words),
        _ => doc.clone(),
    }
}

fn is_ignored(name: &str, ignored: &[String]) -> bool {
    IGNORED.contains(&name) || ignored.iter().any(|it| it == name)
}

fn word(doc: &Doc, text: &str, words: &BTreeMap<String, String>) -> Doc {
    if let Some(word) = words.get(text) {
        return Doc::from(word.as_str());
    }
    if text.parse::<MicroTime>().is_ok() || text.parse::<Time>().is_ok() {
        return Doc::from("a time");
    }
    doc.clone()
}

/// The first objects that two sorted lists do not share.
#[must_use]
pub fn difference(clean: &[Doc], run: &[Doc]) -> String {
    let show = |docs: &[Doc], others: &[Doc]| -> Vec<String> {
        let mut others = others.to_vec();
        let only = docs.iter().filter(|doc| {
            let at = others.iter().position(|other| other == *doc);
            at.map(|at| others.remove(at)).is_none()
        });
        only.map(|doc| String::from_utf8_lossy(&doc.to_json()).into_owned())
            .collect()
    };
    let (missing, extra) = (show(clean, run), show(run, clean));
    format!(
        "the end state differs\nonly without faults:\n  {}\nonly now:\n  {}",
        missing.join("\n  "),
        extra.join("\n  ")
    )
}
