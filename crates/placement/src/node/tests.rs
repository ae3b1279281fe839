//! The status of a pretend pod is a fixed point: an agent that knows nothing but the status derives
//! the same status from it.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;
use windlass_core::{Doc, MicroTime, Object, Time, doc};

use super::{
    Options, PULL_ERROR,
    behaviour::Behaviour,
    resize::ResizeVerdict,
    run::{ContainerState, Run, Step},
    status::{Addresses, says_same, with_status},
};

/// Steps at one point in time, and points in time, for one pod.
const STEPS_LIMIT: usize = 100;
const REST_LIMIT: usize = 500;

/// The time since the pod came, as a process and the world see it.
#[derive(Clone, Copy)]
struct Times {
    now: Instant,
    wall: MicroTime,
}

impl Times {
    fn start(fraction: Duration) -> Self {
        Self {
            now: Instant::now() + Duration::from_secs(86_400),
            wall: MicroTime::from(Time::from_unix(1_767_225_600)) + fraction,
        }
    }

    fn after(self, passed: Duration) -> Self {
        Self {
            now: self.now + passed,
            wall: self.wall + passed,
        }
    }
}

/// What the agent does for a pod, without a server.
struct Stage {
    pod: Doc,
    run: Run,
    verdict: ResizeVerdict,
}

impl Stage {
    fn resume(pod: &Doc, verdict: &ResizeVerdict, at: Times) -> Self {
        Self {
            pod: pod.clone(),
            run: Run::resume(pod, at.now, at.wall),
            verdict: verdict.clone(),
        }
    }

    /// Takes the pod as far as it goes, and says when to come back. Each status is seen by `look`,
    /// and with it whether there is nothing more to do.
    fn serve(&mut self, at: Times, mut look: impl FnMut(&Self, bool)) -> Option<Duration> {
        for _ in 0..STEPS_LIMIT {
            let does = Behaviour::of(&self.pod, &Options::default());
            let (now, wall) = (at.now, at.wall.to_time());
            let judge = || self.verdict.clone();
            let takes = does.resize_after;
            self.run.settle_resize(&self.pod, takes, (now, wall), judge);
            match self.run.advance(&self.pod, &does, now, wall) {
                Step::Prepare => self.run.has_prepared(),
                Step::Remove => return None,
                Step::Show(after) => {
                    self.pod = self.status(&does, at);
                    let is_rest = after != Some(Duration::ZERO);
                    look(self, is_rest);
                    if is_rest {
                        return after;
                    }
                }
            }
        }
        panic!("no end of steps: {:?}", self.pod.at("/status"));
    }

    fn status(&self, does: &Behaviour, at: Times) -> Doc {
        let addresses = Addresses {
            host: "172.18.0.2".to_owned(),
            pod: "10.0.0.1".to_owned(),
        };
        let times = (at.now, at.wall.to_time());
        with_status(&self.pod, &self.run, does, &addresses, times)
    }
}

/// A pod, and what others do to it later.
struct Case {
    name: &'static str,
    pod: Doc,
    edits: Vec<(u64, Doc)>,
    verdict: ResizeVerdict,
    lasts: u64,
}

impl Case {
    fn new(name: &'static str, annotations: &[(&str, &str)], spec: &Doc) -> Self {
        let annotations = annotations.iter();
        let annotations = annotations.map(|(key, value)| (*key, Doc::from(*value)));
        Self {
            name,
            pod: doc!({
                "metadata": {
                    "name": "p", "namespace": "default", "uid": "1", "generation": 1,
                    "annotations": (annotations.collect::<Object>()),
                },
                "spec": spec,
            }),
            edits: Vec::new(),
            verdict: ResizeVerdict::Fits,
            lasts: 2000,
        }
    }

    fn with(mut self, at: u64, pointer: &str, value: impl Into<Doc>) -> Self {
        let (_, newest) = self.edits.last().cloned().unwrap_or((0, self.pod.clone()));
        let edited = newest.with(pointer, value).expect("the pod can be edited");
        let generation = newest.meta().generation() + 1;
        let edited = edited.with("/metadata/generation", generation).unwrap();
        self.edits.push((at, edited));
        self
    }

    /// The pod is deleted: it has 30 seconds.
    fn deleted(self, at: u64) -> Self {
        let deleted = "2026-01-01T01:00:00Z";
        self.with(at, "/metadata/deletionGracePeriodSeconds", 30)
            .with(at, "/metadata/deletionTimestamp", deleted)
    }

    fn judged(mut self, verdict: ResizeVerdict) -> Self {
        self.verdict = verdict;
        self
    }

    /// Lets the pod live. At every status an agent that comes anew must derive the same one.
    fn check(&self, fraction: Duration, seen: &mut BTreeSet<&'static str>) {
        let start = Times::start(fraction);
        let mut stage = Stage::resume(&self.pod, &self.verdict, start);
        let (mut passed, mut edits) = (Duration::ZERO, self.edits.iter().peekable());
        for _ in 0..REST_LIMIT {
            while let Some((_, edited)) = edits.next_if(|(at, _)| *at <= passed.as_secs()) {
                let status = stage.pod.at("/status").clone();
                stage.pod = edited.with("/status", status).unwrap();
            }
            let at = start.after(passed);
            let rest = stage.serve(at, |stage, is_rest| {
                seen.extend(stage.run.containers.iter().map(|one| label(one.state)));
                self.compare(stage, at, is_rest && fraction.is_zero());
            });
            let edit = edits.peek().map(|(at, _)| Duration::from_secs(*at));
            let next = [rest.map(|rest| passed + rest), edit];
            match next.into_iter().flatten().min() {
                Some(next) if next.as_secs() <= self.lasts => passed = next,
                _ => return,
            }
        }
        panic!("{}: no end of rests", self.name);
    }

    fn compare(&self, live: &Stage, at: Times, is_exact_rest: bool) {
        let derive = |pod: &Doc| {
            let mut anew = Stage::resume(pod, &live.verdict, at);
            let does = Behaviour::of(pod, &Options::default());
            let (now, wall) = (at.now, at.wall.to_time());
            let judge = || live.verdict.clone();
            anew.run
                .settle_resize(pod, does.resize_after, (now, wall), judge);
            anew.status(&does, at)
        };
        let once = derive(&live.pod);
        assert_eq!(once, derive(&once), "{}: derived twice", self.name);
        if is_exact_rest {
            assert_eq!(once, live.pod, "{}: derived", self.name);
            let mut anew = Stage::resume(&live.pod, &live.verdict, at);
            anew.serve(at, |anew, _| {
                assert_eq!(anew.pod, live.pod, "{}: served", self.name);
            });
        }
    }
}

fn label(state: ContainerState) -> &'static str {
    match state {
        ContainerState::Waiting => "waiting",
        ContainerState::Pulling { .. } => "pulling",
        ContainerState::InvalidImage => "invalid image",
        ContainerState::Running { .. } => "running",
        ContainerState::BackOff { .. } => "back-off",
        ContainerState::Exited => "exited",
        ContainerState::Lost => "lost",
    }
}

/// A pod with an init container, a sidecar and two main containers.
fn full(policy: &str) -> Doc {
    doc!({
        "restartPolicy": policy,
        "initContainers": [
            { "name": "setup", "image": "i" },
            { "name": "side", "image": "s", "restartPolicy": "Always" },
        ],
        "containers": [{ "name": "web", "image": "a" }, { "name": "bad", "image": "b" }],
    })
}

fn single(container: &Doc) -> Doc {
    let container = container.with("/name", "web").unwrap();
    doc!({ "restartPolicy": "Always", "containers": [container] })
}

fn probed(kind: &str) -> Doc {
    let probe = doc!({ "periodSeconds": 5, "failureThreshold": 2, "initialDelaySeconds": 3 });
    single(&doc!({ "image": "a", (kind): probe }))
}

fn starts() -> Vec<Case> {
    let plain = single(&doc!({ "image": "a" }));
    let broken = single(&doc!({ "image": "Not An Image" }));
    let pull = &[("windlass.dev/pull-error.bad", "no such image")];
    let late = &[
        ("windlass.dev/start-after", "5s"),
        ("windlass.dev/ready-after", "3s"),
        ("windlass.dev/exit-after.setup", "4s"),
    ];
    vec![
        Case::new("created late", late, &full("Always")),
        Case::new("never pulled", &[(PULL_ERROR, "none")], &plain).deleted(1000),
        Case::new("one is never pulled", pull, &full("Always")),
        Case::new(
            "not pulled again",
            &[("windlass.dev/exit-after", "5s")],
            &plain,
        )
        .with(12, "/metadata/annotations", doc!({ (PULL_ERROR): "gone" })),
        Case::new("invalid image", &[], &broken).with(9, "/spec/containers/0/image", "a"),
        Case::new(
            "never starts",
            &[("windlass.dev/never-start", "Odd")],
            &plain,
        )
        .deleted(9),
        Case::new(
            "says that it is not pulled",
            &[("windlass.dev/never-start", "ImagePullBackOff")],
            &plain,
        ),
        Case::new(
            "says that it crashes",
            &[("windlass.dev/never-start", "CrashLoopBackOff")],
            &full("Always"),
        ),
    ]
}

fn exits() -> Vec<Case> {
    let crash = &[("windlass.dev/crash.bad", "true")];
    let setup = &[
        ("windlass.dev/crash.setup", "true"),
        ("windlass.dev/exit-code.setup", "3"),
    ];
    let stable = &[("windlass.dev/exit-after.bad", "601s")];
    let some = &[("windlass.dev/exit-after.bad", "5s")];
    let all = full("Never")
        .with("/containers/1/restartPolicy", "Never")
        .and_then(|spec| {
            let rule = doc!([{
                "action": "RestartAllContainers",
                "exitCodes": { "operator": "In", "values": [9] },
            }]);
            spec.with("/containers/1/restartPolicyRules", rule)
        });
    let restarts = &[
        ("windlass.dev/exit-after", "never"),
        ("windlass.dev/exit-after.setup", "4s"),
        ("windlass.dev/exit-after.bad", "5s"),
        ("windlass.dev/exit-code.bad", "9"),
    ];
    let deadline = full("Always").with("/activeDeadlineSeconds", 60);
    let debug = doc!([{ "name": "debug", "image": "sh" }]);
    vec![
        Case::new("crashes", crash, &full("Always")),
        Case::new("crashes until it is deleted", crash, &full("Always")).deleted(100),
        Case::new("cannot be initialized", setup, &full("Always")),
        Case::new("fails to be initialized", setup, &full("Never")),
        Case::new("is stable between crashes", stable, &full("Always")),
        Case::new("crashes after it was stable", stable, &full("Always")).with(
            1210,
            "/metadata/annotations",
            doc!({ "windlass.dev/crash.bad": "true" }),
        ),
        Case::new("ends one by one", some, &full("Never")),
        Case::new("fails", crash, &full("OnFailure")),
        Case::new("restarts all", restarts, &all.unwrap()),
        Case::new("has a deadline", crash, &deadline.unwrap()),
        Case::new(
            "is looked into",
            &[("windlass.dev/exit-after.debug", "7s")],
            &full("Always"),
        )
        .with(9, "/spec/ephemeralContainers", debug),
    ]
}

fn changes() -> Vec<Case> {
    let fails = |probe| {
        [
            ("windlass.dev/fail-probe", probe),
            ("windlass.dev/fail-probe-after", "20s"),
        ]
    };
    let slow = &[("windlass.dev/resize-after", "5s")];
    let sized = single(&doc!({ "image": "a", "resources": { "requests": { "cpu": "1" } } }));
    let policy = doc!([{ "resourceName": "cpu", "restartPolicy": "RestartContainer" }]);
    let restarted = sized.with("/containers/0/resizePolicy", policy).unwrap();
    let resize = |name, spec: &Doc| {
        let to = "/spec/containers/0/resources/requests/cpu";
        Case::new(name, slow, spec).with(9, to, "2")
    };
    let hook = doc!({ "preStop": { "sleep": { "seconds": 8 } } });
    let slowly = full("Always").with("/containers/0/lifecycle", hook);
    vec![
        Case::new("is not live", &fails("liveness"), &probed("livenessProbe")),
        Case::new(
            "is not ready",
            &fails("readiness"),
            &probed("readinessProbe"),
        ),
        Case::new("is not started", &fails("startup"), &probed("startupProbe")),
        Case::new("stops slowly", &[], &slowly.unwrap()).deleted(9),
        resize("is resized", &sized),
        resize("is restarted for a resize", &restarted),
        resize("is not resized yet", &sized).judged(ResizeVerdict::Deferred("later".to_owned())),
        resize("is never resized", &sized).judged(ResizeVerdict::Infeasible("no".to_owned())),
    ]
}

#[test]
fn status_that_is_read_back_leads_to_the_same_status() {
    let mut seen = BTreeSet::new();
    for case in [starts(), exits(), changes()].into_iter().flatten() {
        for fraction in [0, 400, 999] {
            case.check(Duration::from_millis(fraction), &mut seen);
        }
    }
    let all = [
        "waiting",
        "pulling",
        "invalid image",
        "running",
        "back-off",
        "exited",
        "lost",
    ];
    assert_eq!(seen, BTreeSet::from(all));
}

#[test]
fn statuses_that_differ_in_timestamps_say_the_same() {
    let running = |at: &str| doc!({ "state": { "running": { "startedAt": at } } });
    let first = running("2026-01-01T00:00:00Z");
    assert!(says_same(&first, &running("2026-01-01T00:00:01Z")));
    assert!(!says_same(&first, &first.with("/restartCount", 1).unwrap()));
    let unset = first.with("/state/running/startedAt", Doc::NULL).unwrap();
    assert!(!says_same(&first, &unset));
    assert!(!says_same(&first, &doc!({ "state": { "running": {} } })));
}
