//! Short ways to say what tests do.

use std::convert::Infallible;
use std::sync::Arc;

use windlass_core::{Doc, Env, Key, doc};
use windlass_store::{
    Change, Entry, Event, EventKind, Outcome, Resource, Store, StoreOptions, Watch,
};

/// A store in memory.
pub(crate) fn memory() -> Store {
    Store::open(StoreOptions::memory(Env::seeded(1))).unwrap()
}

pub(crate) fn pods() -> Resource {
    Resource::new("", "pods")
}

pub(crate) fn nodes() -> Resource {
    Resource::new("", "nodes")
}

pub(crate) fn key(name: &str) -> Key {
    Key::new("default", name)
}

/// An object that holds one number, and a template that it shares with others.
pub(crate) fn object(name: &str, value: i64) -> Doc {
    let image =
        ["an-image-with-a-name-as-long-as-they-are", "another-one"][usize::from(value % 3 == 0)];
    let template =
        doc!({ "containers": [{ "name": "main", "image": image }], "restart": "Always" });
    doc!({ "metadata": { "name": name }, "template": template, "value": value })
}

pub(crate) fn value(doc: &Doc) -> i64 {
    doc.at("/value").as_i64().unwrap()
}

/// Creates or replaces an object.
pub(crate) async fn put(store: &Store, resource: &Resource, name: &str, value: i64) -> Arc<Entry> {
    let change = |_: Option<&_>| Ok::<_, Infallible>(Change::put(object(name, value)));
    let outcome = store.update(resource, &key(name), change).await.unwrap();
    outcome.entry().unwrap().clone()
}

pub(crate) async fn delete(store: &Store, resource: &Resource, name: &str) -> Outcome {
    let change = |_: Option<&_>| Ok::<_, Infallible>(Change::Delete);
    store.update(resource, &key(name), change).await.unwrap()
}

/// Revision, name and value of an event; no value for a deletion.
pub(crate) fn brief(event: &Event) -> (u64, String, Option<i64>) {
    let now = (event.kind == EventKind::Put).then(|| value(event.entry.doc()));
    (event.revision(), event.key().name().to_owned(), now)
}

/// Everything that a watch has to deliver by now.
pub(crate) fn drain(watch: &mut Watch) -> Vec<(u64, String, Option<i64>)> {
    std::iter::from_fn(|| watch.try_next().unwrap())
        .map(|event| brief(&event))
        .collect()
}

/// Names and values of a resource in order.
pub(crate) fn content<'a>(entries: impl IntoIterator<Item = &'a Arc<Entry>>) -> Vec<(String, i64)> {
    let brief = |entry: &Arc<Entry>| (entry.key.name().to_owned(), value(entry.doc()));
    entries.into_iter().map(brief).collect()
}
