use windlass_core::{Env, doc};

use super::*;

fn now() -> Time {
    "2026-01-31T00:00:00Z".parse().unwrap()
}

fn in_phase(phase: &str) -> Doc {
    doc!({ "metadata": { "name": "web" }, "status": { "phase": phase } })
}

fn deleting(phase: &str) -> Doc {
    in_phase(phase)
        .with("/metadata/deletionTimestamp", "2026-01-01T00:00:00Z")
        .unwrap()
}

#[test]
fn pods_count_until_they_end_or_go() {
    for (phase, is_active) in [
        ("Running", true),
        ("Pending", true),
        ("Unknown", true),
        ("Succeeded", false),
        ("Failed", false),
    ] {
        assert_eq!(is_pod_active(&in_phase(phase)), is_active, "{phase}");
        assert!(!is_pod_active(&deleting(phase)), "{phase}");
    }
    assert!(is_pod_terminating(&deleting("Running")));
    assert!(!is_pod_terminating(&deleting("Succeeded")));
    assert!(!is_pod_terminating(&in_phase("Running")));
}

#[test]
fn a_pod_is_claimed_by_owner_and_labels() {
    let selector: Selector = "app=web".parse().unwrap();
    let pod = |owner: &str, app: &str| {
        let owner = doc!({ "uid": owner, "controller": true });
        doc!({ "metadata": { "labels": { "app": app }, "ownerReferences": vec![owner] } })
    };
    let is_claimed = |pod: Doc| is_pod_claimed(&pod, &"u1".into(), &selector);
    assert!(is_claimed(pod("u1", "web")));
    assert!(!is_claimed(pod("u2", "web")));
    assert!(!is_claimed(pod("u1", "db")));
    assert!(!is_claimed(
        doc!({ "metadata": { "labels": { "app": "web" } } })
    ));
}

fn ready_at(time: &str) -> Doc {
    let ready = doc!({ "type": "Ready", "status": "True", "lastTransitionTime": time });
    in_phase("Running")
        .with("/status/conditions", vec![ready])
        .unwrap()
}

#[test]
fn a_pod_is_available_when_it_has_been_ready_for_long_enough() {
    let seconds = Duration::from_secs;
    let left = |pod: &Doc, min| pod_available_in(pod, seconds(min), now()).map(|it| it.as_secs());
    assert_eq!(left(&in_phase("Running"), 30), None);
    assert_eq!(left(&ready_at("2026-01-31T00:00:00Z"), 0), None);
    assert_eq!(left(&ready_at(""), 30), None);
    assert_eq!(left(&ready_at("2026-01-31T00:00:00Z"), 1), Some(1));
    assert_eq!(left(&ready_at("2026-01-30T23:59:40Z"), 30), Some(10));
    assert_eq!(left(&ready_at("2026-01-30T23:59:00Z"), 30), None);
    assert!(is_pod_available(
        &ready_at("2026-01-30T23:59:30Z"),
        seconds(30),
        now()
    ));
    assert!(!is_pod_available(
        &ready_at("2026-01-30T23:59:31Z"),
        seconds(30),
        now()
    ));
    assert!(is_pod_available(
        &ready_at("2026-01-31T00:00:00Z"),
        seconds(0),
        now()
    ));
}

/// Pods in the order in which they are to be deleted.
fn in_order() -> Vec<Doc> {
    let running = |time: &str| ready_at(time).with("/spec/nodeName", "n1").unwrap();
    let restarted = |pod: Doc, restarts: i64| {
        let status = doc!({ "name": "web", "restartCount": restarts });
        pod.with("/status/containerStatuses", vec![status]).unwrap()
    };
    let sidecar = |pod: Doc, restarts: i64| {
        let container = doc!({ "name": "proxy", "restartPolicy": "Always" });
        let status = doc!({ "name": "proxy", "restartCount": restarts });
        let pod = pod.with("/spec/initContainers", vec![container]).unwrap();
        pod.with("/status/initContainerStatuses", vec![status])
            .unwrap()
    };
    let created = |pod: Doc, time: &str| pod.with("/metadata/creationTimestamp", time).unwrap();
    let month_ago = "2026-01-01T00:00:00Z";
    let pods = [
        in_phase("Pending"),
        in_phase("Pending").with("/spec/nodeName", "n1").unwrap(),
        in_phase("Unknown").with("/spec/nodeName", "n1").unwrap(),
        in_phase("Running").with("/spec/nodeName", "n1").unwrap(),
        running(""),
        running("2026-01-31T00:00:00Z"),
        restarted(running(month_ago), 3),
        sidecar(restarted(running(month_ago), 2), 2),
        created(restarted(running(month_ago), 2), "2026-01-30T23:59:55Z"),
        created(restarted(running(month_ago), 2), month_ago),
    ];
    let named = pods.into_iter().enumerate();
    named
        .map(|(at, pod)| pod.with("/metadata/uid", format!("u{at}")).unwrap())
        .collect()
}

#[test]
fn pods_go_in_one_order_however_they_are_shuffled() {
    let expected = in_order();
    for seed in 0..20 {
        let (env, mut pods) = (Env::seeded(seed), in_order());
        for at in (1..pods.len()).rev() {
            pods.swap(
                at,
                usize::try_from(env.random_below(at as u64 + 1)).unwrap(),
            );
        }
        pods.sort_by_cached_key(|pod| DeletionRank::of(pod, 0, now()));
        assert_eq!(pods, expected, "seed {seed}");
    }
}

/// One of few values.
fn any<'a>(env: &Env, values: &[&'a str]) -> &'a str {
    let count = u64::try_from(values.len()).unwrap();
    values[usize::try_from(env.random_below(count)).unwrap()]
}

/// A pod in any state, and how many related ones are on its node.
fn any_pod(env: &Env, at: usize) -> (Doc, usize) {
    let times = [
        "",
        "2026-01-30T22:00:00Z",
        "2026-01-30T19:00:00Z",
        "2026-01-01T00:00:00Z",
    ];
    let pod = match any(env, &["ready", "not"]) {
        "ready" => ready_at(any(env, &times)),
        _ => in_phase(any(env, &["Pending", "Unknown", "Running", ""])),
    };
    let annotations = doc!({ POD_DELETION_COST: (any(env, &["", "-1", "0", "1", "x"])) });
    let restarts = i64::try_from(env.random_below(3)).unwrap();
    let status = doc!({ "name": "web", "restartCount": restarts });
    let pod = pod
        .with("/spec/nodeName", any(env, &["", "n1"]))
        .and_then(|pod| pod.with("/metadata/annotations", annotations))
        .and_then(|pod| pod.with("/status/containerStatuses", vec![status]))
        .and_then(|pod| pod.with("/metadata/creationTimestamp", any(env, &times[1..])))
        .and_then(|pod| pod.with("/metadata/uid", format!("u{at}")));
    (pod.unwrap(), usize::try_from(env.random_below(3)).unwrap())
}

#[test]
fn any_pods_go_in_one_order() {
    for seed in 0..1000 {
        let env = Env::seeded(seed);
        let count = usize::try_from(2 + env.random_below(30)).unwrap();
        let mut pods: Vec<_> = (0..count).map(|at| any_pod(&env, at)).collect();
        let rank = |(pod, related): &(Doc, usize)| DeletionRank::of(pod, *related, now());
        pods.sort_by_cached_key(rank);
        let expected = pods.clone();
        pods.reverse();
        let at = usize::try_from(env.random_below(count as u64)).unwrap();
        pods.rotate_left(at);
        pods.sort_by_cached_key(rank);
        assert_eq!(pods, expected, "seed {seed}");
    }
}

/// How long ago a pod became ready counts by powers of two.
#[test]
fn pods_that_are_about_equally_old_go_by_their_uid() {
    let pod = |hour: u8, uid: &str| {
        let ready = ready_at(&format!("2026-01-30T{hour}:00:00Z"));
        ready.with("/metadata/uid", uid).unwrap()
    };
    let rank = |pod: &Doc| DeletionRank::of(pod, 0, now());
    let (two, five, eight) = (pod(22, "z"), pod(19, "y"), pod(16, "x"));
    assert!(rank(&two) < rank(&five), "two hours and five");
    assert!(rank(&eight) < rank(&five), "five hours and eight are alike");
    assert!(rank(&pod(16, "z")) > rank(&five));
}

#[test]
fn a_pod_without_a_node_goes_first_however_crowded_the_nodes_are() {
    let free = in_phase("Pending");
    let bound = free.with("/spec/nodeName", "n1").unwrap();
    for (related, others) in [(0, 9), (9, 0)] {
        let of = |pod: &Doc, related| DeletionRank::of(pod, related, now());
        assert!(of(&free, related) < of(&bound, others));
    }
}

#[test]
fn crowded_nodes_and_lower_costs_give_up_their_pods_first() {
    let pod = ready_at("2026-01-01T00:00:00Z");
    let rank = |pod: &Doc, related| DeletionRank::of(pod, related, now());
    assert!(rank(&pod, 2) < rank(&pod, 1));

    let costing = |cost: &str| {
        let annotations = doc!({ "controller.kubernetes.io/pod-deletion-cost": cost });
        pod.with("/metadata/annotations", annotations).unwrap()
    };
    assert!(rank(&costing("-200"), 0) < rank(&pod, 5));
    assert!(rank(&pod, 0) < rank(&costing("100"), 5));
    assert_eq!(rank(&costing("a lot"), 0), rank(&pod, 0));
    let not_ready = in_phase("Running").with(
        "/metadata/annotations",
        doc!({
            "controller.kubernetes.io/pod-deletion-cost": "100"
        }),
    );
    assert!(rank(&not_ready.unwrap(), 0) < rank(&costing("-200"), 0));
}

#[test]
fn costs_and_phases_that_are_not_known_count_as_the_least() {
    let cost = |cost: &str| {
        let pod = in_phase("Running");
        let annotations = doc!({ POD_DELETION_COST: cost });
        let pod = pod.with("/metadata/annotations", annotations).unwrap();
        DeletionRank::of(&pod, 0, now())
    };
    for odd in ["+5", "007", "abc", "", "2147483648"] {
        assert_eq!(cost(odd), cost("0"), "{odd:?}");
    }
    assert!(cost("-10") < cost("0") && cost("0") < cost("5"));
    let rank = |phase: &str| DeletionRank::of(&in_phase(phase), 0, now());
    assert_eq!(rank(""), rank("Pending"));
    assert!(rank("Pending") < rank("Unknown") && rank("Unknown") < rank("Running"));
}

#[test]
fn a_ready_pod_that_does_not_say_since_when_goes_before_those_that_do() {
    let untimed = doc!({
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] }
    });
    let timed = ready_at("2026-01-01T00:00:00Z");
    let rank = |pod: &Doc| DeletionRank::of(pod, 0, now());
    assert!(rank(&untimed) < rank(&timed));
}
