//! Requests that are approved get a certificate.

use std::time::Duration;

use windlass_core::{condition, doc};
use x509_parser::extensions::GeneralName;

use crate::world::{CLIENT, KUBELET_SERVING, World, authority, has, is_issued, request};

const SOON: Duration = Duration::from_secs(60);
const YEAR: i64 = 365 * 24 * 60 * 60;
const BACKDATE: i64 = 5 * 60;

/// The failure of a request that somebody approved.
async fn failure(signer: &str, usages: &[&str], asked: &str) -> String {
    let world = World::new().await;
    world.ask(signer, usages, asked).await;
    world.decide("Approved").await;
    let failed = world.until(|it| has(it, "Failed")).await;
    assert!(!is_issued(&failed));
    let condition = condition(&failed, "Failed").unwrap();
    assert_eq!(condition.reason, "SignerValidationFailure");
    condition.message
}

/// K4
#[tokio::test(start_paused = true)]
async fn a_request_that_its_signer_does_not_accept_fails() {
    let serving = ["digital signature", "key encipherment", "server auth"];
    let cases = [
        (
            request("n1", &["system:nodes"], &["n1"]),
            "subject common name does not begin with system:node:",
        ),
        (
            request("system:node:n1", &["nodes"], &["n1"]),
            "subject organization is not system:nodes",
        ),
        (
            request("system:node:n1", &["system:nodes"], &[]),
            "DNS or IP subjectAltName is required",
        ),
    ];
    for (asked, text) in cases {
        assert_eq!(failure(KUBELET_SERVING, &serving, &asked).await, text);
    }
    let asked = request("system:node:n1", &["system:nodes"], &["n1"]);
    assert_eq!(
        failure(KUBELET_SERVING, &["server auth"], &asked).await,
        "usages did not match [digital signature key encipherment server auth]"
    );
    let asked = request("jane", &["team"], &[]);
    assert_eq!(
        failure(CLIENT, &["server auth"], &asked).await,
        "invalid usage for client certificate: server auth"
    );
    assert_eq!(
        failure(CLIENT, &["digital signature"], &asked).await,
        "missing required usage for client certificate: client auth"
    );
}

#[tokio::test(start_paused = true)]
async fn a_serving_certificate_has_the_names_that_were_asked_for() {
    let world = World::new().await;
    let asked = request("system:node:n1", &["system:nodes"], &["n1", "10.0.0.1"]);
    let usages = ["digital signature", "server auth"];
    world.ask(KUBELET_SERVING, &usages, &asked).await;
    world.decide("Approved").await;
    let issued = world.certificate().await;
    issued.read(|it| {
        let names = it.subject_alternative_name().unwrap().unwrap();
        let names = &names.value.general_names;
        assert!(names.contains(&GeneralName::DNSName("n1")), "{names:?}");
        assert!(names.contains(&GeneralName::IPAddress(&[10, 0, 0, 1])));
        assert_eq!(names.len(), 2);
    });
}

/// K5
#[tokio::test(start_paused = true)]
async fn the_time_that_was_asked_for_is_kept_within_limits() {
    let cases = [
        (600, 600),
        (3600, 3600),
        // Long ones lose the time by which they begin earlier.
        (24 * 3600, 24 * 3600 - BACKDATE),
        (2 * YEAR, YEAR - BACKDATE),
    ];
    for (asked, expected) in cases {
        let world = World::new().await;
        let expiration = doc!({ "expirationSeconds": asked });
        let request = request("jane", &["team"], &[]);
        world
            .ask_with(CLIENT, &["client auth"], &request, expiration)
            .await;
        world.decide("Approved").await;
        let now = world.cluster.env().now();
        let issued = world.certificate().await;
        let late = issued.ends_after(now) - expected;
        assert!((0..=5).contains(&late), "{asked}: {late}");
        let begins = issued.read(|it| it.validity().not_before.timestamp());
        assert!((0..=5).contains(&(begins + BACKDATE - now.unix())));
    }
}

/// K6: nobody can ask for it any more, in the version of the API that is left.
#[tokio::test(start_paused = true)]
async fn the_legacy_signer_is_refused() {
    let world = World::new().await;
    let asked = request("anything", &["team"], &[]);
    let signer = "kubernetes.io/legacy-unknown";
    let refused = world.try_to_ask(signer, &["code signing"], &asked).await;
    let text = "the legacy signerName is not allowed via this API version";
    assert!(refused.unwrap_err().to_string().contains(text));
}

/// K7
#[tokio::test(start_paused = true)]
async fn other_signers_are_left_alone() {
    let world = World::new().await;
    let asked = request("jane", &["team"], &[]);
    world
        .ask("example.com/signer", &["client auth"], &asked)
        .await;
    world.decide("Approved").await;
    world.pass(SOON).await;
    let found = world.find().await.unwrap();
    assert!(!is_issued(&found) && !has(&found, "Failed"));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_denied_gets_nothing() {
    let world = World::new().await;
    let asked = request("jane", &["team"], &[]);
    world.ask(CLIENT, &["client auth"], &asked).await;
    world.decide("Denied").await;
    world.pass(SOON).await;
    assert!(!is_issued(&world.find().await.unwrap()));
}

/// K9
#[tokio::test(start_paused = true)]
async fn no_certificate_outlives_the_authority() {
    let world = World::with_authority(authority(30)).await;
    let asked = request("jane", &["team"], &[]);
    world.ask(CLIENT, &["client auth"], &asked).await;
    world.decide("Approved").await;
    let issued = world.certificate().await;
    let left = issued.ends_after(world.cluster.env().now());
    assert!(left <= 30 * 24 * 3600, "{left}");
}
