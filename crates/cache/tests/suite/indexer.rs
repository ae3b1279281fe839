//! The store, its indices and the listers over it.

use windlass_cache::{Deleted, IndexConflict, Indexer, Obj, Replacement, UnnamedObject, functions};
use windlass_core::{Doc, Key, Revision, Selector, Str, doc};

fn object(namespace: &str, name: &str, version: u64, users: &[&str]) -> Obj {
    let users: Vec<Doc> = users.iter().map(|user| Doc::from(*user)).collect();
    let metadata = doc!({
        "name": name, "namespace": namespace, "uid": format!("{namespace}-{name}"),
        "resourceVersion": version.to_string(), "labels": { "app": name }
    });
    Obj::new(doc!({ "metadata": metadata, "users": users })).unwrap()
}

fn names(objects: &[Obj]) -> Vec<&str> {
    objects.iter().map(Obj::name).collect()
}

fn by_user(store: &Indexer, user: &str) -> Vec<String> {
    let found = store.snapshot().by_index("user", user).unwrap();
    found
        .iter()
        .map(|object| object.name().to_owned())
        .collect()
}

fn key(text: &str) -> Key {
    text.parse().unwrap()
}

fn revision(number: u64) -> Option<Revision> {
    Revision::try_from(number).ok()
}

#[test]
fn an_index_value_disappears_with_its_last_object() {
    let store = Indexer::new();
    store.add_index("user", functions::field("/users")).unwrap();
    store.put(&object("a", "one", 1, &["ernie"]));
    store.put(&object("a", "two", 2, &["ernie", "bert"]));
    store.remove(&key("a/one"));
    assert_eq!(
        store.snapshot().index_values("user"),
        ["bert", "ernie"].map(Str::new)
    );
    store.put(&object("a", "two", 3, &["elmo"]));
    assert_eq!(store.snapshot().index_values("user"), [Str::new("elmo")]);
    store.remove(&key("a/two"));
    assert!(store.snapshot().index_values("user").is_empty());
}

#[test]
fn an_index_that_is_added_later_is_complete_at_once() {
    let store = Indexer::new();
    store.put(&object("a", "one", 1, &["ernie"]));
    store.put(&object("a", "two", 2, &["ernie"]));
    store.add_index("user", functions::field("/users")).unwrap();
    assert_eq!(by_user(&store, "ernie"), ["one", "two"]);
}

#[test]
fn a_name_that_is_taken_adds_no_index_at_all() {
    let store = Indexer::new();
    store.add_index("user", functions::owner_uid).unwrap();
    let conflict = IndexConflict {
        names: vec!["user".to_owned()],
    };
    let indices: [(&str, functions::IndexFn); 2] = [
        ("fresh", std::sync::Arc::new(functions::owner_uid)),
        ("user", std::sync::Arc::new(functions::owner_uid)),
    ];
    assert_eq!(store.add_indices(indices), Err(conflict));
    assert!(store.snapshot().by_index("fresh", "x").is_err());
    assert!(
        store
            .add_index(functions::NAMESPACE_INDEX, functions::owner_uid)
            .is_err()
    );
}

#[test]
fn an_unknown_index_is_an_error_but_has_no_values() {
    let snapshot = Indexer::new().snapshot();
    let error = snapshot.by_index("nope", "x").unwrap_err();
    assert_eq!(error.to_string(), "index with name nope does not exist");
    assert!(snapshot.index_keys("nope", "x").is_err());
    assert!(snapshot.index_values("nope").is_empty());
}

#[test]
fn objects_are_found_under_each_of_their_values() {
    let store = Indexer::new();
    store.add_index("user", functions::field("/users")).unwrap();
    store.put(&object("a", "one", 1, &["ernie", "bert"]));
    store.put(&object("a", "two", 2, &["bert", "oscar"]));
    store.put(&object("a", "tre", 3, &["ernie", "elmo"]));
    let expect = |expected: [(&str, &[&str]); 5]| {
        for (user, objects) in expected {
            assert_eq!(by_user(&store, user), objects, "of {user}");
        }
    };
    expect([
        ("ernie", &["one", "tre"]),
        ("bert", &["one", "two"]),
        ("elmo", &["tre"]),
        ("oscar", &["two"]),
        ("grover", &[]),
    ]);
    store.remove(&key("a/tre"));
    expect([
        ("ernie", &["one"]),
        ("bert", &["one", "two"]),
        ("elmo", &[]),
        ("oscar", &["two"]),
        ("grover", &[]),
    ]);
    store.put(&object("a", "two", 4, &["grover", "grover"]));
    expect([
        ("ernie", &["one"]),
        ("bert", &["one"]),
        ("elmo", &[]),
        ("oscar", &[]),
        ("grover", &["two"]),
    ]);
}

#[test]
fn the_built_in_functions_read_owners_labels_and_fields() {
    let pod = Obj::new(doc!({
        "metadata": {
            "name": "p", "namespace": "a", "labels": { "app": "web" },
            "ownerReferences": [
                { "uid": "first-owner-uid", "kind": "Foo", "name": "x", "apiVersion": "v1" },
                { "uid": "second-owner-uid", "kind": "Bar", "name": "y", "apiVersion": "v1", "controller": true }
            ]
        },
        "spec": { "nodeName": "n1", "priority": 7, "empty": "", "object": {} }
    }))
    .unwrap();
    let text = |values: Vec<Str>| values.iter().map(Str::to_string).collect::<Vec<_>>();
    assert_eq!(
        text(functions::owner_uid(&pod)),
        ["first-owner-uid", "second-owner-uid"]
    );
    assert_eq!(text(functions::controller_uid(&pod)), ["second-owner-uid"]);
    assert_eq!(text(functions::label("app")(&pod)), ["web"]);
    assert_eq!(text(functions::label("none")(&pod)), [""; 0]);
    assert_eq!(text(functions::field("/spec/nodeName")(&pod)), ["n1"]);
    assert_eq!(text(functions::field("/spec/priority")(&pod)), ["7"]);
    assert_eq!(text(functions::field("/spec/empty")(&pod)), [""; 0]);
    assert_eq!(text(functions::field("/spec/object")(&pod)), [""; 0]);
}

#[test]
fn an_index_function_that_panics_is_counted_and_leaves_its_object_out() {
    let store = Indexer::new();
    store
        .add_index("fragile", |object| {
            assert!(object.name() != "bad", "as the test wants it");
            vec![Str::new("v")]
        })
        .unwrap();
    store.put(&object("a", "bad", 1, &[]));
    store.put(&object("a", "good", 2, &[]));
    assert_eq!(
        names(&store.snapshot().by_index("fragile", "v").unwrap()),
        ["good"]
    );
    assert_eq!((store.snapshot().len(), store.unindexed()), (2, 1));
}

#[test]
fn the_revision_follows_the_objects_and_never_goes_back() {
    let store = Indexer::new();
    let at = |store: &Indexer| store.snapshot().revision().cloned();
    assert_eq!(at(&store), None);
    for (version, expected) in [(10, 10), (10, 10), (20, 20), (15, 20), (40, 40)] {
        store.put(&object("a", "one", version, &[]));
        assert_eq!(at(&store), revision(expected));
    }
    store.put(&Obj::new(doc!({ "metadata": { "name": "plain" } })).unwrap());
    store.remove(&key("a/one"));
    assert_eq!(at(&store), revision(40));
    store.write(|transaction| {
        transaction.put(&object("a", "two", 45, &[]));
        transaction.remove("a", "two");
        transaction.advance(revision(50));
    });
    assert_eq!(at(&store), revision(50));
}

#[test]
fn a_transaction_shows_all_of_its_changes_or_none() {
    let store = Indexer::new();
    store.put(&object("a", "one", 1, &[]));
    let before = store.snapshot();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        store.write(|transaction| {
            transaction.remove("a", "one");
            panic!("as the test wants it");
        });
    }));
    assert!(panicked.is_err());
    assert_eq!(store.snapshot().len(), 1);
    store.write(|transaction| {
        transaction.remove("a", "one");
        transaction.put(&object("a", "two", 2, &[]));
        assert!(transaction.get("a", "two").is_some());
        assert_eq!(names(&store.snapshot().iter().collect::<Vec<_>>()), ["one"]);
    });
    assert_eq!(names(&store.snapshot().iter().collect::<Vec<_>>()), ["two"]);
    assert_eq!(names(&before.iter().collect::<Vec<_>>()), ["one"]);
}

#[test]
fn a_list_that_changes_nothing_keeps_the_stored_objects() {
    let store = Indexer::new();
    let list = || vec![object("a", "one", 1, &[]), object("b", "two", 2, &[])];
    store.write(|transaction| transaction.replace(list()));
    let before = store.snapshot();
    let changes = store.write(|transaction| transaction.replace(list()));
    assert_eq!(changes, Replacement::default());
    let both = before
        .iter()
        .zip(store.snapshot().iter().collect::<Vec<_>>());
    assert!(both.into_iter().all(|(old, new)| old.ptr_eq(&new)));
}

#[test]
fn a_list_says_what_it_changed() {
    let store = Indexer::new();
    let old = vec![
        object("a", "1", 1, &[]),
        object("a", "2", 1, &[]),
        object("a", "3", 1, &[]),
    ];
    store.write(|transaction| transaction.replace(old));
    // The last of two objects with one key counts.
    let new = vec![
        object("a", "4", 4, &[]),
        object("a", "2", 2, &[]),
        object("a", "2", 3, &[]),
        object("a", "1", 1, &[]),
    ];
    let changes = store.write(|transaction| transaction.replace(new));
    assert_eq!(names(&changes.added), ["4"]);
    assert_eq!(names(&changes.removed), ["3"]);
    assert_eq!(
        changes.updated,
        [(object("a", "2", 1, &[]), object("a", "2", 3, &[]))]
    );
}

#[test]
fn an_object_without_a_name_is_refused() {
    assert_eq!(
        Obj::<Doc>::new(doc!({ "metadata": {} })).unwrap_err(),
        UnnamedObject
    );
    assert_eq!(Obj::<Doc>::new(Doc::from(3)).unwrap_err(), UnnamedObject);
}

#[test]
fn lists_are_in_the_order_of_keys() {
    let store = Indexer::new();
    for text in ["a/z", "a-b/x", "a/a", "b/c", "a.b/x"] {
        let key = key(text);
        store.put(&object(key.namespace().unwrap(), key.name(), 1, &[]));
    }
    let snapshot = store.snapshot();
    let keys: Vec<Key> = snapshot.iter().map(|object| object.key()).collect();
    assert!(keys.is_sorted(), "{keys:?}");
    let in_a: Vec<_> = snapshot
        .namespaced("a")
        .map(|object| object.name().to_owned())
        .collect();
    assert_eq!(in_a, ["a", "z"]);
    assert_eq!(
        snapshot.index_keys("namespace", "a").unwrap(),
        [key("a/a"), key("a/z")]
    );
    assert_eq!(
        snapshot.index_values("namespace"),
        ["a-b", "a.b", "a", "b"].map(Str::new)
    );
    assert!(snapshot.namespaced("").next().is_none());
}

#[test]
fn selectors_choose_what_is_listed() {
    let store = Indexer::new();
    store.put(&object("a", "web", 1, &[]));
    store.put(&object("a", "db", 2, &[]));
    store.put(&object("b", "web", 3, &[]));
    let snapshot = store.snapshot();
    let list = |namespace: &str, selector: &Selector| snapshot.list(namespace, selector).len();
    let web: Selector = "app=web".parse().unwrap();
    assert_eq!(list("", &Selector::everything()), 3);
    assert_eq!(list("", &Selector::nothing()), 0);
    assert_eq!(
        (list("", &web), list("a", &web), list("c", &web)),
        (2, 1, 0)
    );
}

#[test]
fn an_object_tells_its_metadata_and_decodes_to_any_type() {
    #[derive(serde::Deserialize)]
    struct Users {
        users: Vec<String>,
    }
    let object: Obj<Users> = object("a", "one", 7, &["ernie"]).cast();
    assert_eq!((object.name(), object.namespace()), ("one", "a"));
    assert_eq!(object.key(), key("a/one"));
    assert_eq!(object.uid().as_str(), "a-one");
    assert_eq!(object.labels().value("app"), Some("one"));
    assert_eq!(object.owner_refs().count(), 0);
    assert_eq!(object.revision(), revision(7));
    assert_eq!(object.decode().unwrap().users, ["ernie"]);
    assert_eq!(object.view::<Doc>().unwrap(), *object.doc());
    assert_eq!(format!("{object:?}"), "Obj(a/one@7)");
    assert_eq!(Deleted::Tombstone(object).key(), key("a/one"));
}

#[test]
fn keys_are_read_as_they_are_written() {
    for (text, parts) in [
        ("ns/name", Some((Some("ns"), "name"))),
        ("name", Some((None, "name"))),
    ] {
        let key: Option<Key> = text.parse().ok();
        assert_eq!(key.as_ref().map(|key| (key.namespace(), key.name())), parts);
        assert_eq!(key.unwrap().to_string(), text);
    }
    let error = "a/b/c".parse::<Key>().unwrap_err();
    assert_eq!(error.to_string(), "unexpected key format: \"a/b/c\"");
}
