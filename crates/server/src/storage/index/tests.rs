use windlass_core::{Doc, Env, doc};
use windlass_store::{Change, Resource, Store, StoreOptions, WriteError};

use crate::storage::{Storage, key};
use windlass_access::{Attributes, ROLES_GROUP as GROUP, User, is_allowed};

async fn put(storage: &Storage, resource: &str, object: Doc) {
    let at = key(object.meta().namespace(), object.meta().name());
    let resource = Resource::new(GROUP, resource);
    let change = Change::put(object);
    let outcome: Result<_, WriteError<()>> = storage.update(&resource, &at, |_| Ok(change)).await;
    outcome.unwrap();
}

async fn remove(storage: &Storage, resource: &str, namespace: &str, name: &str) {
    let resource = Resource::new(GROUP, resource);
    let outcome: Result<_, WriteError<()>> = storage
        .update(&resource, &key(namespace, name), |_| Ok(Change::Delete))
        .await;
    outcome.unwrap();
}

fn binding(namespace: &str, name: &str, subjects: &Doc) -> Doc {
    doc!({
        "metadata": { "name": name, "namespace": namespace },
        "roleRef": { "kind": "ClusterRole", "name": "reader" }, "subjects": subjects
    })
}

fn user(name: &str) -> Doc {
    doc!([{ "kind": "User", "name": name }])
}

async fn storage() -> Storage {
    let storage = Storage::new(Store::open(StoreOptions::memory(Env::seeded(1))).unwrap());
    let rules = doc!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }]);
    let role = doc!({ "metadata": { "name": "reader" }, "rules": rules });
    put(&storage, "clusterroles", role).await;
    storage
}

fn may(storage: &Storage, user: &User) -> bool {
    let wanted = Attributes {
        verb: "get".to_owned(),
        resource: "pods".to_owned(),
        namespace: "a".to_owned(),
        ..Attributes::default()
    };
    is_allowed(user, &wanted, storage)
}

#[tokio::test]
async fn what_is_written_counts_at_once_and_what_is_deleted_no_longer() {
    let storage = storage().await;
    let (ann, bob) = (User::new("ann", &[]), User::new("bob", &["team"]));
    assert!(!may(&storage, &ann));
    put(&storage, "rolebindings", binding("a", "x", &user("ann"))).await;
    assert!(may(&storage, &ann) && !may(&storage, &bob));
    let team = doc!([{ "kind": "Group", "name": "team" }]);
    put(&storage, "rolebindings", binding("a", "x", &team)).await;
    assert!(!may(&storage, &ann) && may(&storage, &bob));
    put(&storage, "rolebindings", binding("b", "y", &user("ann"))).await;
    assert!(!may(&storage, &ann));
    let account = doc!([{ "kind": "ServiceAccount", "name": "bot" }]);
    put(&storage, "rolebindings", binding("a", "z", &account)).await;
    assert!(may(&storage, &User::service_account("a", "bot")));
    assert!(!may(&storage, &User::service_account("b", "bot")));
    remove(&storage, "rolebindings", "a", "x").await;
    assert!(!may(&storage, &bob));
}

#[tokio::test]
async fn the_index_holds_nothing_of_bindings_that_are_gone() {
    let storage = storage().await;
    for at in 0..300 {
        let name = format!("b{at}");
        put(
            &storage,
            "clusterrolebindings",
            binding("", &name, &user(&name)),
        )
        .await;
        may(&storage, &User::new(&name, &[]));
    }
    assert_eq!(storage.grants.0.read().table.len(), 300);
    for at in 0..300 {
        remove(&storage, "clusterrolebindings", "", &format!("b{at}")).await;
    }
    may(&storage, &User::new("b1", &[]));
    assert!(storage.grants.0.read().table.is_empty());
}

/// The CPU time of this thread in nanoseconds.
#[cfg(target_os = "linux")]
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
fn cost(storage: &Storage, user: &User) -> u64 {
    let round = || {
        let before = cpu();
        for _ in 0..500 {
            assert!(may(storage, user));
        }
        cpu() - before
    };
    (0..5).map(|_| round()).min().unwrap().max(1)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn ten_thousand_bindings_of_others_do_not_slow_a_request() {
    let storage = storage().await;
    let ann = User::new("ann", &[]);
    put(
        &storage,
        "clusterrolebindings",
        binding("", "ann", &user("ann")),
    )
    .await;
    let alone = cost(&storage, &ann);
    for at in 0..10_000 {
        let name = format!("b{at}");
        put(
            &storage,
            "clusterrolebindings",
            binding("", &name, &user(&name)),
        )
        .await;
    }
    let among = cost(&storage, &ann);
    assert!(among < 5 * alone, "{among} ns among many, {alone} ns alone");
}
