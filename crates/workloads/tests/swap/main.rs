//! The same scripts with kube-controller-manager's controllers and with ours end in the same
//! objects, events and revisions.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

mod concurrent_changes;
mod deleted_owners;
mod interrupted_rollouts;
#[path = "../support/kubelet.rs"]
mod kubelet;
mod limits_and_owners;
mod manual_edits;
mod normal;
mod quotas;
mod scripts;
#[path = "../support/stage.rs"]
#[allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "other tests use the rest of it"
)]
mod stage;

use std::{collections::BTreeMap, panic::AssertUnwindSafe, time::Duration};

use futures_util::future::{FutureExt as _, join_all};
use scripts::Script;
use stage::{Controllers, Stage};
use windlass_envtest::{ControlPlane, Options};
use windlass_testing::Running;
use windlass_workloads::{garbage_collector, namespace};

/// For how long no event comes when there are no more to come.
const QUIET: Duration = Duration::from_secs(2);

const THEIRS: [&str; 5] = [
    "replicaset-controller",
    "replicationcontroller-controller",
    "deployment-controller",
    "garbage-collector-controller",
    "namespace-controller",
];

/// Runs those of our controllers that look after the whole cluster, for as long as the stage is
/// there.
async fn run_ours(server: &ControlPlane) -> (Stage, Running) {
    let stage = Stage::on(server, "everywhere", Controllers::Ours).await;
    let running = stage.cluster.run_with("everywhere", |manager| {
        garbage_collector::add_to(manager, &Default::default());
        namespace::add_to(manager, &Default::default());
    });
    (stage, running)
}

/// What every script ends in.
async fn play(server: &ControlPlane, controllers: Controllers) -> BTreeMap<&'static str, String> {
    let mut pictures = BTreeMap::new();
    // Not all at once: whoever waits asks the server again and again.
    for scripts in [
        scripts::all(),
        concurrent_changes::all(),
        limits_and_owners::all(),
        interrupted_rollouts::all(),
        manual_edits::all(),
        deleted_owners::all(),
        deleted_owners::alone(),
    ] {
        pictures.extend(play_all(server, controllers, scripts).await);
    }
    pictures
}

async fn play_all(
    server: &ControlPlane,
    controllers: Controllers,
    scripts: Vec<(&'static str, Script)>,
) -> BTreeMap<&'static str, String> {
    let plays = scripts.into_iter().map(async |(name, script)| {
        let stage = Stage::on(server, name, controllers).await;
        stage.run();
        let played = async {
            script(&stage).await;
            stage.settle().await;
        };
        // What went wrong is printed where it did; this says which others did, too.
        let outcome = AssertUnwindSafe(played).catch_unwind().await;
        (name, stage, outcome.is_ok())
    });
    let stages = join_all(plays).await;
    let failed: Vec<_> = stages.iter().filter(|(.., is_played)| !is_played).collect();
    let failed: Vec<_> = failed.iter().map(|(name, ..)| *name).collect();
    assert!(failed.is_empty(), "with {controllers:?}: {failed:#?}");
    let mut pictures = BTreeMap::new();
    if let Some((_, stage, _)) = stages.first() {
        until_all_is_told(stage).await;
    }
    for (name, stage, _) in &stages {
        pictures.insert(*name, normal::picture(stage).await);
    }
    pictures
}

/// Waits until nobody tells of anything any more: events come long after the deeds, one by one.
async fn until_all_is_told(stage: &Stage) {
    let told = async || stage.cluster.list_docs(&stage::EVENTS, "", "").await.len();
    loop {
        let before = told().await;
        stage.cluster.pass(QUIET).await;
        if told().await == before {
            return;
        }
    }
}

#[tokio::test]
async fn scripts_end_alike_with_their_controllers_and_with_ours() {
    let Some(bare) = windlass_envtest::real_server() else {
        return;
    };
    let (_everywhere, running) = run_ours(bare).await;
    let ours = play(bare, Controllers::Ours).await;
    running.stop().await;
    let options = Options::default()
        .controllers(THEIRS)
        .controller_manager_flag("--kube-api-qps=1000")
        .controller_manager_flag("--kube-api-burst=1000");
    let server = ControlPlane::start(&options).unwrap();
    let theirs = play(&server, Controllers::Others).await;
    assert_eq!(ours.len(), 121);
    assert_eq!(theirs.len(), ours.len());
    let mut different = Vec::new();
    for (name, theirs) in &theirs {
        let ours = &ours[name];
        if ours != theirs {
            different.push(format!("{name}\n{}", normal::difference(theirs, ours)));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[tokio::test]
async fn quotas_are_counted_alike() {
    let Some(bare) = windlass_envtest::real_server() else {
        return;
    };
    let ours = count(bare, Controllers::Ours).await;
    let options = Options::default().controllers(["resourcequota-controller"]);
    let server = ControlPlane::start(&options).unwrap();
    let theirs = count(&server, Controllers::Others).await;
    assert_eq!(theirs.len(), quotas::all().len());
    for (name, theirs) in &theirs {
        let ours = &ours[name];
        assert!(
            ours == theirs,
            "{name}\n{}",
            normal::difference(theirs, ours)
        );
    }
}

/// What the quotas of every script say.
async fn count(server: &ControlPlane, controllers: Controllers) -> BTreeMap<&'static str, String> {
    let mut pictures = BTreeMap::new();
    for (name, script) in quotas::all() {
        let stage = Stage::on(server, name, controllers).await;
        if controllers == Controllers::Ours {
            quotas::run(&stage);
        }
        script(&stage).await;
        pictures.insert(name, quotas::picture(&stage).await);
    }
    pictures
}
