//! What holds on both servers.

use windlass_core::doc;

use crate::world::*;

/// Names all cases to a macro.
macro_rules! each_case {
    ($macro:ident) => {
        $macro! {
            what_is_there_is_counted
            what_goes_can_be_made_again
            a_pod_that_has_ended_uses_nothing
            devices_of_claims_are_counted
            kinds_are_counted_by_their_names
            a_service_that_becomes_less_gives_its_ports_back
            new_limits_are_in_force
            scopes_choose_what_is_counted
        }
    };
}
pub(crate) use each_case;

pub(crate) async fn what_is_there_is_counted(world: &World) {
    for name in ["a", "b"] {
        world.create(&CONFIG_MAPS, config_map(name)).await;
        world.create(&PODS, pod(name, "250m")).await;
    }
    world.create(&SERVICES, service("a", "NodePort")).await;
    world
        .quota(doc!({
            "pods": "5", "requests.cpu": "2", "memory": "1Gi", "configmaps": "9",
            "services.nodeports": "1", "secrets": "7", "example.com/unknown": "1",
        }))
        .await;
    let status = world.status().await;
    let used = doc!({
        "pods": "2", "requests.cpu": "500m", "memory": "0", "configmaps": "2",
        "services.nodeports": "1", "secrets": "0", SIGN: "0",
    });
    assert_eq!(*status.at("/used"), used);
}

pub(crate) async fn what_goes_can_be_made_again(world: &World) {
    world.quota(doc!({ "configmaps": "2" })).await;
    world.create(&CONFIG_MAPS, config_map("a")).await;
    world.create(&CONFIG_MAPS, config_map("b")).await;
    let refused = world.try_create(&CONFIG_MAPS, &config_map("c")).await;
    let refused = refused.unwrap_err();
    assert!(refused.is_forbidden(), "{refused}");
    assert!(
        refused.to_string().contains(
            "exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: configmaps=2"
        ),
        "{refused}"
    );
    world.delete(&CONFIG_MAPS, "a").await;
    world.until_used("configmaps", "1").await;
    world.create(&CONFIG_MAPS, config_map("c")).await;
    world.until_used("configmaps", "2").await;
}

pub(crate) async fn a_pod_that_has_ended_uses_nothing(world: &World) {
    let hard = doc!({ "pods": "3", "cpu": "1", "count/pods": "3" });
    world.quota(hard).await;
    world.create(&PODS, pod("a", "800m")).await;
    world.until_used("cpu", "800m").await;
    world
        .patch_status(&PODS, "a", doc!({ "phase": "Succeeded" }))
        .await;
    world.until_used("pods", "0").await;
    assert_eq!(world.used("cpu").await, "0");
    assert_eq!(world.used("count/pods").await, "1");
    world.create(&PODS, pod("b", "1")).await;
}

pub(crate) async fn devices_of_claims_are_counted(world: &World) {
    let gpus = "gpu.deviceclass.resource.k8s.io/devices";
    let claims = "count/resourceclaims.resource.k8s.io";
    world.create(&CLAIMS, claim("a", 2)).await;
    world.quota(doc!({ gpus: "4", claims: "9" })).await;
    assert_eq!(world.used(gpus).await, "2");
    let refused = world.try_create(&CLAIMS, &claim("b", 3)).await;
    assert!(refused.unwrap_err().is_forbidden());
    world.create(&CLAIMS, claim("b", 2)).await;
    world.delete(&CLAIMS, "a").await;
    world.until_used(gpus, "2").await;
    assert_eq!(world.used(claims).await, "1");
}

pub(crate) async fn kinds_are_counted_by_their_names(world: &World) {
    let deployments = "count/deployments.apps";
    world.create(&DEPLOYMENTS, deployment("a")).await;
    world.quota(doc!({ deployments: "1" })).await;
    assert_eq!(world.used(deployments).await, "1");
    let refused = world.try_create(&DEPLOYMENTS, &deployment("b")).await;
    assert!(refused.unwrap_err().is_forbidden());
    world.delete(&DEPLOYMENTS, "a").await;
    world.until_used(deployments, "0").await;
    world.create(&DEPLOYMENTS, deployment("b")).await;
}

pub(crate) async fn a_service_that_becomes_less_gives_its_ports_back(world: &World) {
    let hard = doc!({ "services": "5", "services.nodeports": "1" });
    world.quota(hard).await;
    world.create(&SERVICES, service("a", "NodePort")).await;
    world.until_used("services.nodeports", "1").await;
    let less = doc!({ "spec": { "type": "ClusterIP" } });
    world.patch(&SERVICES, "a", less).await;
    world.until_used("services.nodeports", "0").await;
    assert_eq!(world.used("services").await, "1");
}

pub(crate) async fn new_limits_are_in_force(world: &World) {
    world.quota(doc!({ "configmaps": "0" })).await;
    let refused = world.try_create(&CONFIG_MAPS, &config_map("a")).await;
    assert!(refused.unwrap_err().is_forbidden());
    let more = doc!({ "spec": { "hard": { "configmaps": "1", "secrets": "5" } } });
    world.patch(&QUOTAS, "q", more).await;
    world
        .until(async |world| {
            let status = world.status().await;
            status.at("/hard/configmaps") == "1" && status.at("/used/secrets") == "0"
        })
        .await;
    // The real server follows quotas through a watch of its own.
    world
        .until(async |world| {
            let made = world.try_create(&CONFIG_MAPS, &config_map("a")).await;
            made.is_ok()
        })
        .await;
}

pub(crate) async fn scopes_choose_what_is_counted(world: &World) {
    world.create(&PODS, pod("long", "100m")).await;
    let job = pod("short", "100m");
    let job = job.with("/spec/activeDeadlineSeconds", 60).unwrap();
    world.create(&PODS, job).await;
    let spec = doc!({ "hard": { "pods": "1", "cpu": "1" }, "scopes": ["Terminating"] });
    world.quota_with(spec).await;
    assert_eq!(world.used("pods").await, "1");
    assert_eq!(world.used("cpu").await, "100m");
    world.create(&PODS, pod("other", "100m")).await;
    // A pod that is to end is one more of those that are limited.
    let ends = doc!({ "spec": { "activeDeadlineSeconds": 60 } });
    world.delete(&PODS, "short").await;
    world.until_used("pods", "0").await;
    world.patch(&PODS, "long", ends).await;
    world.until_used("pods", "1").await;
}
