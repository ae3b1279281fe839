//! Rules as text, the requests they meet, and positions.

use windlass_faults::{FaultAction, FaultPlan, FaultRule, Position, RequestFacts};

fn rule(text: &str) -> FaultRule {
    text.parse().expect("a rule of the test")
}

fn create(resource: &str) -> RequestFacts<'_> {
    RequestFacts {
        verb: "create",
        resource,
        namespace: "default",
        agent: "manager/v0 (linux/amd64)",
        user: "admin",
        ..RequestFacts::default()
    }
}

#[test]
fn a_rule_is_read_and_written_alike() {
    for text in [
        "drop",
        "lose,verb=create,resource=pods,at=2",
        "duplicate,agent=manager",
        "delay=250ms,verb=read",
        "status=409,verb=update,resource=deployments.apps/status,user=jane,at=3,times=2",
        "status=429,retry-after=5",
        "cut=3,resource=pods",
    ] {
        assert_eq!(rule(text).to_string(), text);
    }
    assert_eq!(rule("delay=2s").to_string(), "delay=2000ms");
}

#[test]
fn a_rule_that_cannot_be_read_says_which_words_there_are() {
    let error = |text: &str| text.parse::<FaultRule>().unwrap_err().to_string();
    assert_eq!(
        error("explode"),
        "\"explode\" is not a fault; faults are: drop, lose, duplicate, delay=DURATION, \
         status=CODE, cut=EVENTS"
    );
    assert_eq!(
        error("drop,kind=Pod"),
        "\"kind=Pod\" is not a condition of a fault; conditions are: verb, resource, namespace, \
         name, agent, user, at, times, retry-after, each as name=value"
    );
    assert_eq!(
        error("status=200"),
        "\"200\" is not a valid status of a fault"
    );
    assert_eq!(error("delay=2h"), "\"2h\" is not a valid delay of a fault");
    assert_eq!(error("drop,at=0"), "\"0\" is not a valid at of a fault");
    assert_eq!(
        error("drop,retry-after=1"),
        "\"1\" is not a valid retry-after of a fault"
    );
}

#[test]
fn a_position_counts_only_the_requests_that_fit() {
    let plan = FaultPlan::new(vec![rule(
        "lose,verb=create,resource=pods,agent=manager,at=2",
    )]);
    let action = |request: &RequestFacts<'_>| plan.decide(request).action;
    assert_eq!(action(&create("pods")), None);
    assert_eq!(action(&create("configmaps")), None);
    let other = RequestFacts {
        agent: "kubectl/v1.36.4",
        ..create("pods")
    };
    assert_eq!(action(&other), None);
    assert_eq!(action(&create("pods")), Some(FaultAction::LoseAnswer));
    assert_eq!(action(&create("pods")), None);
}

#[test]
fn reads_writes_and_watches_are_told_apart() {
    let of = |verb| RequestFacts {
        verb,
        ..create("pods")
    };
    let fits = |text: &str, verb| rule(text).fits(&of(verb));
    assert!(fits("drop,verb=write", "patch") && !fits("drop,verb=write", "list"));
    assert!(fits("drop,verb=read", "watch") && !fits("drop,verb=read", "delete"));
    assert!(fits("cut=1", "watch") && !fits("cut=1", "list"));
}

#[test]
fn positions_name_the_requests_of_a_run_for_the_next() {
    let plan = FaultPlan::default();
    for resource in ["pods", "configmaps", "pods"] {
        let number = plan.decide(&create(resource)).number;
        plan.answered(number, 201);
    }
    let seen = plan.seen();
    assert!(seen.iter().all(|request| request.code == Some(201)));
    let positions = Position::all(&seen);
    let names: Vec<_> = positions.iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
        [
            "create pods in default #1",
            "create configmaps in default #1",
            "create pods in default #2"
        ]
    );
    let again = FaultPlan::new(vec![positions[2].rule(FaultAction::DropRequest)]);
    let met = ["pods", "configmaps", "pods", "pods"]
        .map(|resource| again.decide(&create(resource)).action.is_some());
    assert_eq!(met, [false, false, true, false]);
}
