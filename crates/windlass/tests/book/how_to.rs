//! The code of the how-to pages.

use std::time::Duration;

use windlass::cache::{InformerFactory, InformerSpec, SharedInformer};
use windlass::client::{Propagation, RestClient};
use windlass::core::Prune;
use windlass::k8s_openapi::api::apps::v1::Deployment;
use windlass::k8s_openapi::api::core::v1::{ConfigMap, Event, Pod};
use windlass::prelude::*;
use windlass::queue::{ItemExponential, MaxOf, TokenBucket};
use windlass::testing::{Cluster, Fault, Faults};

const DEPLOYMENT: &str = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {
    replicas: 3, selector: {matchLabels: {app: web}}, template: {
    metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: nginx}]}}}}";

const CONFIG_MAP: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}";

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_ready_pods() {
    let cluster = Cluster::builder().controllers(["*"]).start().await;
    cluster.create_yaml(DEPLOYMENT).await;
    cluster
        .until(async |c| {
            let web = c.get::<Deployment>("default/web").await;
            web.is_some_and(|web| web.doc().at("/status/readyReplicas").as_i64() == Some(3))
        })
        .await;
    assert_eq!(cluster.list::<Pod>("default").await.len(), 3);
}

/// Tells about every ConfigMap when it is an hour old.
async fn tell(map: Obj<ConfigMap>, cx: Context) -> Result<Action> {
    let now = cx.env().now();
    let age = now.since(map.meta().creation_timestamp().unwrap_or(now));
    let hour = Duration::from_secs(3600);
    if age < hour {
        return Ok(Action::requeue_after(hour - age));
    }
    cx.event(&map, Normal, "Old", "it is an hour old");
    Ok(Action::done())
}

#[tokio::test(start_paused = true)]
async fn an_hour_takes_no_time() {
    let cluster = Cluster::start().await;
    cluster.run(Controller::of::<ConfigMap>(tell));
    cluster.create_yaml(CONFIG_MAP).await;
    cluster.pass(Duration::from_secs(3590)).await;
    assert!(cluster.list::<Event>("default").await.is_empty());
    cluster
        .until(async |c| c.list::<Event>("default").await.len() == 1)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_not_make_a_second_event() {
    let cluster = Cluster::start().await;
    // The first write is carried out, and its answer never arrives.
    let mut lost = false;
    let faults = Faults::new(move |call| match call.is_write() && !lost {
        true => {
            lost = true;
            Fault::LostAnswer
        }
        false => Fault::None,
    });
    let transport = cluster.transport().layer(&faults);
    let manager = cluster.manager_on("teller", transport).build().unwrap();
    manager.add(Controller::of::<ConfigMap>(tell));
    cluster.run_manager(manager);
    cluster.create_yaml(CONFIG_MAP).await;
    cluster.pass(Duration::from_secs(3590)).await;
    cluster
        .until(async |c| c.list::<Event>("default").await.len() == 1)
        .await;
    cluster.pass(Duration::from_secs(60)).await;
    assert_eq!(cluster.list::<Event>("default").await.len(), 1);
}

/// Fails as a reconcile may fail.
async fn fail(map: Obj<ConfigMap>, _: Context) -> Result<Action> {
    match map.doc().str_at("/data/mode") {
        "later" => Err(Error::msg("the other side is busy").after(Duration::from_secs(30))),
        "never" => Err(Error::msg("the mode makes no sense").terminal()),
        _ => Err(Error::msg("it did not work")),
    }
}

fn patient() -> Controller {
    Controller::of::<ConfigMap>(fail)
        .workers(4)
        .max_retries(15)
        .rate_limiter(MaxOf(
            ItemExponential::new(Duration::from_millis(5), Duration::from_secs(60)),
            TokenBucket::new(10.0, 100),
        ))
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_is_not_retried_and_others_are() {
    let cluster = Cluster::start().await;
    let running = cluster.run(patient());
    for mode in ["never", "often"] {
        let map = format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {mode}}}, data: {{mode: {mode}}}}}"
        );
        cluster.create_yaml(&map).await;
    }
    let tries = |name| {
        let why = running.why(&Key::new("default", name));
        why.matches("reconciled ").count()
    };
    cluster.until(async |_| tries("often") >= 3).await;
    assert_eq!(tries("never"), 1);
}

async fn cache(client: RestClient) -> Result<()> {
    let factory = InformerFactory::on(client)
        .prune(Prune::managed_fields().and("spec.containers[].env"))
        .sources()
        .memory_budget(64 << 20)
        .build();
    let pods = factory.informer::<Pod>();
    factory.start();
    factory.wait_for_sync().await?;
    let report = pods.memory();
    println!("{} pods in {} bytes", report.objects, report.bytes());
    let metadata = factory.metadata(Pod::gvr());
    let running = InformerSpec::new(Pod::gvr())
        .namespaced("default")
        .fields("status.phase=Running");
    let running: SharedInformer<Pod> = factory.informer_of(running);
    factory.start();
    factory.wait_for_sync().await?;
    println!(
        "{} of all, {} running",
        metadata.lister().len(),
        running.lister().len()
    );
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_cache_says_what_it_costs() {
    let cluster = Cluster::builder().controllers(["*"]).start().await;
    cluster.create_yaml(DEPLOYMENT).await;
    cluster
        .until(async |c| c.list::<Pod>("default").await.len() == 3)
        .await;
    cache(cluster.client().clone()).await.unwrap();
}

const FINALIZER: &str = "example.com/bucket";

async fn reconcile(map: Obj<ConfigMap>, cx: Context) -> Result<Action> {
    finalizer(&cx, map, FINALIZER, async |event| match event {
        Finalize::Apply(_) => Ok(Action::done()),
        Finalize::Cleanup(map) => {
            cx.event(&map, Normal, "CleanedUp", "the bucket is gone");
            Ok(Action::done())
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn clean_up_comes_before_the_end() {
    let cluster = Cluster::start().await;
    cluster.run(Controller::of::<ConfigMap>(reconcile));
    let map = cluster.create_yaml(CONFIG_MAP).await.remove(0);
    let held = async |c: &Cluster| {
        let map = c.get::<ConfigMap>("default/settings").await;
        map.is_some_and(|map| map.meta().has_finalizer(FINALIZER))
    };
    cluster.until(held).await;
    cluster.delete(&map, Propagation::Background).await;
    cluster
        .until(async |c| c.get::<ConfigMap>("default/settings").await.is_none())
        .await;
    cluster
        .until(async |c| c.list::<Event>("default").await.len() == 1)
        .await;
}
