//! Old requests are deleted.

use std::time::Duration;

use crate::world::{CLIENT, World, request};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// K8
#[tokio::test(start_paused = true)]
async fn a_denied_request_goes_after_an_hour() {
    let world = World::new().await;
    let asked = request("jane", &["team"], &[]);
    world.ask(CLIENT, &["client auth"], &asked).await;
    world.decide("Denied").await;
    world.pass(HOUR - Duration::from_secs(60)).await;
    assert!(world.find().await.is_some());
    world.pass(2 * HOUR).await;
    assert!(world.find().await.is_none());
}

/// K8
#[tokio::test(start_paused = true)]
async fn a_request_that_nobody_decides_goes_after_a_day() {
    let world = World::new().await;
    let asked = request("jane", &["team"], &[]);
    world.ask(CLIENT, &["client auth"], &asked).await;
    world.pass(23 * HOUR).await;
    assert!(world.find().await.is_some());
    world.pass(3 * HOUR).await;
    assert!(world.find().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_issued_request_goes_after_an_hour() {
    let world = World::new().await;
    let asked = request("jane", &["team"], &[]);
    world.ask(CLIENT, &["client auth"], &asked).await;
    world.decide("Approved").await;
    world.certificate().await;
    world.pass(3 * HOUR).await;
    assert!(world.find().await.is_none());
}
