use std::collections::BTreeMap;

use proptest::prelude::*;
use windlass_core::{Doc, Key};

use super::*;

fn entry(name: u32, value: i64) -> Arc<Entry> {
    let key = Key::cluster(&format!("{name:05}"));
    Entry::stamped(&key, &Doc::from(value), 1)
}

fn content(map: &Map) -> Vec<(String, i64)> {
    let brief = |entry: &Arc<Entry>| (entry.key.to_string(), entry.doc().as_i64().unwrap());
    map.range("", String::new()).map(brief).collect()
}

fn check_shape(map: &Map) {
    assert!(
        map.chunks
            .iter()
            .all(|chunk| !chunk.is_empty() && chunk.len() <= CHUNK_LIMIT)
    );
    assert_eq!(
        map.chunks.iter().map(|chunk| chunk.len()).sum::<usize>(),
        map.len()
    );
}

proptest! {
    #[test]
    fn a_map_behaves_like_a_tree_and_its_clones_do_not_change(
        steps in prop::collection::vec((0..1_000u32, any::<Option<i64>>()), 1..2_000),
        clone_at in 0..2_000usize,
    ) {
        let (mut map, mut tree) = (Map::default(), BTreeMap::new());
        let mut cloned = None;
        for (index, (name, value)) in steps.into_iter().enumerate() {
            if index == clone_at {
                cloned = Some((map.clone(), content(&map)));
            }
            let key = format!("{name:05}");
            let (before, expected) = match value {
                Some(value) => (map.insert(entry(name, value)), tree.insert(key.clone(), value)),
                None => (map.remove(&key), tree.remove(&key)),
            };
            prop_assert_eq!(before.map(|entry| entry.doc().as_i64().unwrap()), expected);
            let found = map.get(&key).map(|entry| entry.doc().as_i64().unwrap());
            prop_assert_eq!(found, tree.get(&key).copied());
        }
        check_shape(&map);
        prop_assert!(content(&map).into_iter().eq(tree));
        if let Some((clone, before)) = cloned {
            prop_assert_eq!(content(&clone), before);
        }
    }

    #[test]
    fn what_two_states_do_not_share_is_their_difference(
        before in prop::collection::vec((0..1_000u32, 0..9i64), 0..900),
        after in prop::collection::vec((0..1_000u32, any::<Option<i64>>()), 0..30),
    ) {
        let mut old = Map::default();
        for (name, value) in before {
            old.insert(entry(name, value));
        }
        let mut new = old.clone();
        prop_assert!(new.is_same(&old));
        let mut touched = BTreeMap::new();
        for (name, value) in after {
            match value {
                Some(value) => drop(new.insert(entry(name, value))),
                None => drop(new.remove(&format!("{name:05}"))),
            }
            touched.insert(format!("{name:05}"), value);
        }
        let keys = |entries: Vec<Arc<Entry>>| -> Vec<String> {
            entries.iter().map(|entry| entry.key.to_string()).collect()
        };
        let (mut gone, mut come) = (Vec::new(), Vec::new());
        for (key, value) in &touched {
            if old.get(key).is_some() {
                gone.push(key.clone());
            }
            if value.is_some() {
                come.push(key.clone());
            }
        }
        prop_assert_eq!(keys(old.not_in(&new)), gone);
        prop_assert_eq!(keys(new.not_in(&old)), come);
    }

    #[test]
    fn a_range_is_what_begins_with_the_prefix_from_the_start_on(
        names in prop::collection::btree_set(0..100_000u32, 0..700),
        start in 0..100_000u32,
        prefix in "[0-9]{0,3}",
    ) {
        let map = Map::from_sorted(names.iter().map(|name| entry(*name, 0)).collect());
        check_shape(&map);
        let start = format!("{start:05}");
        let range = map.range(&start, prefix.clone());
        let expected: Vec<String> = names
            .iter()
            .map(|name| format!("{name:05}"))
            .filter(|key| *key >= start && key.starts_with(&prefix))
            .collect();
        prop_assert_eq!(range.count_left(), expected.len());
        let found: Vec<String> = range.map(|entry| entry.key.to_string()).collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn names_that_come_in_order_fill_their_chunks() {
    let mut map = Map::default();
    (0..10_000).for_each(|name| assert!(map.insert(entry(name, 0)).is_none()));
    assert_eq!(map.chunks.len(), 10_000_usize.div_ceil(CHUNK_LIMIT));
}

#[test]
fn a_map_from_which_most_was_removed_has_few_chunks() {
    let mut map = Map::from_sorted((0..10_000).map(|name| entry(name, 0)).collect());
    for name in (0..10_000).filter(|name| name % 100 != 0) {
        assert!(map.remove(&format!("{name:05}")).is_some());
    }
    check_shape(&map);
    assert!(
        map.chunks.len() <= 8,
        "{} chunks for {} entries",
        map.chunks.len(),
        map.len()
    );
}
