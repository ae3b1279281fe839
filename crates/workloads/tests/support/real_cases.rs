//! Cases on a real kube-apiserver: all of them at the same time, each in a namespace of its own.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::future::{FutureExt as _, LocalBoxFuture, join_all};
use windlass_client::Config;
use windlass_testing::Cluster;

/// A case that plays in a world.
pub(crate) type Case<W> = for<'a> fn(&'a W) -> LocalBoxFuture<'a, ()>;

/// The cases of the module `cases` in a `World`, each with its name.
macro_rules! named_cases {
    ($($case:ident)*) => {
        &[$((stringify!($case), (|world| {
            futures_util::FutureExt::boxed_local(cases::$case(world))
        }) as Case<World>),)*]
    };
}
pub(crate) use named_cases;

/// The real server, if there is one.
pub(crate) async fn real_cluster(patience: Duration) -> Option<Cluster> {
    let server = windlass_envtest::real_server()?;
    let config = Config::from_file(server.kubeconfig()).await.unwrap();
    let cluster = Cluster::builder().existing(config).patience(patience);
    Some(cluster.start().await)
}

/// Runs all cases in the worlds that `world` makes of their numbers.
pub(crate) async fn all_hold<W: 'static>(
    cases: impl IntoIterator<Item = &'static (&'static str, Case<W>)>,
    world: impl AsyncFn(usize) -> W,
) {
    let world = &world;
    let runs = cases.into_iter().enumerate().map(|(number, (name, case))| {
        let case = async move {
            let world = world(number).await;
            case(&world).await;
        };
        // What went wrong is printed where it did; this says which others did, too.
        async move {
            let outcome = AssertUnwindSafe(case).catch_unwind().await;
            outcome.err().map(|_| *name)
        }
    });
    let failures: Vec<&str> = join_all(runs).await.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{failures:#?}");
}
