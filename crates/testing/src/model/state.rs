//! The objects and what has happened to them.

use std::{collections::BTreeMap, time::Duration};

use http::Response;
use tokio::time::Instant;
use windlass_client::{Content, DocList};
use windlass_core::{Doc, Gvr, Key, doc};

use super::{
    Logged,
    answer::response,
    request::{Parsed, Query},
};

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) resource: Gvr,
    pub(super) key: Key,
}

/// One change: what an object was, and what it became.
#[derive(Clone, Debug)]
pub(super) struct Happening {
    pub(super) place: Place,
    pub(super) revision: u64,
    pub(super) old: Option<Doc>,
    /// The object, with this revision also if it was deleted.
    pub(super) new: Doc,
    pub(super) is_deletion: bool,
    pub(super) at: Instant,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) revision: u64,
    pub(super) objects: BTreeMap<Place, Doc>,
    pub(super) history: Vec<Happening>,
    /// How many happenings were forgotten.
    pub(super) forgotten: usize,
    /// The revision up to which history was forgotten.
    pub(super) compacted: u64,
    pub(super) log: Vec<Logged>,
    /// How late watches of a resource are.
    pub(super) lags: BTreeMap<String, Duration>,
}

impl Parsed {
    pub(super) fn place(&self) -> Place {
        let name = self.name.as_deref().unwrap_or("");
        Place {
            resource: self.resource.clone(),
            key: Key::new(&self.namespace, name),
        }
    }

    pub(super) fn contains(&self, place: &Place) -> bool {
        let is_inside = self.namespace.is_empty() || place.key.namespace() == Some(&self.namespace);
        place.resource == self.resource && is_inside
    }
}

impl State {
    pub(super) fn get(&self, at: &Parsed) -> Option<Doc> {
        self.objects.get(&at.place()).cloned()
    }

    pub(super) fn selected(&self, at: &Parsed, query: &Query) -> Vec<Doc> {
        let objects = self.objects.iter().filter(|(place, _)| at.contains(place));
        objects
            .map(|(_, object)| object)
            .filter(|it| query.selects(it))
            .cloned()
            .collect()
    }

    pub(super) fn list(&self, at: &Parsed, query: &Query) -> Response<Content> {
        let items = self.selected(at, query);
        let kind = items.first().map_or("", |item| item.str_at("/kind"));
        response(
            200,
            Content::List(DocList {
                api_version: at.resource.api_version(),
                kind: format!("{kind}List"),
                metadata: doc!({ "resourceVersion": self.revision.max(1).to_string() }),
                items: Box::new(items.into_iter()),
            }),
        )
    }

    /// Stores a change of an object; `None` removes it. Returns it with its new revision.
    pub(super) fn commit(&mut self, place: Place, new: Option<Doc>) -> Doc {
        let old = self.objects.get(&place).cloned();
        self.revision += 1;
        let is_deletion = new.is_none();
        let object = new.or_else(|| old.clone()).unwrap_or(Doc::NULL);
        let object = object
            .with("/metadata/resourceVersion", self.revision.to_string())
            .unwrap_or(object);
        if is_deletion {
            self.objects.remove(&place);
        } else {
            self.objects.insert(place.clone(), object.clone());
        }
        let (revision, at, new) = (self.revision, Instant::now(), object.clone());
        self.history.push(Happening {
            place,
            revision,
            old,
            new,
            is_deletion,
            at,
        });
        object
    }

    /// How much has happened, with what was forgotten.
    pub(super) fn happened(&self) -> usize {
        self.forgotten + self.history.len()
    }

    pub(super) fn compact(&mut self) {
        self.forgotten += self.history.len();
        self.history.clear();
        self.compacted = self.revision;
    }
}
