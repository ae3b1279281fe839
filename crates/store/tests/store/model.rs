//! The store against a naive model: a list of everything that ever happened.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use windlass_core::Env;
use windlass_store::{
    Change, Commit, Place, Resource, RevisionError, Store, StoreOptions, Watch, WatchError,
    WriteError,
};

use crate::sim_disk::SimDisk;
use crate::support::{brief, content, key, nodes, object, pods, value};

/// Small, so that the history is often too short.
const HISTORY_LIMIT: usize = 6;
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Clone, Debug)]
enum Step {
    Put {
        resource: usize,
        name: usize,
        value: i64,
    },
    /// Replaces the object if it has the value of the model, or one more if the writer is stale.
    Swap {
        resource: usize,
        name: usize,
        value: i64,
        is_stale: bool,
    },
    Delete {
        resource: usize,
        name: usize,
    },
    Keep {
        resource: usize,
        name: usize,
    },
    /// Looks at a revision this far back.
    Look {
        resource: usize,
        back: u64,
    },
    /// Starts to watch from this far back.
    Watch {
        resource: usize,
        back: u64,
    },
    /// Reads one of the watches that are open.
    Read {
        watch: usize,
        events: usize,
    },
    /// Opens the store again, after a clean end or after a power loss.
    Restart {
        is_clean: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (resource, name, value) = (0..2usize, 0..NAMES.len(), 0..3i64);
    let object = (resource.clone(), name.clone());
    let step = prop_oneof![
        6 => (resource.clone(), name.clone(), value.clone())
            .prop_map(|(resource, name, value)| Step::Put { resource, name, value }),
        3 => (resource.clone(), name, value, any::<bool>()).prop_map(
            |(resource, name, value, is_stale)| Step::Swap { resource, name, value, is_stale }
        ),
        3 => object.clone().prop_map(|(resource, name)| Step::Delete { resource, name }),
        1 => object.prop_map(|(resource, name)| Step::Keep { resource, name }),
        3 => (resource.clone(), 0..15u64)
            .prop_map(|(resource, back)| Step::Look { resource, back }),
        3 => (resource, 0..15u64).prop_map(|(resource, back)| Step::Watch { resource, back }),
        3 => (0..8usize, 1..5usize).prop_map(|(watch, events)| Step::Read { watch, events }),
        1 => any::<bool>().prop_map(|is_clean| Step::Restart { is_clean }),
    ];
    prop::collection::vec(step, 1..80)
}

/// One thing that happened: revision, resource, name, new value.
type Happened = (u64, usize, String, Option<i64>);

/// Everything that ever happened, and what of it must still be known.
struct Model {
    history: Vec<Happened>,
    /// Per resource the revision after which all events are in memory.
    floors: [u64; 2],
}

impl Model {
    fn new() -> Self {
        Self {
            history: Vec::new(),
            floors: [1, 1],
        }
    }

    fn revision(&self) -> u64 {
        1 + self.history.len() as u64
    }

    fn at(&self, resource: usize, revision: u64) -> BTreeMap<String, i64> {
        let mut state = BTreeMap::new();
        for (_, _, name, value) in self.events(resource, 1).filter(|event| event.0 <= revision) {
            match value {
                Some(value) => state.insert(name.clone(), *value),
                None => state.remove(name),
            };
        }
        state
    }

    fn value(&self, resource: usize, name: usize) -> Option<i64> {
        self.at(resource, self.revision()).get(NAMES[name]).copied()
    }

    fn events(&self, resource: usize, after: u64) -> impl Iterator<Item = &Happened> {
        let is_asked = move |event: &&Happened| event.1 == resource && event.0 > after;
        self.history.iter().filter(is_asked)
    }

    fn write(&mut self, resource: usize, name: usize, value: Option<i64>) {
        if self.value(resource, name) == value {
            return;
        }
        self.history
            .push((self.revision() + 1, resource, NAMES[name].to_owned(), value));
        let events: Vec<u64> = self.events(resource, 1).map(|event| event.0).collect();
        if let Some(dropped) = events.len().checked_sub(HISTORY_LIMIT + 1) {
            self.floors[resource] = self.floors[resource].max(events[dropped]);
        }
    }

    /// The disk keeps the last events of all resources together.
    fn restart(&mut self) {
        let dropped = self.history.len().checked_sub(HISTORY_LIMIT + 1);
        let floor = dropped.map_or(1, |dropped| self.history[dropped].0);
        self.floors = [floor, floor];
    }
}

struct Run {
    model: Model,
    disk: Option<SimDisk>,
    store: Store,
    watches: Vec<(usize, Watch, u64)>,
}

fn options(disk: Option<&SimDisk>) -> StoreOptions {
    let options = StoreOptions {
        commit: Commit::Inline,
        history_limit: HISTORY_LIMIT,
        snapshot_limit: 0,
        segment_bytes: 1_000,
        ..StoreOptions::memory(Env::seeded(1))
    };
    match disk {
        Some(disk) => StoreOptions {
            place: Place::Disk(Arc::new(disk.clone())),
            ..options
        },
        None => options,
    }
}

fn resource(index: usize) -> Resource {
    [pods(), nodes()][index].clone()
}

impl Run {
    fn new(disk: Option<SimDisk>) -> Self {
        let store = Store::open(options(disk.as_ref())).unwrap();
        Self {
            model: Model::new(),
            disk,
            store,
            watches: Vec::new(),
        }
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Put {
                resource,
                name,
                value,
            } => {
                self.write(resource, name, |_| {
                    Ok(Change::put(object(NAMES[name], value)))
                })
                .await;
                self.model.write(resource, name, Some(value));
            }
            Step::Swap {
                resource,
                name,
                value,
                is_stale,
            } => {
                self.swap(resource, name, value, is_stale).await;
            }
            Step::Delete { resource, name } => {
                self.write(resource, name, |_| Ok(Change::Delete)).await;
                self.model.write(resource, name, None);
            }
            Step::Keep { resource, name } => {
                self.write(resource, name, |_| Ok(Change::Keep)).await;
            }
            Step::Look { resource, back } => self.look(resource, back),
            Step::Watch { resource, back } => self.watch(resource, back),
            Step::Read { watch, events } => self.read(watch, events),
            Step::Restart { is_clean } => self.restart(is_clean),
        }
        assert_eq!(self.store.revision(), self.model.revision());
    }

    /// Writes and says whether it was refused.
    async fn write(
        &self,
        index: usize,
        name: usize,
        decide: impl FnOnce(Option<i64>) -> Result<Change, ()>,
    ) -> bool {
        let expected = self.model.value(index, name);
        let decide = |current: Option<&Arc<windlass_store::Entry>>| {
            let current = current.map(|entry| value(entry.doc()));
            assert_eq!(current, expected, "a decision is made on the newest state");
            decide(current)
        };
        match self
            .store
            .update(&resource(index), &key(NAMES[name]), decide)
            .await
        {
            Ok(_) => false,
            Err(WriteError::Refused(())) => true,
            Err(error) => panic!("{error}"),
        }
    }

    async fn swap(&mut self, resource: usize, name: usize, value: i64, is_stale: bool) {
        let expected = self
            .model
            .value(resource, name)
            .map(|value| value + i64::from(is_stale));
        let swap = |current: Option<i64>| {
            let is_expected = current == expected && current.is_some();
            if is_expected {
                Ok(Change::put(object(NAMES[name], value)))
            } else {
                Err(())
            }
        };
        let is_refused = self.write(resource, name, swap).await;
        assert_eq!(is_refused, is_stale || expected.is_none());
        if !is_refused {
            self.model.write(resource, name, Some(value));
        }
    }

    fn look(&self, index: usize, back: u64) {
        let revision = self.model.revision().saturating_sub(back);
        let found = self.store.snapshot_at(&resource(index), revision);
        let oldest = self.model.floors[index];
        if revision < oldest {
            let expired = RevisionError::Expired {
                asked: revision,
                oldest,
            };
            assert_eq!(found.unwrap_err(), expired);
            return;
        }
        let found = found.unwrap();
        assert_eq!(found.revision(), revision);
        assert!(
            content(&found)
                .into_iter()
                .eq(self.model.at(index, revision))
        );
        assert_eq!(found.iter().count_left(), found.len());
    }

    fn watch(&mut self, index: usize, back: u64) {
        let from = self.model.revision().saturating_sub(back);
        let oldest = self.model.floors[index];
        match self.store.watch(&resource(index), from) {
            Ok(watch) => {
                assert!(from >= oldest);
                self.watches.push((index, watch, from));
            }
            Err(refused) => {
                assert_eq!(
                    refused,
                    RevisionError::Expired {
                        asked: from,
                        oldest
                    }
                );
            }
        }
    }

    fn read(&mut self, watch: usize, events: usize) {
        let count = self.watches.len();
        let Some((resource, watch, delivered)) = self.watches.get_mut(watch % count.max(1)) else {
            return;
        };
        for _ in 0..events {
            let expected = self.model.events(*resource, *delivered).next();
            match (watch.try_next(), expected) {
                (Ok(Some(event)), Some((revision, _, name, value))) => {
                    assert_eq!(brief(&event), (*revision, name.clone(), *value));
                    let before = self.model.at(*resource, revision - 1).get(name).copied();
                    let previous = event.previous.as_ref();
                    assert_eq!(
                        previous.map(|entry| super::support::value(entry.doc())),
                        before
                    );
                    *delivered = *revision;
                }
                (Ok(None), None) => assert_eq!(watch.revision(), self.model.revision()),
                (Err(WatchError::Lagged { at }), Some(_)) => {
                    assert_eq!(at, *delivered);
                    assert!(
                        self.model.floors[*resource] > at,
                        "only the slow are told to go"
                    );
                    return;
                }
                (got, expected) => panic!("{got:?} instead of {expected:?}"),
            }
        }
    }

    fn restart(&mut self, is_clean: bool) {
        let Some(disk) = self.disk.take() else { return };
        self.watches.clear();
        let crashed = disk.after_power_loss();
        self.store = Store::open(options(None)).unwrap();
        let disk = if is_clean { disk } else { crashed };
        self.store = Store::open(options(Some(&disk))).unwrap();
        self.disk = Some(disk);
        self.model.restart();
    }

    fn finish(&self) {
        for index in 0..2 {
            let now = self.store.snapshot(&resource(index));
            assert!(
                content(&now)
                    .into_iter()
                    .eq(self.model.at(index, self.model.revision()))
            );
            (0..15).for_each(|back| self.look(index, back));
        }
    }
}

fn run(disk: Option<SimDisk>, steps: Vec<Step>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut run = Run::new(disk);
        for step in steps {
            run.step(step).await;
        }
        run.finish();
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn a_store_in_memory_behaves_like_the_model(steps in steps()) {
        run(None, steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn a_store_on_disk_behaves_like_the_model_across_restarts(steps in steps()) {
        run(Some(SimDisk::default()), steps);
    }
}
