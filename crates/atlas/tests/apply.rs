//! Server-side apply against what upstream makes of the same writes.

use windlass_atlas::apply::{AtlasSchema, FieldSet, Write, apply, track};
use windlass_atlas::{Atlas, Type, canonical};
use windlass_core::{Doc, Gvk, Time};

/// Kind, writes, and the object or the error after each. Made by `cargo xtask atlas`.
const GOLDENS: &str = include_str!("data/apply.txt");

fn parse(text: &str) -> Doc {
    Doc::parse(text.as_bytes()).expect("upstream's JSON is JSON")
}

#[test]
fn writes_merge_and_are_attributed_as_upstream_does() {
    let goldens: Vec<&str> = GOLDENS.lines().collect();
    assert!(goldens.len() >= 35, "only {} cases", goldens.len());
    let faults: Vec<String> = goldens.iter().filter_map(|line| fault(line)).collect();
    let shown = faults.iter().take(3).cloned().collect::<String>();
    assert!(faults.is_empty(), "{} cases differ\n{shown}", faults.len());
}

/// The difference between one case and upstream's result.
fn fault(line: &str) -> Option<String> {
    let parts: Vec<&str> = line.split('\t').collect();
    let [said, steps, results] = parts[..] else {
        panic!("three parts: {line}");
    };
    let (api_version, kind) = said.split_once(' ').expect("a kind");
    let gvk = Gvk::parse(api_version, kind).expect("a kind");
    let mut case = Case {
        kind: Atlas::kind(&gvk).expect("a built-in kind"),
        gvk,
        live: None,
    };
    for (step, expected) in parse(steps).items().iter().zip(parse(results).items()) {
        let before = case.live.clone().unwrap_or_default();
        let found = case.take(step);
        if found != *expected {
            let difference = expected.diff(&found);
            return Some(format!(
                "{said}\nbefore {before}\nstep {step}\n{difference:#?}\n"
            ));
        }
    }
    None
}

struct Case {
    kind: &'static Type,
    gvk: Gvk,
    live: Option<Doc>,
}

impl Case {
    /// Does one write: the object after it, or the text of the error.
    fn take(&mut self, step: &Doc) -> Doc {
        let schema = AtlasSchema::of(self.kind);
        let api_version = self.gvk.api_version();
        let write = Write {
            manager: step.str_at("/manager"),
            subresource: "",
            api_version: &api_version,
            time: Time::from_unix(1),
            ignored: &FieldSet::new(),
        };
        let set = |object: &Doc, pointer: &str, value: &str| {
            object.with(pointer, value).expect("an object")
        };
        let mut object = set(step.at("/object"), "/apiVersion", &api_version);
        object = set(&object, "/kind", self.gvk.kind());
        let live = self.live.as_ref();
        let written = if step.at("/apply") == &Doc::from(true) {
            let force = step.at("/force") == &Doc::from(true);
            apply(schema, live, &object, &write, force).map_err(|error| error.to_string())
        } else {
            if live.is_some() {
                object = set(&object, "/metadata/uid", "uid");
            }
            Ok(track(schema, live, &object, &write))
        };
        match written {
            Err(error) => error.into(),
            Ok(written) => {
                let written = canonical(self.kind, &set(&written, "/metadata/uid", "uid"));
                self.live = Some(written.clone());
                without_times(&written)
            }
        }
    }
}

/// The entries of managed fields without their times, in the order of the goldens.
fn without_times(object: &Doc) -> Doc {
    let pointer = "/metadata/managedFields";
    let mut entries: Vec<Doc> = object.at(pointer).items().to_vec();
    if entries.is_empty() {
        return object.clone();
    }
    entries.sort_by_key(|entry| {
        let name = |pointer: &str| entry.str_at(pointer).to_owned();
        (name("/operation"), name("/manager"))
    });
    let entries = entries
        .iter()
        .map(|entry| entry.without("/time").expect("a pointer"));
    object
        .with(pointer, entries.collect::<Vec<_>>())
        .expect("an object")
}
