//! ReplicaSets that are scaled up: the whole stack against the whole stack, and controller against
//! controller on kube-apiserver.

use std::path::Path;

use anyhow::{Context, ensure};
use windlass_envtest::{ControlPlane, Options};

use super::{
    contestant::{Numbers, Program, Running},
    process::{Directory, Started, cpu_s, resident_mb},
    report::{Better, Report, median},
};

/// What is scaled: the end of the names of the figures, how many sets, and to how many pods
/// together.
const LOADS: [(&str, &str, &str); 2] = [("", "1", "20000"), ("_many_sets", "1000", "10000")];

/// Runs of each stack, of which the middle one counts.
const ROUNDS: usize = 3;

const CONTROLLER: &str = "replicaset-controller";

/// More requests than can be made. Both controllers have a limit of their own for the sake of the
/// API server, and with it they would measure that limit.
const UNLIMITED: [&str; 2] = ["--kube-api-qps=1000000", "--kube-api-burst=1000000"];

/// Runs windlass, and the peers if asked to.
pub(crate) fn run(with_peers: bool) -> anyhow::Result<Report> {
    Program::Windlass.build()?;
    Program::Server.build()?;
    let mut report = Report::new(
        "replicaset",
        &[
            "one ReplicaSet from 0 to 20,000 pods; many_sets: 1,000 of them from 0 to 10 each",
            "the template is a pod of the corpus; from the first write of spec.replicas until every",
            "status.replicas is what was asked for; one watch on the sets is the only other client",
            "memory: resident memory of all processes at the end; controller: of that process alone",
            "windlass: server and controller in one process, every write synced",
            "real-stack: etcd, kube-apiserver and kube-controller-manager 1.36.4, every write synced",
            "windlass-on-real: the same, with windlass's controller in place of the controller manager;",
            "both run the ReplicaSet controller alone with 5 workers, without a limit of requests,",
            "with a token of that controller's service account; vs_kcm compares these two",
            "median of 3 runs; those on kube-apiserver take turns, because the speed of a host varies",
        ],
    );
    report.column("windlass", measure_embedded()?);
    if with_peers {
        let [theirs, ours] = measure_real_in_turns()?;
        report.column("real-stack", theirs);
        report.column("windlass-on-real", ours);
        add_ratios(&mut report)?;
    }
    Ok(report)
}

/// As everywhere, windlass divided by the peer; the worse one of the two loads counts.
fn add_ratios(report: &mut Report) -> anyhow::Result<()> {
    let stack: [&[&str]; 2] = [&["windlass"], &["real-stack"]];
    let controller: [&[&str]; 2] = [&["windlass-on-real"], &["real-stack"]];
    for (name, better, metric, sides) in [
        (
            "pods_per_s_vs_real_stack",
            Better::Higher,
            "pods_per_s",
            stack,
        ),
        ("memory_vs_real_stack", Better::Lower, "memory_mb", stack),
        (
            "pods_per_s_vs_kcm",
            Better::Higher,
            "pods_per_s",
            controller,
        ),
        ("cpu_vs_kcm", Better::Lower, "controller_cpu_s", controller),
        (
            "memory_vs_kcm",
            Better::Lower,
            "controller_memory_mb",
            controller,
        ),
    ] {
        let metrics = LOADS.map(|(suffix, ..)| format!("{metric}{suffix}"));
        let metrics: Vec<&str> = metrics.iter().map(String::as_str).collect();
        report.ratio(name, better, &metrics, sides)?;
    }
    Ok(())
}

fn measure_embedded() -> anyhow::Result<Numbers> {
    let flag = format!("--controllers={CONTROLLER}");
    let mut rounds = Vec::new();
    for round in 1..=ROUNDS {
        let mut numbers = Numbers::new();
        for (suffix, sets, pods) in LOADS {
            eprintln!("windlass: {sets} sets, {pods} pods, round {round} of {ROUNDS}");
            let directory = Directory::new()?;
            let server = Started::windlass(&directory, &["up", &flag])?;
            let load = Load { suffix, sets, pods };
            numbers.extend(load.run(&directory.file("kubeconfig"), &[server.pid], None)?);
        }
        rounds.push(numbers);
    }
    Ok(median(&rounds))
}

/// Who looks after the sets of kube-apiserver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Controller {
    Ours,
    Theirs,
}

/// Either controller on kube-apiserver, theirs first.
fn measure_real_in_turns() -> anyhow::Result<[Numbers; 2]> {
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        eprintln!("on kube-apiserver: round {round} of {ROUNDS}");
        theirs.push(measure_real(Controller::Theirs)?);
        ours.push(measure_real(Controller::Ours)?);
    }
    Ok([median(&theirs), median(&ours)])
}

fn measure_real(controller: Controller) -> anyhow::Result<Numbers> {
    let mut numbers = Numbers::new();
    for (suffix, sets, pods) in LOADS {
        eprintln!("{controller:?} on kube-apiserver: {sets} sets, {pods} pods");
        let mut options = Options::default().durable();
        if controller == Controller::Theirs {
            options = options.controllers([CONTROLLER]);
            for flag in UNLIMITED {
                options = options.controller_manager_flag(flag);
            }
        }
        let server = ControlPlane::start(&options)
            .context("no control plane; `cargo xtask envtest build` makes one")?;
        let pids = server.pids();
        let ours = match controller {
            Controller::Ours => Some(start_ours(&server)?),
            Controller::Theirs => None,
        };
        let controller = ours.as_ref().map(Running::pid).or(pids.controller_manager);
        let all: Vec<u32> = [Some(pids.etcd), pids.apiserver, controller]
            .into_iter()
            .flatten()
            .collect();
        let load = Load { suffix, sets, pods };
        numbers.extend(load.run(&path(server.kubeconfig()), &all, controller)?);
    }
    Ok(numbers)
}

/// Starts the controller of windlass with the account that kube-controller-manager's would have.
fn start_ours(server: &ControlPlane) -> anyhow::Result<Running> {
    const NAMESPACE: &str = "kube-system";
    let status = server
        .kubectl()
        .args(["create", "serviceaccount", "-n", NAMESPACE, CONTROLLER])
        .stdout(std::process::Stdio::null())
        .status()?;
    ensure!(status.success(), "kubectl ended with {status}");
    let kubeconfig = server.kubeconfig_for_account(NAMESPACE, CONTROLLER)?;
    let (controllers, kubeconfig) = (
        format!("--controllers={CONTROLLER}"),
        format!("--kubeconfig={}", path(&kubeconfig)),
    );
    let mut words = vec!["controllers", &controllers, &kubeconfig];
    words.extend(["--leader-elect=false", "--metrics-bind-address=0"]);
    words.extend(UNLIMITED);
    Running::start(Program::Server.command(&words))
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// One of [`LOADS`].
struct Load {
    suffix: &'static str,
    sets: &'static str,
    pods: &'static str,
}

impl Load {
    /// Scales sets up on a server, and measures its processes and that of the controller.
    fn run(
        &self,
        kubeconfig: &str,
        all: &[u32],
        controller: Option<u32>,
    ) -> anyhow::Result<Numbers> {
        let mut command = Program::Windlass.command(&["replicaset", self.sets, self.pods]);
        command.env("KUBECONFIG", kubeconfig);
        let mut load = Running::start(command)?;
        load.numbers().context("the sets were not made")?;
        let controller: Vec<u32> = controller.into_iter().collect();
        let (all_before, before) = (cpu_s(all)?, cpu_s(&controller)?);
        load.tell("go")?;
        let mut numbers = load.numbers().context("the sets were not scaled")?;
        numbers.insert("cpu_s".to_owned(), cpu_s(all)? - all_before);
        numbers.insert("memory_mb".to_owned(), resident_mb(all)?);
        if !controller.is_empty() {
            let cpu = cpu_s(&controller)? - before;
            numbers.insert("controller_cpu_s".to_owned(), cpu);
            numbers.insert("controller_memory_mb".to_owned(), resident_mb(&controller)?);
        }
        load.finish();
        let named = |(name, number)| (format!("{name}{}", self.suffix), number);
        Ok(numbers.into_iter().map(named).collect())
    }
}
