//! The same scripts with kube-controller-manager's controllers and with ours end in the same
//! objects, events and revisions.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

#[path = "support/kubelet.rs"]
mod kubelet;
#[path = "support/normal.rs"]
mod normal;
#[path = "support/scripts.rs"]
mod scripts;
#[path = "support/stage.rs"]
#[allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "other tests use the rest of it"
)]
mod stage;

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::join_all;
use stage::{Controllers, Stage};
use windlass_envtest::{ControlPlane, Options};

/// For how long no event comes when there are no more to come.
const QUIET: Duration = Duration::from_secs(2);

const THEIRS: [&str; 3] = [
    "replicaset-controller",
    "replicationcontroller-controller",
    "deployment-controller",
];

/// What every script ends in.
async fn play(server: &ControlPlane, controllers: Controllers) -> BTreeMap<&'static str, String> {
    let plays = scripts::all().into_iter().map(async |(name, script)| {
        let stage = Stage::on(server, name, controllers).await;
        stage.run();
        script(&stage).await;
        stage.settle().await;
        (name, stage)
    });
    let stages = join_all(plays).await;
    let mut pictures = BTreeMap::new();
    if let Some((_, stage)) = stages.first() {
        until_all_is_told(stage).await;
    }
    for (name, stage) in &stages {
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
    let ours = play(bare, Controllers::Ours).await;
    let options = Options::default()
        .controllers(THEIRS)
        .controller_manager_flag("--kube-api-qps=1000")
        .controller_manager_flag("--kube-api-burst=1000");
    let server = ControlPlane::start(&options).unwrap();
    let theirs = play(&server, Controllers::Others).await;
    assert_eq!(ours.len(), 20);
    let mut different = Vec::new();
    for (name, theirs) in &theirs {
        let ours = &ours[name];
        if ours != theirs {
            different.push(format!("{name}\n{}", normal::difference(theirs, ours)));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
