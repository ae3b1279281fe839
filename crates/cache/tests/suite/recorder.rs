//! A handler that remembers what it was told.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use windlass_cache::{Deleted, Handler, Obj};
use windlass_core::{Doc, Key};

/// A call of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Add(Obj, bool),
    Update(Obj, Obj),
    Delete(Deleted),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Arc<Mutex<Vec<Told>>>);

impl Handler<Doc> for Recorder {
    async fn on_add(&self, object: Obj, is_initial: bool) {
        self.0.lock().push(Told::Add(object, is_initial));
    }

    async fn on_update(&self, old: Obj, new: Obj) {
        self.0.lock().push(Told::Update(old, new));
    }

    async fn on_delete(&self, deleted: Deleted) {
        self.0.lock().push(Told::Delete(deleted));
    }
}

impl Recorder {
    pub(crate) fn told(&self) -> Vec<Told> {
        self.0.lock().clone()
    }

    pub(crate) fn forget(&self) {
        self.0.lock().clear();
    }

    /// Everything in short: `+a` for an initial add, `a` for a later one, `~` and `-` for updates
    /// and deletions, `x` for tombstones.
    pub(crate) fn short(&self) -> Vec<String> {
        let short = |told: &Told| match told {
            Told::Add(object, true) => format!("+{}", object.name()),
            Told::Add(object, false) => object.name().to_owned(),
            Told::Update(_, new) => format!("~{}", new.name()),
            Told::Delete(Deleted::Observed(object)) => format!("-{}", object.name()),
            Told::Delete(Deleted::Tombstone(object)) => format!("x{}", object.name()),
        };
        self.told().iter().map(short).collect()
    }

    /// The objects that exist according to the handler. Panics if its calls are not, for each
    /// object, an addition, updates that each start where the call before ended, and a deletion.
    pub(crate) fn belief(&self) -> BTreeMap<Key, Obj> {
        let mut believed: BTreeMap<Key, Obj> = BTreeMap::new();
        for told in self.told() {
            match told {
                Told::Add(object, _) => {
                    let before = believed.insert(object.key(), object.clone());
                    assert_eq!(before, None, "{object:?} was added twice");
                }
                Told::Update(old, new) => {
                    let before = believed.insert(new.key(), new);
                    assert_eq!(
                        before,
                        Some(old),
                        "an update starts where the call before ended"
                    );
                }
                Told::Delete(deleted) => {
                    let before = believed.remove(&deleted.key());
                    let before = before.expect("a deletion follows an addition");
                    assert_eq!(before.uid(), deleted.object().uid());
                    if deleted.is_tombstone() {
                        assert_eq!(
                            &before,
                            deleted.object(),
                            "a tombstone is the last known state"
                        );
                    }
                }
            }
        }
        believed
    }
}
