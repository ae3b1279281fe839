//! A finalizer around a reconcile.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::apps::v1::ReplicaSet;
use parking_lot::Mutex;
use tokio::time::sleep;
use windlass_cache::Obj;
use windlass_client::RestOptions;
use windlass_core::doc;
use windlass_runtime::{Action, Change, Context, Controller, Finalize, Manager, finalizer};
use windlass_testing::{ModelServer, TokioClock};

const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";

/// What a reconcile under a finalizer saw of an object that is made and deleted.
async fn story_of(choose: impl FnOnce(Controller) -> Controller) -> Vec<String> {
    let server = ModelServer::new(TokioClock::new().env(1));
    let set = doc!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "web" }
    });
    server.create(SETS, &set);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    let reconcile = move |set: Obj<ReplicaSet>, cx: Context| {
        let noted = noted.clone();
        async move {
            finalizer(&cx, set, "test/cleanup", |what| async move {
                noted.lock().push(match what {
                    Finalize::Apply(set) => format!("apply {}", set.name()),
                    Finalize::Cleanup(set) => format!("clean up {}", set.name()),
                });
                Ok(Action::done())
            })
            .await
        }
    };
    let manager = Manager::builder("test")
        .transport(server.transport(), RestOptions::default())
        .env(TokioClock::new().env(2))
        .build()
        .expect("a manager is built");
    manager.add(choose(Controller::of::<ReplicaSet>(reconcile)));
    let _running = tokio::spawn(manager.run());
    sleep(Duration::from_secs(1)).await;
    server.delete(&format!("{SETS}/web"));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(server.find("replicasets", "default/web"), None);
    std::mem::take(&mut *seen.lock())
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_is_put_on_first_and_taken_off_after_the_clean_up() {
    let story = story_of(|controller| controller).await;
    assert_eq!(story, ["apply web", "clean up web"]);
}

/// The finalizer changes no generation, so the update that it causes is passed over.
#[tokio::test(start_paused = true)]
async fn a_finalizer_needs_no_event_that_a_filter_passes_over() {
    let additions_and_deletions = |change: &Change<'_>| {
        change.old.is_none() || change.new.is_some_and(|new| new.meta().is_deleting())
    };
    let story = story_of(|controller| controller.filter(additions_and_deletions)).await;
    assert_eq!(story, ["apply web", "clean up web"]);
}
