//! Changes of objects, and predicates over them.

use windlass_cache::Obj;

/// A change of an object: added, updated, deleted, or repeated by a resync.
///
/// One of the two states is always there: handlers are told of objects, and an event without one
/// ends at the decoder of the watch.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The state before; `None` if the object was added.
    pub old: Option<&'a Obj>,
    /// The state now; `None` if the object was deleted.
    pub new: Option<&'a Obj>,
    /// True if the object was there when the controller started.
    pub is_initial: bool,
}

impl<'a> Change<'a> {
    /// The object in the state that is known last.
    #[must_use]
    pub fn object(&self) -> Option<&'a Obj> {
        self.new.or(self.old)
    }

    /// Returns true if nothing changed: a resync repeats what is known.
    #[must_use]
    pub fn is_resync(&self) -> bool {
        matches!((self.old, self.new), (Some(old), Some(new)) if revision(old) == revision(new))
    }

    /// Returns true if part of an object differs. Additions and deletions always do.
    fn differs<T: PartialEq>(&self, part: impl Fn(&'a Obj) -> T) -> bool {
        match (self.old, self.new) {
            (Some(old), Some(new)) => part(old) != part(new),
            _ => true,
        }
    }
}

fn revision(object: &Obj) -> &str {
    object.meta().resource_version()
}

/// Filters for what controllers ask most. All but the last let every addition and deletion pass.
pub mod filters {
    use windlass_core::Selector;

    use super::{Change, revision};

    /// Updates that change anything: not resyncs.
    #[must_use]
    pub fn revision_changed(change: &Change<'_>) -> bool {
        change.differs(revision)
    }

    /// Updates that change what is desired, for kinds that count it. Resyncs do not.
    #[must_use]
    pub fn generation_changed(change: &Change<'_>) -> bool {
        change.differs(|object| object.meta().generation())
    }

    /// Updates that change labels.
    #[must_use]
    pub fn labels_changed(change: &Change<'_>) -> bool {
        change.differs(|object| object.meta().field("labels"))
    }

    /// Updates that change annotations.
    #[must_use]
    pub fn annotations_changed(change: &Change<'_>) -> bool {
        change.differs(|object| object.meta().field("annotations"))
    }

    /// Objects whose labels match, in the state that is known last.
    pub fn labelled(selector: Selector) -> impl Fn(&Change<'_>) -> bool + Send + Sync + 'static {
        move |change| {
            change
                .object()
                .is_some_and(|object| selector.matches(&object.labels()))
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::{Doc, doc};

    use super::*;

    fn object(revision: &str, generation: i64, label: &str, annotation: &str) -> Obj {
        let doc: Doc = doc!({
            "metadata": {
                "name": "web", "resourceVersion": revision, "generation": generation,
                "labels": { "a": label }, "annotations": { "a": annotation }
            }
        });
        Obj::new(doc).expect("it has a name")
    }

    #[test]
    fn filters_look_at_one_part_of_an_update() {
        let old = object("1", 1, "x", "x");
        let cases = [
            (object("1", 1, "x", "x"), [false, false, false, false]),
            (object("2", 1, "x", "x"), [true, false, false, false]),
            (object("2", 2, "x", "x"), [true, true, false, false]),
            (object("2", 1, "y", "x"), [true, false, true, false]),
            (object("2", 1, "x", "y"), [true, false, false, true]),
        ];
        let filters: [fn(&Change<'_>) -> bool; 4] = [
            filters::revision_changed,
            filters::generation_changed,
            filters::labels_changed,
            filters::annotations_changed,
        ];
        for (new, expected) in &cases {
            let update = Change {
                old: Some(&old),
                new: Some(new),
                is_initial: false,
            };
            assert_eq!(filters.map(|filter| filter(&update)), *expected, "{new:?}");
            assert_eq!(update.is_resync(), new.meta().resource_version() == "1");
        }
        for change in [
            Change {
                old: None,
                new: Some(&old),
                is_initial: false,
            },
            Change {
                old: Some(&old),
                new: None,
                is_initial: false,
            },
        ] {
            assert_eq!(filters.map(|filter| filter(&change)), [true; 4]);
        }
    }

    #[test]
    fn a_selector_looks_at_what_is_known_last() {
        let (x, y) = (object("1", 1, "x", ""), object("2", 1, "y", ""));
        let passes = filters::labelled("a=y".parse().expect("it is a selector"));
        assert!(passes(&Change {
            old: Some(&x),
            new: Some(&y),
            is_initial: false
        }));
        assert!(!passes(&Change {
            old: Some(&y),
            new: Some(&x),
            is_initial: false
        }));
        assert!(passes(&Change {
            old: Some(&y),
            new: None,
            is_initial: false
        }));
    }
}
