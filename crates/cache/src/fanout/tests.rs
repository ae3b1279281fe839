//! Every order in which a writer, a handler that comes late and a slow consumer can act.
//!
//! Each of their acts is one critical section, so that the orders of acts are all the schedules
//! there are.

use std::collections::BTreeMap;

use windlass_core::{Key, doc};

use super::*;
use crate::{
    fifo::{Delta, Listing},
    listener::Note,
    metrics::InformerMetrics,
    object::{Deleted, Obj},
};

fn object(name: &str, version: u64) -> Obj {
    let metadata = doc!({ "name": name, "uid": name, "resourceVersion": version.to_string() });
    Obj::new(doc!({ "metadata": metadata })).expect("named")
}

/// The object that comes and goes in one batch, and the number of that batch.
const BRIEF: &str = "brief";
const BRIEF_BATCH: usize = 1;

/// The batches of the writer, one for each act.
fn batches() -> Vec<Batch> {
    let deltas = |deltas: &[Delta]| Batch::Deltas(deltas.to_vec());
    vec![
        Batch::ReplacedAll(Listing {
            objects: vec![object("a", 1), object("b", 1)],
            ..Listing::default()
        }),
        deltas(&[
            Delta::Updated(object("a", 2)),
            Delta::Added(object(BRIEF, 2)),
            Delta::Added(object("c", 3)),
            Delta::Deleted(Deleted::Observed(object(BRIEF, 4))),
        ]),
        Batch::SyncAll,
        deltas(&[Delta::Deleted(Deleted::Observed(object("b", 4)))]),
        Batch::ReplacedAll(Listing {
            objects: vec![object("b", 5)],
            ..Listing::default()
        }),
    ]
}

/// A handler that checks whether what it is told makes sense.
#[derive(Default)]
struct Model {
    believed: BTreeMap<Key, Obj>,
    late_initials: usize,
    told_live: bool,
    /// The number of additions of the object that came and went.
    brief_adds: usize,
}

impl Model {
    fn hear(&mut self, note: Note) {
        match note {
            Note::Add { object, is_initial } => {
                self.late_initials += usize::from(is_initial && self.told_live);
                self.told_live |= !is_initial;
                self.brief_adds += usize::from(object.name() == BRIEF);
                assert!(
                    self.believed.insert(object.key(), object).is_none(),
                    "added twice"
                );
            }
            Note::Update { old, new } => {
                self.told_live = true;
                assert_eq!(self.believed.insert(new.key(), new), Some(old), "a gap");
            }
            Note::Delete(deleted) => {
                self.told_live = true;
                assert!(
                    self.believed.remove(&deleted.key()).is_some(),
                    "never added"
                );
            }
        }
    }
}

/// All orders of acts of the writer and the late handler.
fn schedules(writer: usize, handler: usize) -> Vec<Vec<bool>> {
    match (writer, handler) {
        (0, 0) => vec![Vec::new()],
        _ => {
            let mut all = Vec::new();
            for (is_writer, left) in [
                (true, writer.checked_sub(1).map(|writer| (writer, handler))),
                (
                    false,
                    handler.checked_sub(1).map(|handler| (writer, handler)),
                ),
            ] {
                let rest = left.map_or_else(Vec::new, |(w, h)| schedules(w, h));
                all.extend(
                    rest.into_iter()
                        .map(|rest| [vec![is_writer], rest].concat()),
                );
            }
            all
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_order_of_writing_joining_and_telling_ends_with_the_same_belief() {
    const HANDLER_ACTS: usize = 7;
    let schedules = schedules(batches().len(), HANDLER_ACTS);
    assert_eq!(schedules.len(), 792);
    for (schedule, limit) in schedules
        .iter()
        .flat_map(|it| [1, 2, 100].map(|limit| (it, limit)))
    {
        let store = Arc::new(Indexer::new());
        let fanout = Fanout::new(store.clone(), Duration::from_secs(1));
        let listener = Arc::new(Listener::new(limit, InformerMetrics::default()));
        let (mut batches, mut model, mut has_joined) =
            (batches().into_iter(), Model::default(), false);
        let mut batches_before_joining = 0;
        for is_writer in schedule {
            if *is_writer {
                tokio::time::advance(Duration::from_secs(2)).await;
                fanout.should_resync();
                fanout.apply(&mut batches.next().expect("one per act"));
                batches_before_joining += usize::from(!has_joined);
            } else if has_joined {
                listener
                    .try_next()
                    .into_iter()
                    .for_each(|note| model.hear(note));
            } else {
                fanout
                    .add(&listener, Box::pin(async {}), None)
                    .expect("not stopped");
                has_joined = true;
            }
        }
        while let Some(note) = listener.try_next() {
            model.hear(note);
        }
        let stored: BTreeMap<Key, Obj> = store
            .snapshot()
            .iter()
            .map(|object| (object.key(), object))
            .collect();
        assert_eq!(
            model.believed, stored,
            "{schedule:?} with a limit of {limit}"
        );
        assert_eq!(model.late_initials, 0, "{schedule:?}");
        // Its deletion was heard, too: it is believed no more.
        let is_due = batches_before_joining <= BRIEF_BATCH;
        assert_eq!(model.brief_adds, usize::from(is_due), "{schedule:?}");
        assert!(*listener.has_synced().borrow(), "{schedule:?}");
    }
}
