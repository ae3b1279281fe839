//! A small server of one resource, which remembers everything it was.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use windlass_cache::{
    BoxFuture, BoxWatch, EventError, ListRequest, ListWatch, Page, Reason, SourceError, Watch,
    WatchRequest,
};
use windlass_client::WatchEvent;
use windlass_core::{Doc, Key, Revision, doc};

/// A server whose watches can be cut and whose history can be compacted.
#[derive(Clone)]
pub(crate) struct World(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    /// Changes with every change of the state.
    pulse: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    revision: u64,
    objects: BTreeMap<Key, Doc>,
    history: Vec<(u64, WatchEvent)>,
    /// Watches from before this revision are told to list again.
    compacted: u64,
    /// The number of times that all watches were cut.
    cuts: u64,
    lists: usize,
    watches: usize,
    /// The error with which every request is refused.
    refusal: Option<SourceError>,
    uids: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        let state = Mutex::new(State {
            revision: 1,
            ..State::default()
        });
        Self(Arc::new(Inner {
            state,
            pulse: watch::Sender::new(0),
        }))
    }

    pub(crate) fn source(&self) -> Arc<dyn ListWatch> {
        Arc::new(self.clone())
    }

    /// Creates or updates an object.
    pub(crate) fn put(&self, key: &str, value: u64) -> u64 {
        let key: Key = key.parse().unwrap();
        self.change(|state| {
            state.revision += 1;
            let existing = state.objects.get(&key);
            let uid = existing.map(|object| object.meta().uid_str().to_owned());
            let uid = uid.unwrap_or_else(|| {
                state.uids += 1;
                format!("uid-number-{}", state.uids)
            });
            let object = object(&key, &uid, value, state.revision);
            let is_new = state.objects.insert(key, object.clone()).is_none();
            let event = if is_new {
                WatchEvent::Added(object)
            } else {
                WatchEvent::Modified(object)
            };
            state.history.push((state.revision, event));
            state.revision
        })
    }

    pub(crate) fn delete(&self, key: &str) -> u64 {
        let key: Key = key.parse().unwrap();
        self.change(|state| {
            if let Some(object) = state.objects.remove(&key) {
                state.revision += 1;
                let version = state.revision.to_string();
                let last = object
                    .with("/metadata/resourceVersion", version.as_str())
                    .unwrap();
                state
                    .history
                    .push((state.revision, WatchEvent::Deleted(last)));
            }
            state.revision
        })
    }

    /// Cuts all connections of watches.
    pub(crate) fn cut(&self) {
        self.change(|state| state.cuts += 1);
    }

    /// Forgets the history, so that a watch from before must list again.
    pub(crate) fn compact(&self) {
        self.change(|state| state.compacted = state.revision);
    }

    pub(crate) fn refuse(&self, error: Option<SourceError>) {
        self.change(|state| state.refusal = error);
    }

    pub(crate) fn revision(&self) -> Revision {
        self.0.state.lock().revision.try_into().unwrap()
    }

    pub(crate) fn lists(&self) -> usize {
        self.0.state.lock().lists
    }

    pub(crate) fn watches(&self) -> usize {
        self.0.state.lock().watches
    }

    /// The objects as they were at a revision.
    pub(crate) fn at(&self, revision: &Revision) -> Vec<Doc> {
        let revision = revision.as_u64().unwrap();
        let mut objects = BTreeMap::new();
        for (_, event) in self
            .0
            .state
            .lock()
            .history
            .iter()
            .take_while(|(at, _)| *at <= revision)
        {
            match event {
                WatchEvent::Deleted(object) => {
                    objects.remove(&object.meta().key());
                }
                event => {
                    objects.insert(event.object().meta().key(), event.object().clone());
                }
            }
        }
        objects.into_values().collect()
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.0.state.lock());
        self.0.pulse.send_modify(|pulse| *pulse += 1);
        result
    }
}

fn object(key: &Key, uid: &str, value: u64, version: u64) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": key.name(), "namespace": key.namespace().unwrap_or(""), "uid": uid,
            "resourceVersion": version.to_string(),
            "labels": { "value": format!("v{}", value % 3) }
        },
        "spec": { "value": value }
    })
}

fn bookmark(revision: u64, is_end: bool) -> WatchEvent {
    let annotations = if is_end {
        doc!({ "k8s.io/initial-events-end": "true" })
    } else {
        doc!({})
    };
    WatchEvent::Bookmark(doc!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": { "resourceVersion": revision.to_string(), "annotations": annotations }
    }))
}

impl ListWatch for World {
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<Page, SourceError>> {
        let mut state = self.0.state.lock();
        state.lists += 1;
        let answer = match &state.refusal {
            Some(error) => Err(error.clone()),
            None => {
                let all: Vec<Doc> = state.objects.values().cloned().collect();
                let from = request.continue_token.parse().unwrap_or(0);
                let limit = if request.limit == 0 {
                    usize::MAX
                } else {
                    request.limit as usize
                };
                let items: Vec<Doc> = all.iter().skip(from).take(limit).cloned().collect();
                let next = from + items.len();
                let is_last = next >= all.len();
                Ok(Page {
                    items,
                    resource_version: state.revision.to_string(),
                    continue_token: if is_last {
                        String::new()
                    } else {
                        next.to_string()
                    },
                    ..Page::default()
                })
            }
        };
        Box::pin(async move { answer })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<BoxWatch, SourceError>> {
        let mut state = self.0.state.lock();
        state.watches += 1;
        let answer = match &state.refusal {
            Some(error) => Err(error.clone()),
            None => {
                let mut initial = Vec::new();
                let mut from = request.resource_version.parse().unwrap_or(0);
                if request.send_initial_events {
                    initial.extend(state.objects.values().cloned().map(WatchEvent::Added));
                    initial.push(bookmark(state.revision, true));
                    from = state.revision;
                }
                Ok(Box::new(Stream {
                    world: self.clone(),
                    pulse: self.0.pulse.subscribe(),
                    initial: initial.into_iter(),
                    from,
                    cuts: state.cuts,
                    ends: Instant::now() + request.timeout,
                }) as BoxWatch)
            }
        };
        Box::pin(async move { answer })
    }
}

struct Stream {
    world: World,
    pulse: watch::Receiver<u64>,
    initial: std::vec::IntoIter<WatchEvent>,
    /// The revision up to which events have been sent.
    from: u64,
    /// The number of cuts when this was opened.
    cuts: u64,
    ends: Instant,
}

impl Stream {
    fn look(&mut self) -> Option<Result<WatchEvent, EventError>> {
        if let Some(event) = self.initial.next() {
            return Some(Ok(event));
        }
        let state = self.world.0.state.lock();
        if self.cuts < state.cuts {
            return Some(Err(SourceError::new(Reason::Unreachable, "cut").into()));
        }
        if self.from < state.compacted {
            return Some(Err(SourceError::new(Reason::Expired, "too old").into()));
        }
        let next = state
            .history
            .partition_point(|(revision, _)| *revision <= self.from);
        let (revision, event) = state.history.get(next)?;
        self.from = *revision;
        Some(Ok(event.clone()))
    }
}

impl Watch for Stream {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<WatchEvent, EventError>>> {
        Box::pin(async move {
            loop {
                self.pulse.borrow_and_update();
                if let Some(event) = self.look() {
                    return Some(event);
                }
                tokio::select! {
                    biased;
                    _ = self.pulse.changed() => {}
                    () = sleep_until(self.ends) => return None,
                }
            }
        })
    }
}
