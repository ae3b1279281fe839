//! What a write may rely on.

use std::convert::Infallible;

use windlass_core::Doc;
use windlass_store::{Change, Outcome, WriteError};

use crate::support::{delete, drain, key, memory, nodes, object, pods, put, value};

#[tokio::test]
async fn the_first_write_gets_revision_two_and_all_resources_share_the_counter() {
    let store = memory();
    assert_eq!(store.revision(), 1);
    assert_eq!(put(&store, &pods(), "a", 1).await.revision, 2);
    assert_eq!(put(&store, &nodes(), "a", 1).await.revision, 3);
    assert_eq!(store.revision(), 3);
}

#[tokio::test]
async fn a_written_object_carries_its_revision() {
    let store = memory();
    let entry = put(&store, &pods(), "a", 1).await;
    assert_eq!(entry.doc().str_at("/metadata/resourceVersion"), "2");
    assert_eq!(store.get(&pods(), &key("a")), Some(entry));
}

#[tokio::test]
async fn a_put_that_changes_nothing_takes_no_revision_and_makes_no_event() {
    let store = memory();
    let first = put(&store, &pods(), "a", 1).await;
    let mut watch = store.watch(&pods(), store.revision()).unwrap();
    for doc in [
        object("a", 1),
        first.doc().clone(),
        first.doc().with("/metadata/resourceVersion", "99").unwrap(),
    ] {
        let change = |_: Option<&_>| Ok::<_, Infallible>(Change::put(doc));
        let outcome = store.update(&pods(), &key("a"), change).await.unwrap();
        assert_eq!(outcome, Outcome::Unchanged(Some(first.clone())));
    }
    assert_eq!(store.revision(), 2);
    assert_eq!(drain(&mut watch), []);
}

#[tokio::test]
async fn a_refused_write_has_no_effect() {
    let store = memory();
    put(&store, &pods(), "a", 1).await;
    let refuse = |current: Option<&_>| {
        if current.is_some() {
            Err("exists")
        } else {
            Ok(Change::Keep)
        }
    };
    let refused = store.update(&pods(), &key("a"), refuse).await;
    assert!(matches!(refused, Err(WriteError::Refused("exists"))));
    assert_eq!(store.revision(), 2);
}

#[tokio::test]
async fn a_deletion_takes_a_revision_and_tells_the_last_state() {
    let store = memory();
    put(&store, &pods(), "a", 1).await;
    let Outcome::Deleted(last) = delete(&store, &pods(), "a").await else {
        panic!("not deleted")
    };
    assert_eq!((last.revision, value(last.doc())), (3, 1));
    assert_eq!(last.doc().str_at("/metadata/resourceVersion"), "3");
    assert_eq!(store.get(&pods(), &key("a")), None);
    assert_eq!(delete(&store, &pods(), "a").await, Outcome::Unchanged(None));
    assert_eq!(store.revision(), 3);
}

#[tokio::test]
async fn an_object_can_be_created_again_after_its_deletion() {
    let store = memory();
    put(&store, &pods(), "a", 1).await;
    delete(&store, &pods(), "a").await;
    let again = |current: Option<&_>| {
        assert!(current.is_none());
        Ok::<_, Infallible>(Change::put(object("a", 1)))
    };
    let outcome = store.update(&pods(), &key("a"), again).await.unwrap();
    assert!(matches!(outcome, Outcome::Created(entry) if entry.revision == 4));
}

#[tokio::test]
async fn a_document_without_metadata_is_kept_as_it_is() {
    let store = memory();
    for (index, doc) in [Doc::NULL, Doc::from("text"), Doc::empty_object()]
        .into_iter()
        .enumerate()
    {
        let name = format!("object-{index}");
        let change = |_: Option<&_>| Ok::<_, Infallible>(Change::put(doc.clone()));
        store.update(&pods(), &key(&name), change).await.unwrap();
        assert_eq!(*store.get(&pods(), &key(&name)).unwrap().doc(), doc);
    }
}

#[tokio::test]
async fn a_panic_in_a_decision_leaves_the_store_usable() {
    let store = memory();
    let other = store.clone();
    let panicked = tokio::spawn(async move {
        let decide = |_: Option<&_>| -> Result<Change, Infallible> { panic!("on purpose") };
        other.update(&pods(), &key("a"), decide).await
    });
    assert!(panicked.await.unwrap_err().is_panic());
    assert_eq!(put(&store, &pods(), "a", 1).await.revision, 2);
}
