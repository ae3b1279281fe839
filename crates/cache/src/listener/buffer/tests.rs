//! Notifications beyond the limit of a buffer.

use windlass_core::doc;

use super::*;

fn object(name: &str, version: u64) -> Obj {
    let metadata = doc!({ "name": name, "uid": name, "resourceVersion": version.to_string() });
    Obj::new(doc!({ "metadata": metadata })).expect("named")
}

/// The same object, marked for deletion.
fn deleting(name: &str, version: u64) -> Obj {
    let metadata = doc!({
        "name": name,
        "uid": name,
        "resourceVersion": version.to_string(),
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    });
    Obj::new(doc!({ "metadata": metadata })).expect("named")
}

fn add(object: Obj) -> Note {
    Note::Add {
        object,
        is_initial: false,
    }
}

fn update(old: Obj, new: Obj) -> Note {
    Note::Update { old, new }
}

fn delete(object: Obj) -> Note {
    Note::Delete(Deleted::Observed(object))
}

/// A buffer that merges from its second note on, with what was pushed after the first.
fn crowded(notes: impl IntoIterator<Item = Note>) -> Buffer {
    let mut buffer = Buffer::new(1);
    buffer.push(add(object("first", 1)));
    notes.into_iter().for_each(|note| buffer.push(note));
    buffer
}

/// Everything that is told after the first note.
fn told(buffer: &mut Buffer) -> Vec<Note> {
    assert_eq!(buffer.pop(), Some(add(object("first", 1))));
    std::iter::from_fn(|| buffer.pop()).collect()
}

#[test]
fn an_object_that_came_and_went_is_told_of_with_its_last_states() {
    let mut buffer = crowded([
        add(object("a", 2)),
        update(object("a", 2), object("a", 3)),
        delete(object("a", 4)),
    ]);
    assert_eq!((buffer.len(), buffer.coalesced()), (2, 1));
    let expected = [add(object("a", 3)), delete(object("a", 4))];
    assert_eq!(told(&mut buffer), expected);
    assert!(buffer.pop().is_none() && buffer.is_idle());
}

#[test]
fn a_mark_for_deletion_is_not_merged_into_the_addition() {
    let mut buffer = crowded([
        add(object("a", 2)),
        update(object("a", 2), deleting("a", 3)),
        update(deleting("a", 3), deleting("a", 4)),
    ]);
    let expected = [
        add(object("a", 2)),
        update(object("a", 2), deleting("a", 4)),
    ];
    assert_eq!(told(&mut buffer), expected);

    let mut buffer = crowded([
        add(object("a", 2)),
        update(object("a", 2), deleting("a", 3)),
        delete(deleting("a", 4)),
    ]);
    let expected = [add(object("a", 2)), delete(deleting("a", 4))];
    assert_eq!(told(&mut buffer), expected);
}

#[test]
fn an_object_that_came_marked_for_deletion_is_added_so() {
    let mut buffer = crowded([
        add(deleting("a", 2)),
        update(deleting("a", 2), deleting("a", 3)),
    ]);
    assert_eq!(told(&mut buffer), [add(deleting("a", 3))]);
}

#[test]
fn the_end_of_a_life_whose_beginning_was_just_told_still_takes_updates() {
    let mut buffer = crowded([
        add(object("a", 2)),
        update(object("a", 2), deleting("a", 3)),
    ]);
    buffer.push(add(object("b", 4)));
    assert_eq!(buffer.pop(), Some(add(object("first", 1))));
    assert_eq!(buffer.pop(), Some(add(object("a", 2))));
    buffer.push(delete(deleting("a", 5)));
    let rest: Vec<Note> = std::iter::from_fn(|| buffer.pop()).collect();
    assert_eq!(rest, [delete(deleting("a", 5)), add(object("b", 4))]);
}

#[test]
fn two_lives_of_one_name_stay_two() {
    let mut buffer = Buffer::new(2);
    buffer.push(add(object("first", 1)));
    buffer.push(add(object("second", 1)));
    for version in [2, 4] {
        buffer.push(add(object("a", version)));
        buffer.push(delete(object("a", version + 1)));
    }
    assert_eq!(buffer.len(), 4);
    let told: Vec<Note> = std::iter::from_fn(|| buffer.pop()).skip(2).collect();
    let lives = [
        add(object("a", 2)),
        delete(object("a", 3)),
        add(object("a", 4)),
        delete(object("a", 5)),
    ];
    assert_eq!(told, lives);
}

#[test]
fn what_came_and_went_is_bounded_and_told_again_once_there_is_room() {
    let mut buffer = Buffer::new(4);
    (0..4).for_each(|n| buffer.push(add(object(&format!("kept-{n}"), 1))));
    let pass = |buffer: &mut Buffer, name: &str| {
        buffer.push(add(object(name, 2)));
        buffer.push(update(object(name, 2), deleting(name, 3)));
        buffer.push(delete(deleting(name, 4)));
    };
    (0..1000).for_each(|n| pass(&mut buffer, &format!("brief-{n}")));
    assert_eq!(buffer.len(), 4 + 4);
    assert_eq!(buffer.coalesced(), 4 + 996 * 3);

    let told: Vec<Note> = std::iter::from_fn(|| buffer.pop()).collect();
    assert_eq!(told.len(), 4 + 4 * 2);
    assert_eq!(buffer.whole_lives, 0);
    (0..4).for_each(|n| buffer.push(add(object(&format!("more-{n}"), 5))));
    pass(&mut buffer, "brief-again");
    let told: Vec<Note> = std::iter::from_fn(|| buffer.pop()).skip(4).collect();
    let expected = [
        add(object("brief-again", 2)),
        delete(deleting("brief-again", 4)),
    ];
    assert_eq!(told, expected);
}
