//! The claim controller, on the embedded server under a paused clock and on the real one.

/// Tests of each scenario on both servers.
macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        mod embedded {
            use crate::claims::stage::Stage;
            $(
                #[tokio::test(start_paused = true)]
                async fn $name() {
                    super::$name(&Stage::embedded().await).await;
                }
            )*
        }
        mod real {
            use crate::claims::stage::Stage;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    if let Some(stage) = Stage::real(stringify!($name)).await {
                        super::$name(&stage).await;
                        stage.end().await;
                    }
                }
            )*
        }
    };
}

mod create;
mod failures;
mod release;
mod reserve;
mod stage;
