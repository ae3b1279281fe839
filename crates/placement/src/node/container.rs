//! The status of the containers of a pretend pod.

use tokio::time::Instant;
use windlass_core::{Doc, Object, Str, Time, doc};

use super::{
    behaviour::{Behaviour, ContainerBehaviour},
    image::ImageProblem,
    run::{ContainerRun, ContainerState, PastRun, Run, Sort, full_name},
};

/// How a container has ended of which nothing is known.
const UNKNOWN_REASON: &str = "ContainerStatusUnknown";
const UNKNOWN_MESSAGE: &str = "The container could not be located when the pod was terminated";
const UNKNOWN_CODE: i64 = 137;

/// The lists of container statuses of a pod.
#[derive(Debug, Default)]
pub(super) struct ContainerStatuses {
    pub(super) inits: Vec<Doc>,
    pub(super) mains: Vec<Doc>,
    pub(super) ephemeral: Vec<Doc>,
}

/// The statuses of all containers.
pub(super) fn statuses(pod: &Doc, run: &Run, does: &Behaviour, now: Instant) -> ContainerStatuses {
    let mut lists = ContainerStatuses::default();
    let all = Sort::all_of(pod).zip(&run.containers).zip(&does.containers);
    for (((sort, container), one), behaviour) in all {
        let subject = Subject {
            pod,
            container,
            one,
            run,
            does: behaviour,
            never_start: does.never_start.as_deref(),
            now,
        };
        match sort {
            Sort::Init | Sort::Sidecar => lists.inits.push(subject.status()),
            Sort::Main => lists.mains.push(subject.status()),
            Sort::Ephemeral => lists.ephemeral.push(subject.status()),
        }
    }
    lists
}

/// A container of which the status is written.
struct Subject<'a> {
    pod: &'a Doc,
    container: &'a Doc,
    one: &'a ContainerRun,
    run: &'a Run,
    does: &'a ContainerBehaviour,
    never_start: Option<&'a str>,
    now: Instant,
}

impl Subject<'_> {
    fn status(&self) -> Doc {
        let (one, container) = (self.one, self.container);
        let is_ready = match one.sort {
            Sort::Init => one.has_succeeded(),
            Sort::Sidecar | Sort::Main => one.is_ready(self.does, self.now),
            Sort::Ephemeral => false,
        };
        let image = match one.has_run() {
            true => format!("windlass://{}", container.str_at("/image")),
            false => String::new(),
        };
        let last = self.last();
        let last = last.map(|past| terminated(past, &self.id(past.restarts)));
        let mut fields = vec![
            ("name", Doc::from(&*one.name)),
            ("image", container.at("/image").clone()),
            ("imageID", image.into()),
            ("state", self.state()),
            ("lastState", last.unwrap_or_else(Doc::empty_object)),
            ("ready", is_ready.into()),
            ("restartCount", one.restarts.into()),
        ];
        if one.sort != Sort::Ephemeral {
            let is_started = one.sort != Sort::Init && one.is_started(self.does, self.now);
            fields.push(("started", is_started.into()));
        }
        if one.has_run() {
            fields.push(("containerID", self.id(one.restarts).into()));
        }
        fields.extend(self.resources());
        fields.extend(self.mounts());
        if one.is_running() {
            fields.push(("user", self.user()));
        }
        fields.into_iter().collect::<Object>().into()
    }

    /// The run that `lastState` tells of.
    fn last(&self) -> Option<&PastRun> {
        match self.one.state {
            _ if self.shows_end() => self.one.before.as_ref(),
            _ => self.one.past.as_ref(),
        }
    }

    /// Returns true if `state` tells of the last run.
    fn shows_end(&self) -> bool {
        match self.one.state {
            ContainerState::Exited => true,
            ContainerState::BackOff { .. } => self.one.restart_delay().is_zero(),
            _ => false,
        }
    }

    fn state(&self) -> Doc {
        let one = self.one;
        if let Some(past) = one.past.as_ref().filter(|_| self.shows_end()) {
            return doc!({ "terminated": (ending(past, &self.id(past.restarts))) });
        }
        match one.state {
            ContainerState::Running { at, .. } => {
                doc!({ "running": { "startedAt": (at.to_string()) } })
            }
            ContainerState::BackOff { .. } => {
                let (delay, of) = (one.restart_delay(), full_name(self.pod));
                let message = format!(
                    "back-off {} restarting failed container={} pod={of}",
                    go_duration(delay.as_secs()),
                    one.name
                );
                waiting("CrashLoopBackOff", &message)
            }
            ContainerState::Pulling { .. } => self.pulling(),
            ContainerState::InvalidImage => match &self.does.image {
                Some(ImageProblem::InvalidName(message)) => waiting("InvalidImageName", message),
                _ => waiting("InvalidImageName", ""),
            },
            ContainerState::Lost => unknown(),
            ContainerState::Waiting | ContainerState::Exited => waiting(self.reason_to_wait(), ""),
        }
    }

    fn pulling(&self) -> Doc {
        let image = self.container.str_at("/image");
        let message = match &self.does.image {
            Some(ImageProblem::Pull(message)) => message.as_str(),
            _ => "",
        };
        match self.one.has_just_failed_to_pull(self.now) {
            true => waiting("ErrImagePull", message),
            false => {
                let message = format!("Back-off pulling image {image:?}: ErrImagePull: {message}");
                waiting("ImagePullBackOff", &message)
            }
        }
    }

    fn reason_to_wait(&self) -> &str {
        let inits = self.pod.at("/spec/initContainers").items();
        let is_first = match inits.first() {
            Some(first) => first.str_at("/name") == &*self.one.name,
            None => self.one.sort == Sort::Main,
        };
        match self.never_start {
            Some(reason) if is_first => reason,
            _ if inits.is_empty() => "ContainerCreating",
            _ => "PodInitializing",
        }
    }

    /// The resources that the container has now, which may lag behind its spec.
    fn resources(&self) -> Vec<(&'static str, Doc)> {
        let resources = self.run.resize.actual(self.container);
        let mut fields = Vec::new();
        if resources.as_object().is_some_and(|given| !given.is_empty()) {
            fields.push(("resources", resources.clone()));
            let requests = self.run.resize.allocated(self.container).get("requests");
            fields.extend(requests.map(|requests| ("allocatedResources", requests.clone())));
        }
        fields
    }

    fn mounts(&self) -> Option<(&'static str, Doc)> {
        let mounts = self.container.at("/volumeMounts").items();
        let shown = mounts.iter().map(|mount| {
            let (name, path) = (mount.at("/name"), mount.at("/mountPath"));
            let shown = doc!({ "name": name, "mountPath": path });
            let is_read_only = mount.at("/readOnly").as_bool() == Some(true);
            let Some(shown) = shown.as_object().filter(|_| is_read_only) else {
                return shown;
            };
            let recursive = match mount.str_at("/recursiveReadOnly") {
                "Enabled" | "IfPossible" => "Enabled",
                _ => "Disabled",
            };
            let shown = shown.with("readOnly", true.into());
            shown.with("recursiveReadOnly", recursive.into()).into()
        });
        let shown: Vec<Doc> = shown.collect();
        (!shown.is_empty()).then(|| ("volumeMounts", shown.into()))
    }

    /// The identity of the first process: what the security contexts ask for, or root.
    fn user(&self) -> Doc {
        let of_pod = self.pod.at("/spec/securityContext");
        let number = |own: &str| {
            let own_context = self.container.at("/securityContext");
            let found = own_context.get(own).or_else(|| of_pod.get(own));
            found.and_then(Doc::as_i64).unwrap_or(0)
        };
        let gid = number("runAsGroup");
        let groups = of_pod.at("/supplementalGroups").items().iter();
        let mut groups: Vec<i64> = groups.filter_map(Doc::as_i64).collect();
        groups.extend(of_pod.at("/fsGroup").as_i64());
        groups.push(gid);
        groups.sort_unstable();
        groups.dedup();
        let groups: Vec<Doc> = groups.into_iter().map(Doc::from).collect();
        doc!({ "linux": {
            "uid": (number("runAsUser")), "gid": gid, "supplementalGroups": groups,
        } })
    }

    /// The id of the container: 64 digits that repeat for the same pod, container and restart.
    fn id(&self, restarts: i64) -> String {
        use std::fmt::Write;
        let mut digits = String::from("windlass://");
        for part in 0..4_u8 {
            // FNV-1a: ids must differ, and need not be hard to guess.
            let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ u64::from(part);
            let uid = self.pod.meta().uid_str().bytes();
            let name = self.one.name.bytes();
            for byte in uid.chain(name).chain(restarts.to_le_bytes()) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            let _ = write!(digits, "{hash:016x}");
        }
        digits
    }
}

/// Whole seconds as Go writes durations: `10s`, `1m20s`, `5m0s`.
fn go_duration(seconds: u64) -> String {
    match seconds / 60 {
        0 => format!("{seconds}s"),
        minutes => format!("{minutes}m{}s", seconds % 60),
    }
}

fn unknown() -> Doc {
    doc!({ "terminated": {
        "exitCode": UNKNOWN_CODE, "reason": UNKNOWN_REASON, "message": UNKNOWN_MESSAGE,
        "startedAt": null, "finishedAt": null,
    } })
}

fn waiting(reason: &str, message: &str) -> Doc {
    match message {
        "" => doc!({ "waiting": { "reason": reason } }),
        message => doc!({ "waiting": { "reason": reason, "message": message } }),
    }
}

fn terminated(past: &PastRun, id: &str) -> Doc {
    doc!({ "terminated": (ending(past, id)) })
}

fn ending(past: &PastRun, id: &str) -> Doc {
    let text = |time: Time| Str::new(&time.to_string());
    doc!({
        "exitCode": (past.exit_code), "reason": (&*past.reason),
        "startedAt": (text(past.started)), "finishedAt": (text(past.ended)), "containerID": id,
    })
}
