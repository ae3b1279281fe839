//! Every case on the embedded server, on virtual time, each with a cluster of its own.

use crate::{
    cases::{self, each_case, each_custom_case},
    world::{World, collect},
};

macro_rules! on_the_embedded_server {
    ($($case:ident)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $case() {
                let world = World::embedded().await;
                let running = collect(&world.cluster);
                cases::$case(&world).await;
                running.stop().await;
            }
        )*
    };
}

each_case!(on_the_embedded_server);
each_custom_case!(on_the_embedded_server);
