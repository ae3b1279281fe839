//! Claims are made from templates and recorded in the status of pods.

use windlass_client::WriteOptions;
use windlass_core::doc;
use windlass_placement::claims::{Naming, Options, POD_CLAIM_NAME};

use crate::claims::stage::*;

scenarios![
    a_claim_is_made_from_the_template_and_recorded,
    a_pod_without_claims_is_left_alone,
    an_entry_that_needs_no_claim_is_left_alone,
    a_claim_that_exists_is_left_alone,
    a_claim_that_was_made_but_not_recorded_is_adopted,
    claims_of_others_do_not_count,
    a_missing_template_is_reported_until_it_comes,
    nothing_is_recorded_before_all_claims_are_made,
    a_deleted_claim_is_made_again_and_the_others_stay_recorded,
    long_names_are_shortened,
    one_template_serves_many_pods,
    a_pod_that_is_being_deleted_gets_no_claim,
    a_claim_of_another_owner_under_the_recorded_name_is_replaced,
    a_second_claim_for_one_entry_is_removed,
    deterministic_names_adopt_their_own_and_refuse_foreign_claims,
    a_claim_next_door_does_not_count,
    admin_access_can_be_switched_off,
    alternatives_can_be_switched_off,
];

async fn a_claim_is_made_from_the_template_and_recorded(stage: &Stage) {
    let running = stage.run();
    stage.template("t").await;
    let pod = stage.pod("web", &["gpu@t"]).await;
    stage
        .until(async |s| s.recorded("web").await.len() == 1)
        .await;

    let claims = stage.claims().await;
    let [claim] = &claims[..] else {
        panic!("{claims:?}")
    };
    let name = claim.meta().name();
    assert!(name.starts_with("web-gpu-") && name.len() == 13, "{name}");
    assert_eq!(claim.meta().generate_name(), "web-gpu-");
    assert_eq!(
        stage.recorded("web").await,
        [("gpu".to_owned(), name.to_owned())]
    );
    let owner = doc!([{
        "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": (pod.meta().uid_str()),
        "controller": true
    }]);
    assert_eq!(*claim.at("/metadata/ownerReferences"), owner);
    assert_eq!(claim.meta().annotation(POD_CLAIM_NAME), Some("gpu"));
    assert_eq!(claim.meta().annotation("a"), Some("1"));
    assert_eq!(claim.meta().label("l"), Some("1"));
    let class = "/spec/devices/requests/0/exactly/deviceClassName";
    assert_eq!(claim.str_at(class), "gpu.example.com");

    stage.settle().await;
    assert_eq!(stage.claims().await.len(), 1);
    assert_eq!(stage.options.metrics.creates(true, false), 1);
    let metrics = running.metrics();
    for line in [
        "resourceclaim_controller_creates_total{status=\"success\",admin_access=\"false\"} 1",
        "resourceclaim_controller_create_attempts_total 1",
        "resourceclaim_controller_create_failures_total 0",
        "resourceclaim_controller_resource_claims{allocated=\"false\",admin_access=\"false\",\
         source=\"resource_claim_template\"} 1",
        "workqueue_depth{name=\"resource_claim\"} 0",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}

async fn a_pod_without_claims_is_left_alone(stage: &Stage) {
    stage.run();
    stage.pod("web", &[]).await;
    stage.settle().await;
    assert_eq!(stage.calls(), Vec::<String>::new());
}

async fn an_entry_that_needs_no_claim_is_left_alone(stage: &Stage) {
    let pod = stage.pod("web", &["gpu@t"]).await;
    let status = doc!({ "resourceClaimStatuses": [{ "name": "gpu" }] });
    stage.cluster.patch_status(&pod, status).await;
    stage.run();
    stage.settle().await;
    assert_eq!(stage.claims().await.len(), 0);
    assert_eq!(
        stage.events("FailedResourceClaimCreation").await,
        Vec::<String>::new()
    );
}

async fn a_claim_that_exists_is_left_alone(stage: &Stage) {
    let pod = stage.pod("web", &["gpu@t"]).await;
    stage.create(claim_of("made", &pod, "gpu")).await;
    let status = doc!({ "resourceClaimStatuses": [
        { "name": "gpu", "resourceClaimName": "made" }
    ] });
    stage.cluster.patch_status(&pod, status).await;
    stage.run();
    stage.settle().await;
    assert_eq!(stage.calls(), Vec::<String>::new());
}

async fn a_claim_that_was_made_but_not_recorded_is_adopted(stage: &Stage) {
    let pod = stage.pod("web", &["gpu@gone"]).await;
    stage.create(claim_of("made", &pod, "gpu")).await;
    // Without the annotation a claim is nobody's.
    let bare = claim_of("bare", &pod, "gpu").without("/metadata/annotations");
    stage.create(bare.unwrap()).await;
    stage.run();
    stage
        .until(async |s| s.recorded("web").await.len() == 1)
        .await;
    assert_eq!(stage.recorded("web").await[0].1, "made");
    assert_eq!(stage.claims().await.len(), 2);
}

async fn claims_of_others_do_not_count(stage: &Stage) {
    stage.create(claim("web-gpu")).await;
    stage.run();
    stage.pod("web", &["gpu@t"]).await;
    stage
        .until(async |s| s.events("FailedResourceClaimCreation").await.len() == 1)
        .await;
    assert_eq!(stage.claims().await.len(), 1);
    stage.template("t").await;
    stage
        .until(async |s| s.recorded("web").await.len() == 1)
        .await;
    assert_ne!(stage.recorded("web").await[0].1, "web-gpu");
    assert_eq!(stage.claims().await.len(), 2);
}

async fn a_missing_template_is_reported_until_it_comes(stage: &Stage) {
    stage.run();
    stage.pod("web", &["gpu@t"]).await;
    let reason = "FailedResourceClaimCreation";
    stage
        .until(async |s| !s.events(reason).await.is_empty())
        .await;
    let text = "PodResourceClaim gpu: resource claim template \"t\": \
                resourceclaimtemplate.resource.k8s.io \"t\" not found";
    assert_eq!(stage.events(reason).await, [text]);
    assert_eq!(stage.recorded("web").await, []);
    stage.template("t").await;
    stage
        .until(async |s| s.recorded("web").await.len() == 1)
        .await;
}

async fn nothing_is_recorded_before_all_claims_are_made(stage: &Stage) {
    stage.run();
    stage.template("t1").await;
    stage.pod("web", &["a@t1", "b@t2"]).await;
    stage
        .until(async |s| !s.events("FailedResourceClaimCreation").await.is_empty())
        .await;
    assert_eq!(stage.recorded("web").await, []);
    stage.until(async |s| s.claims().await.len() == 1).await;
    stage.template("t2").await;
    stage
        .until(async |s| s.recorded("web").await.len() == 2)
        .await;
    let recorded = stage.recorded("web").await;
    assert_eq!(
        recorded.iter().map(|(entry, _)| entry).collect::<Vec<_>>(),
        ["a", "b"]
    );
    assert_eq!(stage.claims().await.len(), 2);
    assert_eq!(stage.options.metrics.creates(true, false), 2);
}

async fn a_deleted_claim_is_made_again_and_the_others_stay_recorded(stage: &Stage) {
    stage.run();
    stage.template("t").await;
    stage.pod("web", &["a@t", "b@t"]).await;
    stage
        .until(async |s| s.recorded("web").await.len() == 2)
        .await;
    let before = stage.recorded("web").await;
    stage.delete(&CLAIMS, &before[0].1).await;
    stage
        .until(async |s| s.claims().await.len() == 2 && s.recorded("web").await.len() == 2)
        .await;
    stage.settle().await;
    let version = stage.find(&PODS, "web").await.unwrap();
    stage.settle().await;
    let later = stage.find(&PODS, "web").await.unwrap();
    assert_eq!(
        version.meta().resource_version(),
        later.meta().resource_version()
    );
    assert_eq!(stage.recorded("web").await.len(), 2);
    for (_, name) in stage.recorded("web").await {
        assert!(stage.find(&CLAIMS, &name).await.is_some(), "{name}");
    }
}

async fn long_names_are_shortened(stage: &Stage) {
    stage.run();
    stage.template("t").await;
    let (pod, entry) = ("p".repeat(63), "c".repeat(63));
    stage.pod(&pod, &[&format!("{entry}@t")]).await;
    stage.until(async |s| s.claims().await.len() == 1).await;
    let claims = stage.claims().await;
    let name = claims[0].meta().name();
    assert_eq!(name.len(), 28 + 1 + 28 + 5);
    let prefix = format!("{}-{}", "p".repeat(28), "c".repeat(28));
    assert!(name.starts_with(&prefix), "{name}");
}

async fn one_template_serves_many_pods(stage: &Stage) {
    let template = stage.template("t").await;
    stage.run();
    let pods: Vec<String> = (0..20).map(|at| format!("p{at:02}")).collect();
    for pod in &pods {
        stage.pod(pod, &["gpu@t", "nic@t"]).await;
    }
    stage.until(async |s| s.claims().await.len() == 40).await;
    for pod in &pods {
        stage
            .until(async |s| s.recorded(pod).await.len() == 2)
            .await;
        for (entry, name) in stage.recorded(pod).await {
            let claim = stage.find(&CLAIMS, &name).await.unwrap();
            assert_eq!(claim.meta().annotation(POD_CLAIM_NAME), Some(&*entry));
        }
    }
    let later = stage.find(&TEMPLATES, "t").await.unwrap();
    assert_eq!(later.at("/spec"), template.at("/spec"));
    stage.settle().await;
    assert_eq!(stage.claims().await.len(), 40);
}

async fn a_pod_that_is_being_deleted_gets_no_claim(stage: &Stage) {
    let finalized = pod("web", &["gpu@t"]).with_finalizer("example.com/hold");
    stage.create(finalized).await;
    stage.delete(&PODS, "web").await;
    stage.template("t").await;
    stage.run();
    stage.settle().await;
    assert_eq!(stage.claims().await.len(), 0);
}

async fn a_claim_of_another_owner_under_the_recorded_name_is_replaced(stage: &Stage) {
    let pod = stage.pod("web", &["gpu@t"]).await;
    stage.create(claim("foreign")).await;
    let status = doc!({ "resourceClaimStatuses": [
        { "name": "gpu", "resourceClaimName": "foreign" }
    ] });
    stage.cluster.patch_status(&pod, status).await;
    stage.template("t").await;
    stage.run();
    stage
        .until(async |s| s.recorded("web").await[0].1 != "foreign")
        .await;
    assert!(stage.find(&CLAIMS, "foreign").await.is_some());
    assert_eq!(stage.claims().await.len(), 2);
}

async fn a_second_claim_for_one_entry_is_removed(stage: &Stage) {
    stage.run();
    stage.template("t").await;
    let pod = stage.pod("web", &["gpu@t"]).await;
    stage
        .until(async |s| s.recorded("web").await.len() == 1)
        .await;
    stage.create(claim_of("twice", &pod, "gpu")).await;
    stage.until(async |s| s.claims().await.len() == 1).await;
    assert_eq!(
        stage.claims().await[0].meta().name(),
        stage.recorded("web").await[0].1
    );
}

async fn deterministic_names_adopt_their_own_and_refuse_foreign_claims(stage: &Stage) {
    let options = Options {
        naming: Naming::Deterministic,
        ..stage.options.clone()
    };
    stage.create(claim("web-nic")).await;
    stage.template("t").await;
    stage.run_with(&options);
    let own = stage.pod("own", &["gpu@t"]).await;
    stage
        .until(async |s| s.recorded("own").await.len() == 1)
        .await;
    assert_eq!(stage.recorded("own").await[0].1, "own-gpu");
    let claim = stage.find(&CLAIMS, "own-gpu").await.unwrap();
    assert_eq!(
        claim.meta().owner_refs().next().unwrap().uid,
        own.meta().uid()
    );
    assert!(
        claim
            .meta()
            .owner_refs()
            .next()
            .unwrap()
            .block_owner_deletion
    );

    stage.pod("web", &["nic@t"]).await;
    stage
        .until(async |s| !s.events("FailedResourceClaimCreation").await.is_empty())
        .await;
    let text = stage.events("FailedResourceClaimCreation").await;
    let namespace = &stage.namespace;
    let expected = format!(
        "PodResourceClaim nic: ResourceClaim {namespace}/web-nic was not created for Pod \
         {namespace}/web (Pod is not owner)"
    );
    assert_eq!(text, [expected]);
    stage.delete(&CLAIMS, "web-nic").await;
    stage
        .until(async |s| s.recorded("web").await.len() == 1)
        .await;
    assert_eq!(stage.recorded("web").await[0].1, "web-nic");
}

async fn a_claim_next_door_does_not_count(stage: &Stage) {
    let next_door = format!("{}-other", stage.namespace);
    let namespace = doc!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": next_door.as_str() } });
    stage.cluster.create_doc(&namespace).await;
    let foreign = claim("web-gpu").with("/metadata/namespace", next_door.as_str());
    let foreign = stage.cluster.create_doc(&foreign.unwrap()).await;
    let options = Options {
        naming: Naming::Deterministic,
        ..stage.options.clone()
    };
    stage.template("t").await;
    stage.run_with(&options);
    let pod = stage.pod("web", &["gpu@t"]).await;
    stage
        .until(async |s| s.recorded("web").await.len() == 1)
        .await;
    assert_eq!(stage.recorded("web").await[0].1, "web-gpu");
    let made = stage.find(&CLAIMS, "web-gpu").await.unwrap();
    let owner = made.meta().owner_refs().next().unwrap();
    assert_eq!(owner.uid, pod.meta().uid());
    let key = format!("{next_door}/web-gpu");
    assert_eq!(stage.cluster.find(&CLAIMS, &key).await.unwrap(), foreign);
}

async fn admin_access_can_be_switched_off(stage: &Stage) {
    let namespaces = windlass_core::Gvr::constant("", "v1", "namespaces");
    let label = doc!({ "metadata": { "labels": {
        "resource.kubernetes.io/admin-access": "true"
    } } });
    let patch = windlass_client::Patch::Merge(label);
    let api = stage.cluster.resource(namespaces);
    api.patch(&stage.namespace, &patch, &WriteOptions::default())
        .await
        .unwrap();
    let pointer = "/spec/spec/devices/requests/0/exactly/adminAccess";
    stage
        .create(template("t").with(pointer, true).unwrap())
        .await;
    let options = Options {
        is_admin_access_enabled: false,
        ..stage.options.clone()
    };
    stage.run_with(&options);
    stage.pod("web", &["gpu@t"]).await;
    stage
        .until(async |s| !s.events("FailedResourceClaimCreation").await.is_empty())
        .await;
    let text = "PodResourceClaim gpu: admin access is requested, but the feature is disabled";
    assert_eq!(stage.events("FailedResourceClaimCreation").await, [text]);
    assert_eq!(stage.claims().await.len(), 0);
}

async fn alternatives_can_be_switched_off(stage: &Stage) {
    let request = doc!({ "name": "gpu", "firstAvailable": [
        { "name": "a", "deviceClassName": "gpu.example.com" }
    ] });
    let pointer = "/spec/spec/devices/requests";
    stage
        .create(template("t").with(pointer, vec![request]).unwrap())
        .await;
    let options = Options {
        is_prioritized_list_enabled: false,
        ..stage.options.clone()
    };
    stage.run_with(&options);
    stage.pod("web", &["gpu@t"]).await;
    stage
        .until(async |s| !s.events("FailedResourceClaimCreation").await.is_empty())
        .await;
    let text = "PodResourceClaim gpu: template includes a prioritized list of subrequests, but \
                the feature is disabled";
    assert_eq!(stage.events("FailedResourceClaimCreation").await, [text]);
}
