//! The server is killed while it works, fifty times over: what it acknowledged is there afterwards,
//! revisions go on, and watches resume where they were.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio::task::JoinSet;
use windlass_client::{
    DeleteOptions, DynamicApi, DynamicClient, ListOptions, WatchEvent, WatchOptions, WriteOptions,
};
use windlass_core::{Doc, Env, Gvr, doc};

use crate::process::Process;

const ROUNDS: usize = 50;
const WRITERS: usize = 8;
const WATCHERS: usize = 4;
/// Objects of one writer.
const NAMES: u64 = 4;
/// A round is over after so many acknowledged writes at least, and up to twice as many.
const WRITES_MIN: u64 = 40;

const CONFIG_MAPS: Gvr = Gvr::constant("", "v1", "configmaps");
const ANY_PORT: &str = "127.0.0.1:0";
/// The last write of all.
const LAST: &str = "last";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_and_watches_have_no_gap() {
    let data = tempfile::tempdir().unwrap();
    let env = Env::seeded(1);
    let mut server = Process::start(data.path(), ANY_PORT).await;
    let start = revision(&api(&server.client().await)).await;
    let mut writers: Vec<Writer> = (0..WRITERS).map(Writer::new).collect();
    let mut watchers: Vec<Watcher> = (0..WATCHERS).map(|_| Watcher::new(start)).collect();
    for _ in 0..ROUNDS {
        let writes = (WRITES_MIN + env.random_u64() % WRITES_MIN) as usize;
        let acknowledged = Arc::new(Count::default());
        let (write_client, watch_client) = (server.client().await, server.client().await);
        let writing = run_all(writers, &write_client, &acknowledged, Writer::run);
        let watching = run_all(watchers, &watch_client, &acknowledged, Watcher::run);
        acknowledged.reached(writes).await;
        server.kill().await;
        (writers, watchers) = (writing.join_all().await, watching.join_all().await);
        server = Process::start(data.path(), ANY_PORT).await;
        let api = api(&server.client().await);
        check_objects(&api, &mut writers).await;
    }
    finish(&server, &writers, watchers, start).await;
}

/// Lets the watchers see everything, and compares what they saw with what was acknowledged and
/// with what the history says.
async fn finish(server: &Process, writers: &[Writer], mut watchers: Vec<Watcher>, start: u64) {
    let client = server.client().await;
    let object = config_map(LAST, 0);
    api(&client)
        .create(&object, &WriteOptions::default())
        .await
        .unwrap();
    let unused = Arc::new(Count::default());
    watchers.push(Watcher::new(start));
    let watchers = run_all(watchers, &client, &unused, Watcher::run)
        .join_all()
        .await;
    let history = &watchers[WATCHERS].seen;
    assert!(
        history.is_sorted_by(|a, b| a.revision < b.revision),
        "revisions grow"
    );
    for watcher in &watchers {
        assert_eq!(watcher.seen, *history, "each event once, in order");
    }
    let seen: BTreeSet<&Seen> = history.iter().collect();
    let acknowledged = || writers.iter().flat_map(|writer| &writer.acknowledged);
    for write in acknowledged() {
        assert!(seen.contains(write), "{write:?} was acknowledged");
    }
    let revisions: BTreeSet<u64> = acknowledged().map(|write| write.revision).collect();
    assert_eq!(
        revisions.len(),
        acknowledged().count(),
        "no revision comes twice"
    );
    assert!(revisions.len() >= ROUNDS * WRITES_MIN as usize);
}

/// Every object is as its writer left it; where the last write was not answered, as before or as
/// after it.
async fn check_objects(api: &DynamicApi, writers: &mut [Writer]) {
    let list = api.list(&ListOptions::default()).await.unwrap();
    let mut found: BTreeMap<String, Doc> = list
        .items
        .iter()
        .map(|object| (object.meta().name().to_owned(), object.clone()))
        .collect();
    for writer in writers {
        for (name, expected) in writer.take_expected() {
            let object = found.remove(&name);
            let value = object.as_ref().map(value_of);
            assert!(
                expected.contains(&value),
                "{name} is {value:?} instead of one of {expected:?}"
            );
            writer.adopt(&name, object);
        }
    }
}

/// One task for each, all with the same client.
fn run_all<T: Send + 'static, F>(
    these: Vec<T>,
    client: &DynamicClient,
    count: &Arc<Count>,
    run: impl Fn(T, DynamicApi, Arc<Count>) -> F,
) -> JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for this in these {
        tasks.spawn(run(this, api(client), Arc::clone(count)));
    }
    tasks
}

fn api(client: &DynamicClient) -> DynamicApi {
    client.resource(CONFIG_MAPS).namespaced("default")
}

async fn revision(api: &DynamicApi) -> u64 {
    let list = api.list(&ListOptions::default()).await.unwrap();
    list.head.resource_version().parse().unwrap()
}

fn config_map(name: &str, value: u64) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
        "data": { "value": (value.to_string()) }
    })
}

fn value_of(object: &Doc) -> u64 {
    object.str_at("/data/value").parse().unwrap()
}

fn revision_of(object: &Doc) -> u64 {
    object.meta().resource_version().parse().unwrap()
}

/// Writes that were acknowledged in a round.
#[derive(Default)]
struct Count {
    writes: AtomicUsize,
    grown: Notify,
}

impl Count {
    fn add(&self) {
        self.writes.fetch_add(1, Ordering::SeqCst);
        self.grown.notify_one();
    }

    async fn reached(&self, writes: usize) {
        while self.writes.load(Ordering::SeqCst) < writes {
            self.grown.notified().await;
        }
    }
}

/// A state of an object, as an event or an answer showed it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    revision: u64,
    name: String,
    /// `None` when it was deleted.
    value: Option<u64>,
}

/// One client that creates, updates and deletes objects of its own.
struct Writer {
    number: usize,
    /// What its objects are, as far as it knows.
    objects: BTreeMap<String, Doc>,
    /// The object and the value of the write that was not answered.
    unanswered: Option<(String, Option<u64>)>,
    acknowledged: Vec<Seen>,
    /// Counts the values that were written.
    steps: u64,
}

impl Writer {
    fn new(number: usize) -> Self {
        Self {
            number,
            objects: BTreeMap::new(),
            unanswered: None,
            acknowledged: Vec::new(),
            steps: 0,
        }
    }

    /// Writes until the server does not answer.
    async fn run(mut self, api: DynamicApi, count: Arc<Count>) -> Self {
        while self.step(&api).await {
            count.add();
        }
        self
    }

    /// Makes the next write; `false` if it was not answered.
    async fn step(&mut self, api: &DynamicApi) -> bool {
        self.steps += 1;
        let (step, name) = (self.steps, self.name(self.steps % NAMES));
        // Each object is created, updated twice and deleted, again and again.
        let current = self.objects.get(&name).cloned();
        let is_delete = current.is_some() && (step / NAMES) % 4 == 3;
        self.unanswered = Some((name.clone(), (!is_delete).then_some(step)));
        let options = WriteOptions::default();
        let answer = match current {
            None => api.create(&config_map(&name, step), &options).await,
            Some(object) if is_delete => {
                let options = DeleteOptions::uid(object.meta().uid().as_str());
                let deleted = api.delete(&name, &options).await;
                // The answer does not tell the revision of a deletion.
                return self.answered_delete(&name, &deleted.map(drop));
            }
            Some(object) => {
                let object = object.with("/data/value", step.to_string()).unwrap();
                api.update(&object, &options).await
            }
        };
        let object = match answer {
            Ok(object) => object,
            Err(error) => return unanswered(&error),
        };
        self.acknowledged.push(Seen {
            revision: revision_of(&object),
            name: name.clone(),
            value: Some(value_of(&object)),
        });
        self.objects.insert(name, object);
        self.unanswered = None;
        true
    }

    fn answered_delete(&mut self, name: &str, answer: &Result<(), windlass_client::Error>) -> bool {
        if let Err(error) = answer {
            return unanswered(error);
        }
        self.objects.remove(name);
        self.unanswered = None;
        true
    }

    fn name(&self, index: u64) -> String {
        format!("w{}-{index}", self.number)
    }

    /// The values that each object may have now.
    fn take_expected(&mut self) -> Vec<(String, Vec<Option<u64>>)> {
        let unanswered = self.unanswered.take();
        let expected = |index| {
            let name = self.name(index);
            let mut values = vec![self.objects.get(&name).map(value_of)];
            values.extend(
                unanswered
                    .iter()
                    .filter(|(unanswered, _)| *unanswered == name)
                    .map(|(_, value)| *value),
            );
            (name, values)
        };
        (0..NAMES).map(expected).collect()
    }

    /// Goes on from what the server has.
    fn adopt(&mut self, name: &str, object: Option<Doc>) {
        match object {
            Some(object) => self.objects.insert(name.to_owned(), object),
            None => self.objects.remove(name),
        };
    }
}

/// A write may fail only because the server is gone: nobody else writes these objects.
fn unanswered(error: &windlass_client::Error) -> bool {
    if let Some(status) = error.status() {
        panic!("a write was refused: {status:?}");
    }
    false
}

/// One client that follows all objects across kills.
struct Watcher {
    /// The revision of the last event, or where it started.
    revision: u64,
    seen: Vec<Seen>,
}

impl Watcher {
    fn new(revision: u64) -> Self {
        Self {
            revision,
            seen: Vec::new(),
        }
    }

    /// Follows until the stream breaks or the last write was seen.
    async fn run(mut self, api: DynamicApi, _: Arc<Count>) -> Self {
        let options = WatchOptions::from(self.revision.to_string());
        let Ok(mut watch) = api.watch(&options).await else {
            return self;
        };
        while let Some(Ok(event)) = watch.next().await {
            let (object, is_delete) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(_) => continue,
            };
            self.revision = revision_of(&object);
            let name = object.meta().name().to_owned();
            self.seen.push(Seen {
                revision: self.revision,
                value: (!is_delete).then(|| value_of(&object)),
                name,
            });
            if object.meta().name() == LAST {
                break;
            }
        }
        self
    }
}
