//! Every case on a real kube-apiserver, with this controller in place of Go's.

use std::panic::AssertUnwindSafe;

use futures_util::future::{FutureExt as _, LocalBoxFuture, join_all};
use windlass_client::Config;
use windlass_envtest::real_server;
use windlass_testing::Cluster;

use crate::{
    cases::{self, each_case},
    world::{World, control},
};

type Case = for<'a> fn(&'a World) -> LocalBoxFuture<'a, ()>;

macro_rules! all_cases {
    ($($case:ident)*) => {
        &[$((stringify!($case), (|world| cases::$case(world).boxed_local()) as Case),)*]
    };
}

const CASES: &[(&str, Case)] = each_case!(all_cases);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_on_the_real_server() {
    let Some(server) = real_server() else {
        return;
    };
    let config = Config::from_file(server.kubeconfig()).await.unwrap();
    let cluster = Cluster::builder().existing(config).start().await;
    let running = control(&cluster);
    let runs = CASES.iter().enumerate().map(|(number, (name, case))| {
        let cluster = cluster.clone();
        async move {
            let case = async {
                let world = World::new(cluster, &format!("quota-{number}")).await;
                case(&world).await;
            };
            // What went wrong is printed where it did; this says which others did, too.
            let outcome = AssertUnwindSafe(case).catch_unwind().await;
            outcome.err().map(|_| *name)
        }
    });
    let failures: Vec<&str> = join_all(runs).await.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{failures:#?}");
    running.stop().await;
}
