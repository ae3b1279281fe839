//! Every case on the embedded server, on virtual time, and what needs virtual time.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::future::join_all;
use parking_lot::Mutex;
use windlass_core::{Gvr, doc};
use windlass_testing::{Cluster, Fault, Faults};
use windlass_workloads::resourcequota;

use crate::{
    cases::{self, each_case},
    world::*,
};

macro_rules! on_the_embedded_server {
    ($($case:ident)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $case() {
                let world = embedded().await;
                let running = control(&world.cluster);
                cases::$case(&world).await;
                running.stop().await;
            }
        )*
    };
}

each_case!(on_the_embedded_server);

async fn embedded() -> World {
    World::new(Cluster::start().await, "shop").await
}

#[tokio::test(start_paused = true)]
async fn only_what_a_quota_limits_is_watched() {
    let world = embedded().await;
    let watched: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let noted = watched.clone();
    let faults = Faults::new(move |call| {
        if call.is_watch {
            let name = call.path.rsplit('/').next().unwrap_or_default();
            noted.lock().insert(name.to_owned());
        }
        Fault::None
    });
    let transport = world.cluster.transport().layer(&faults);
    let manager = world.cluster.manager_on("quotas", transport);
    let manager = manager.build().unwrap();
    resourcequota::add_to(&manager, &resourcequota::Options::default());
    world.cluster.run_manager(manager);
    world.cluster.pass(Duration::from_secs(60)).await;
    let names = || watched.lock().iter().cloned().collect::<Vec<_>>();
    assert_eq!(names(), ["resourcequotas"]);
    world
        .quota(doc!({ "configmaps": "5", "count/leases.coordination.k8s.io": "1" }))
        .await;
    let expected = ["configmaps", "leases", "podtemplates", "resourcequotas"];
    assert_eq!(names(), expected);
}

/// Whoever was charged and has not made anything after all is not charged for long.
#[tokio::test(start_paused = true)]
async fn a_charge_for_nothing_is_set_right() {
    let world = embedded().await;
    control(&world.cluster);
    world.quota(doc!({ "configmaps": "5" })).await;
    world.create(&CONFIG_MAPS, config_map("a")).await;
    world
        .patch_status(&QUOTAS, "q", doc!({ "used": { "configmaps": "5" } }))
        .await;
    let refused = world.try_create(&CONFIG_MAPS, &config_map("b")).await;
    assert!(refused.unwrap_err().is_forbidden());
    world.cluster.pass(Duration::from_secs(6)).await;
    assert_eq!(world.used("configmaps").await, "1");
}

/// A count that misses what is just being made is followed by another one.
#[tokio::test(start_paused = true)]
async fn racing_creates_never_exceed_the_quota_and_all_are_counted() {
    let world = embedded().await;
    control(&world.cluster);
    world.quota(doc!({ "configmaps": "20" })).await;
    for round in 0..3 {
        let creates = (0..30).map(|number| {
            let map = config_map(&format!("map-{round}-{number}"));
            let world = &world;
            async move { world.try_create(&CONFIG_MAPS, &map).await.is_ok() }
        });
        let made = join_all(creates).await.into_iter().filter(|it| *it).count();
        assert_eq!(made, 20, "round {round}");
        world.cluster.pass(Duration::from_secs(10)).await;
        assert_eq!(world.used("configmaps").await, "20");
        for map in world.cluster.list_docs(&CONFIG_MAPS, "shop", "").await {
            world.delete(&CONFIG_MAPS, map.meta().name()).await;
        }
        world.cluster.pass(Duration::from_secs(1)).await;
        assert_eq!(world.used("configmaps").await, "0");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_defined_later_is_counted_then() {
    const WIDGETS: Gvr = Gvr::constant("quota.example.com", "v1", "widgets");
    let world = embedded().await;
    control(&world.cluster);
    let widgets = "count/widgets.quota.example.com";
    world.quota(doc!({ widgets: "1", "configmaps": "1" })).await;
    assert_eq!(world.used(widgets).await, "");
    world
        .cluster
        .define(
            "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: widgets.quota.example.com }
spec:
  group: quota.example.com
  scope: Namespaced
  names: { plural: widgets, singular: widget, kind: Widget }
  versions:
  - name: v1
    served: true
    storage: true
    schema: { openAPIV3Schema: { type: object } }
",
        )
        .await;
    world.until_used(widgets, "0").await;
    let widget = |name: &str| {
        doc!({
            "apiVersion": "quota.example.com/v1", "kind": "Widget", "metadata": { "name": name }
        })
    };
    world.create(&WIDGETS, widget("a")).await;
    let refused = world.try_create(&WIDGETS, &widget("b")).await;
    assert!(refused.unwrap_err().is_forbidden());
}
