//! Policies of failure and success.

use windlass_core::{Doc, condition, doc, merge_patch};

use crate::world::{World, conditions, count, has, index, job, of_index};

fn exit_rule(action: &str, code: i64) -> Doc {
    doc!({ "action": action, "onExitCodes": { "operator": "In", "values": [code] } })
}

fn with_rules(rules: Vec<Doc>, spec: &Doc) -> Doc {
    let policy = doc!({ "podFailurePolicy": { "rules": rules } });
    job("pi", merge_patch(spec, &policy))
}

#[tokio::test(start_paused = true)]
async fn a_rule_fails_the_job_and_says_why() {
    let world = World::new().await;
    let rules = vec![exit_rule("Ignore", 7), exit_rule("FailJob", 42)];
    world
        .create(with_rules(
            rules,
            &doc!({ "parallelism": 2, "completions": 2 }),
        ))
        .await;
    let pods = world.until_active(2).await;
    world.exit(&pods[0], 42).await;
    world.until("pi", |job| has(job, "FailureTarget")).await;
    world.remove_deleted().await;
    let failed = world.until("pi", |job| has(job, "Failed")).await;
    let name = pods[0].meta().name();
    let text = format!(
        "Container c for pod default/{name} failed with exit code 42 matching FailJob rule at \
         index 1"
    );
    for kind in ["FailureTarget", "Failed"] {
        let found = condition(&failed, kind).unwrap();
        assert_eq!(
            (found.reason.as_str(), &found.message),
            ("PodFailurePolicy", &text)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_first_rule_that_matches_applies() {
    let world = World::new().await;
    let rules = vec![exit_rule("Count", 42), exit_rule("FailJob", 42)];
    world.create(with_rules(rules, &doc!({}))).await;
    let pods = world.until_active(1).await;
    world.exit(&pods[0], 42).await;
    let counted = world.until("pi", |job| count(job, "failed") == 1).await;
    assert!(conditions(&counted).is_empty());
    world.until_active(1).await;
}

#[tokio::test(start_paused = true)]
async fn disruptions_can_be_ignored() {
    let world = World::new().await;
    let pattern = doc!({ "type": "DisruptionTarget", "status": "True" });
    let rule = doc!({ "action": "Ignore", "onPodConditions": [pattern] });
    world
        .create(with_rules(vec![rule], &doc!({ "backoffLimit": 0 })))
        .await;
    let pods = world.until_active(1).await;
    let disrupted = doc!({ "phase": "Failed", "conditions": [
        { "type": "DisruptionTarget", "status": "True", "reason": "x" }
    ] });
    world.cluster.patch_status(&pods[0], disrupted).await;
    world.until_active(0).await;
    world.until_active(1).await;
    let job = world.job("pi").await;
    assert_eq!(count(&job, "failed"), 0);
    assert!(conditions(&job).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_rule_fails_an_index_without_another_try() {
    let world = World::new().await;
    let spec = doc!({
        "completionMode": "Indexed", "completions": 2, "parallelism": 2,
        "backoffLimitPerIndex": 5
    });
    world
        .create(with_rules(vec![exit_rule("FailIndex", 42)], &spec))
        .await;
    let pods = world.until_active(2).await;
    world.exit(of_index(&pods, 0), 42).await;
    let listed = world
        .until("pi", |job| job.str_at("/status/failedIndexes") == "0")
        .await;
    assert!(conditions(&listed).is_empty());
    world.cluster.pass(std::time::Duration::from_secs(60)).await;
    let active = world.active().await;
    assert!(active.len() == 1 && index(&active[0]) == 1);
    world.succeed(&active[0]).await;
    let failed = world.until("pi", |job| has(job, "Failed")).await;
    assert_eq!(
        (count(&failed, "failed"), count(&failed, "succeeded")),
        (1, 1)
    );
}

fn with_success(rule: Doc) -> Doc {
    let spec = doc!({
        "completionMode": "Indexed", "completions": 5, "parallelism": 5,
        "successPolicy": { "rules": [rule] }
    });
    job("pi", spec)
}

#[tokio::test(start_paused = true)]
async fn enough_indexes_are_a_success_and_the_rest_no_failure() {
    let world = World::new().await;
    world
        .create(with_success(doc!({ "succeededCount": 2 })))
        .await;
    let pods = world.until_active(5).await;
    world.succeed(&pods[0]).await;
    world.settle().await;
    assert!(conditions(&world.job("pi").await).is_empty());
    world.succeed(&pods[1]).await;
    let met = world
        .until("pi", |job| has(job, "SuccessCriteriaMet"))
        .await;
    assert_eq!(count(&met, "terminating"), 3);
    world.remove_deleted().await;
    let done = world.until("pi", |job| has(job, "Complete")).await;
    assert_eq!(
        conditions(&done),
        [
            "SuccessCriteriaMet=True SuccessPolicy",
            "Complete=True SuccessPolicy"
        ]
    );
    assert_eq!(
        condition(&done, "Complete").unwrap().message,
        "Matched rules at index 0"
    );
    assert_eq!((count(&done, "succeeded"), count(&done, "failed")), (2, 0));
    assert!(
        world
            .has_event("pi", "Normal Completed Job completed")
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn any_two_of_the_indexes_that_matter_suffice() {
    let world = World::new().await;
    let rule = doc!({ "succeededIndexes": "0-2", "succeededCount": 2 });
    world.create(with_success(rule)).await;
    let pods = world.until_active(5).await;
    for at in [3, 4, 0] {
        world.succeed(of_index(&pods, at)).await;
    }
    world.until("pi", |job| count(job, "succeeded") == 3).await;
    world.settle().await;
    assert!(conditions(&world.job("pi").await).is_empty());
    world.succeed(of_index(&pods, 2)).await;
    world
        .until("pi", |job| has(job, "SuccessCriteriaMet"))
        .await;
}
