//! A source that answers what a test wrote down.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use parking_lot::Mutex;
use windlass_cache::{
    BoxFuture, BoxWatch, EventError, ListRequest, ListWatch, Page, Reason, SourceError, Watch,
    WatchRequest,
};
use windlass_client::WatchEvent;
use windlass_core::{Doc, doc};

/// Answers lists and watches in the order in which they were written down. When the answers are
/// used up, lists and watches wait for ever.
#[derive(Default)]
pub(crate) struct Script {
    lists: Mutex<VecDeque<Result<Page, SourceError>>>,
    watches: Mutex<VecDeque<Result<Vec<Step>, SourceError>>>,
    pub(crate) list_requests: Mutex<Vec<ListRequest>>,
    pub(crate) watch_requests: Mutex<Vec<WatchRequest>>,
    pub(crate) opened: Arc<AtomicUsize>,
    pub(crate) closed: Arc<AtomicUsize>,
    lacks_watch_list: bool,
}

/// The next step of a watch.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Event(WatchEvent),
    Fail(EventError),
    Wait(Duration),
    /// Stays open without another event.
    Hang,
}

impl Script {
    pub(crate) fn list(self, answer: Result<Page, SourceError>) -> Self {
        self.lists.lock().push_back(answer);
        self
    }

    pub(crate) fn watch(self, answer: Result<Vec<Step>, SourceError>) -> Self {
        self.watches.lock().push_back(answer);
        self
    }

    pub(crate) fn without_watch_list(self) -> Self {
        Self {
            lacks_watch_list: true,
            ..self
        }
    }

    pub(crate) fn list_versions(&self) -> Vec<String> {
        let requests = self.list_requests.lock();
        requests
            .iter()
            .map(|request| request.resource_version.clone())
            .collect()
    }

    pub(crate) fn limits(&self) -> Vec<u32> {
        self.list_requests
            .lock()
            .iter()
            .map(|request| request.limit)
            .collect()
    }

    pub(crate) fn watch_versions(&self) -> Vec<String> {
        let requests = self.watch_requests.lock();
        requests
            .iter()
            .map(|request| request.resource_version.clone())
            .collect()
    }

    pub(crate) fn counts(&self) -> (usize, usize) {
        (
            self.list_requests.lock().len(),
            self.watch_requests.lock().len(),
        )
    }

    pub(crate) fn open_watches(&self) -> usize {
        self.opened.load(SeqCst) - self.closed.load(SeqCst)
    }
}

impl ListWatch for Script {
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<Page, SourceError>> {
        self.list_requests.lock().push(request);
        let answer = self.lists.lock().pop_front();
        Box::pin(async move {
            match answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<BoxWatch, SourceError>> {
        self.watch_requests.lock().push(request);
        let answer = self
            .watches
            .lock()
            .pop_front()
            .unwrap_or_else(|| Ok(vec![Step::Hang]));
        Box::pin(async move {
            let steps = answer?.into();
            self.opened.fetch_add(1, SeqCst);
            Ok(Box::new(Stream {
                steps,
                closed: self.closed.clone(),
            }) as BoxWatch)
        })
    }

    fn supports_watch_list(&self) -> bool {
        !self.lacks_watch_list
    }
}

struct Stream {
    steps: VecDeque<Step>,
    closed: Arc<AtomicUsize>,
}

impl Watch for Stream {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<WatchEvent, EventError>>> {
        Box::pin(async move {
            loop {
                match self.steps.front()? {
                    Step::Hang => return std::future::pending().await,
                    Step::Wait(delay) => {
                        tokio::time::sleep(*delay).await;
                        self.steps.pop_front();
                    }
                    Step::Event(event) => {
                        let event = event.clone();
                        self.steps.pop_front();
                        return Some(Ok(event));
                    }
                    Step::Fail(error) => {
                        let error = error.clone();
                        self.steps.pop_front();
                        return Some(Err(error));
                    }
                }
            }
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.closed.fetch_add(1, SeqCst);
    }
}

pub(crate) fn pod(name: &str, version: u64) -> Doc {
    doc!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("uid-of-{name}"),
            "resourceVersion": version.to_string()
        }
    })
}

pub(crate) fn page(version: &str, items: Vec<Doc>) -> Result<Page, SourceError> {
    Ok(Page {
        items,
        resource_version: version.to_owned(),
        ..Page::default()
    })
}

/// A page after which more follow.
pub(crate) fn page_with_more(version: &str, items: Vec<Doc>) -> Result<Page, SourceError> {
    let page = page(version, items)?;
    Ok(Page {
        continue_token: "more".to_owned(),
        ..page
    })
}

pub(crate) fn error(reason: Reason) -> SourceError {
    SourceError::new(reason, reason.as_str())
}

pub(crate) fn added(name: &str, version: u64) -> Step {
    Step::Event(WatchEvent::Added(pod(name, version)))
}

pub(crate) fn modified(name: &str, version: u64) -> Step {
    Step::Event(WatchEvent::Modified(pod(name, version)))
}

pub(crate) fn deleted(name: &str, version: u64) -> Step {
    Step::Event(WatchEvent::Deleted(pod(name, version)))
}

pub(crate) fn bookmark(version: u64) -> Step {
    Step::Event(WatchEvent::Bookmark(doc!({
        "kind": "Pod", "apiVersion": "v1", "metadata": { "resourceVersion": version.to_string() }
    })))
}

/// The bookmark after the initial events, with this value of its annotation.
pub(crate) fn end_bookmark(version: u64, value: &str) -> Step {
    Step::Event(WatchEvent::Bookmark(doc!({
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "resourceVersion": version.to_string(),
            "annotations": { "k8s.io/initial-events-end": value }
        }
    })))
}

pub(crate) fn fail(reason: Reason) -> Step {
    Step::Fail(EventError::Ended(error(reason)))
}
