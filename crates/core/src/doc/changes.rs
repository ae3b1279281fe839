//! Changing many fields of an object at the cost of one copy.

use std::cmp::Ordering;

use super::{Doc, Object, Str};

impl Object {
    /// This object with many fields set (`Some`) or removed (`None`), in time linear in both. The
    /// order of the changes is free, and the last change of a key counts.
    ///
    /// [`Self::with`] and [`Self::without`] copy the whole object; a loop over them is quadratic.
    ///
    /// ```
    /// use windlass_core::{doc, Doc, Object, Str};
    /// let object = doc!({ "a": 1, "b": 2 });
    /// let changes = vec![(Str::new("c"), Some(Doc::from(3))), (Str::new("a"), None)];
    /// let changed = object.as_object().unwrap().with_changes(changes);
    /// assert_eq!(Doc::from(changed), doc!({ "b": 2, "c": 3 }));
    /// ```
    #[must_use]
    pub fn with_changes(&self, mut changes: Vec<(Str, Option<Doc>)>) -> Self {
        if changes.is_empty() {
            return self.clone();
        }
        // Stable, so that the last change of a key is the last of its run.
        changes.sort_by(|(a, _), (b, _)| compare(a, b));
        let room = self.len() + changes.len();
        let (mut keys, mut values) = (Vec::with_capacity(room), Vec::with_capacity(room));
        let mut keep = |key: &Str, value: Doc| {
            keys.push(key.clone());
            values.push(value);
        };
        let mut old = self.iter().peekable();
        let mut changes = changes.into_iter().peekable();
        while let Some((key, value)) = changes.next() {
            if changes.peek().is_some_and(|(next, _)| *next == key) {
                continue;
            }
            while let Some((before, kept)) = old.next_if(|(known, _)| compare(known, &key).is_lt())
            {
                keep(before, kept.clone());
            }
            old.next_if(|(known, _)| **known == key);
            if let Some(value) = value {
                keep(&key, value);
            }
        }
        for (key, kept) in old {
            keep(key, kept.clone());
        }
        Self::from_sorted(&keys, &values)
    }
}

/// Equal keys are one node, which spares a look at long ones.
fn compare(a: &Str, b: &Str) -> Ordering {
    if a == b { Ordering::Equal } else { a.cmp(b) }
}

#[cfg(test)]
#[expect(
    clippy::vec_init_then_push,
    reason = "the macro is of this crate, and so is what it expands to"
)]
mod tests {
    use crate::{Doc, Object, Str, doc};

    fn changed(object: &Doc, changes: &[(&str, Option<i64>)]) -> Doc {
        let changes = changes.iter();
        let changes = changes.map(|(key, value)| (Str::new(key), value.map(Doc::from)));
        let object = object.as_object().unwrap();
        object.with_changes(changes.collect()).into()
    }

    #[test]
    fn changes_are_what_the_same_steps_one_by_one_are() {
        let object = doc!({ "b": 1, "d": 2, "f": 3 });
        assert_eq!(changed(&object, &[]), object);
        let changes = [
            ("a", Some(0)),
            ("d", None),
            ("g", Some(4)),
            ("c", None),
            ("f", Some(9)),
            ("b", None),
            ("b", Some(7)),
            ("a", None),
        ];
        let start = object.as_object().unwrap().clone();
        let steps = changes
            .iter()
            .fold(start, |object, (key, value)| match value {
                Some(value) => object.with(key, (*value).into()),
                None => object.without(key),
            });
        assert_eq!(changed(&object, &changes), Doc::from(steps));
        assert_eq!(changed(&object, &changes), doc!({ "b": 7, "f": 9, "g": 4 }));
        let none = Doc::from(Object::empty());
        assert_eq!(changed(&none, &[("x", None)]), none);
    }
}
