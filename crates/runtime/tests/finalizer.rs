//! A finalizer around a reconcile.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::apps::v1::ReplicaSet;
use parking_lot::Mutex;
use tokio::time::sleep;
use windlass_cache::Obj;
use windlass_client::RestOptions;
use windlass_core::doc;
use windlass_runtime::{Action, Context, Controller, Finalize, Manager, finalizer};
use windlass_testing::{ModelServer, TokioClock};

const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";

#[tokio::test(start_paused = true)]
async fn a_finalizer_is_put_on_first_and_taken_off_after_the_clean_up() {
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
        .unwrap();
    manager.add(Controller::of::<ReplicaSet>(reconcile));
    let _running = tokio::spawn(manager.run());
    sleep(Duration::from_secs(1)).await;
    assert_eq!(*seen.lock(), ["apply web"]);
    server.delete(&format!("{SETS}/web"));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(*seen.lock(), ["apply web", "clean up web"]);
    assert_eq!(server.find("replicasets", "default/web"), None);
}
