//! Upstream's own controllers on the embedded server: a Foo of the sample-controller becomes a
//! Deployment, and kube-controller-manager makes of it a ReplicaSet and pods, and in the end takes
//! everything away again. Both are unmodified. They talk as they do by default, in protobuf where
//! they can, each controller under a service account with the rights that upstream gives it.
//!
//! Of windlass only the server, the scheduler and the nodes run. Neither program may log an error
//! that it would not log beside kube-apiserver as well.
//!
//! `WINDLASS_SOAK_MINUTES` makes Foos come and go for so long.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::{Child, Command};
use windlass_core::Env;
use windlass_envtest::{Assets, real_assets};

use crate::clients::{is_there, peers, succeed};
use crate::process::Process;

const MODULE: &str = "k8s.io/sample-controller";

/// Errors that say nothing about the server: each is logged beside kube-apiserver as well.
const EXPLAINED: [&str; 7] = [
    // kube-controller-manager is started without a manifest of its configuration.
    "The manifest file is empty, ignoring.",
    // There is no proxy in front of the server whose certificates could be published.
    "requestheader-client-ca-file",
    // A controller looks at its cache before its own last write has come back.
    "is not as new as written version",
    // A set or a Foo is deleted while its status is on its way, or while it is queued.
    r#"failed with replicasets.apps \""#,
    r#"err="foos.samplecontroller.k8s.io \"example-foo\" not found""#,
    "Foo referenced by item in work queue no longer exists",
    // Two controllers write the same object, and the second one tries again.
    "the object has been modified; please apply your changes to the latest version",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foo_becomes_pods_and_nobody_logs_an_error() {
    let Some(programs) = Programs::find().await else {
        return;
    };
    let data = tempfile::tempdir().unwrap();
    let controllers = ["--controllers", "scheduler,pretend-nodes"];
    let server = Process::up(data.path(), &controllers).await;
    let place = Place {
        programs: &programs,
        kubeconfig: &server.kubeconfig,
        logs: data.path(),
    };
    place
        .kubectl(&[
            "apply",
            "-f",
            &programs.example("crd-status-subresource.yaml"),
        ])
        .await;
    let crd = "crd/foos.samplecontroller.k8s.io";
    place.wait("condition=Established", crd).await;
    let manager = place.start_manager();
    let sample = place.start_sample();

    let minutes = std::env::var("WINDLASS_SOAK_MINUTES");
    let minutes = minutes.map_or(0, |minutes| minutes.parse::<u64>().unwrap());
    let env = Env::real();
    let end = env.elapsed() + Duration::from_secs(60 * minutes);
    let mut rounds = 0;
    while rounds == 0 || env.elapsed() < end {
        come_and_go(&place).await;
        rounds += 1;
    }
    // Killed, so that their end is not in their logs.
    drop((manager, sample));
    println!("{rounds} Foos came and went");
    place.expect_no_errors("kube-controller-manager");
    place.expect_no_errors("sample-controller");
}

/// One Foo from its creation until nothing is left of it.
async fn come_and_go(place: &Place<'_>) {
    const DEPLOYMENT: &str = "deployment/example-foo";
    place
        .kubectl(&["apply", "-f", &place.programs.example("example-foo.yaml")])
        .await;
    place.wait("create", DEPLOYMENT).await;
    place
        .wait("jsonpath={.status.availableReplicas}=1", DEPLOYMENT)
        .await;
    let patch = r#"{"spec":{"replicas":3}}"#;
    place
        .kubectl(&["patch", "foo", "example-foo", "--type=merge", "-p", patch])
        .await;
    place
        .wait("jsonpath={.status.availableReplicas}=3", DEPLOYMENT)
        .await;
    place
        .wait("jsonpath={.status.availableReplicas}=3", "foo/example-foo")
        .await;
    place
        .wait("jsonpath={.status.readyReplicas}=3", "replicaset")
        .await;
    place.wait("condition=Ready", "pod").await;
    let pods = place.kubectl(&["get", "pods", "-o", "name"]).await;
    assert_eq!(pods.lines().count(), 3, "{pods}");
    // In the background: a Foo that waits for its Deployment to go gets a new one.
    place
        .kubectl(&["delete", "foo", "example-foo", LIMIT])
        .await;
    for kind in ["deployment", "replicaset", "pod"] {
        place.wait("delete", kind).await;
    }
    let left = place
        .kubectl(&["get", "deployments,replicasets,pods", "-o", "name"])
        .await;
    assert_eq!(left, "");
}

/// How long kubectl waits for one thing. Only a failure takes so long.
const LIMIT: &str = "--timeout=180s";

/// What the test runs.
struct Programs {
    assets: Assets,
    sample: PathBuf,
    /// Where the source of the sample-controller is.
    source: PathBuf,
}

impl Programs {
    async fn find() -> Option<Self> {
        let assets = real_assets()?;
        if !is_there("go").await {
            return None;
        }
        let sample = crate::clients::built("sample-controller");
        let go = || {
            let mut go = Command::new("go");
            go.current_dir(peers().join("go"));
            go
        };
        succeed(go().args(["build", "-o"]).arg(&sample).arg(MODULE)).await;
        let source = go()
            .args(["list", "-m", "-f", "{{.Dir}}", MODULE])
            .output()
            .await;
        let source = String::from_utf8(source.unwrap().stdout).unwrap();
        Some(Self {
            assets,
            sample,
            source: source.trim().into(),
        })
    }

    /// A manifest that comes with the sample-controller.
    fn example(&self, name: &str) -> String {
        let path = self.source.join("artifacts/examples").join(name);
        path.display().to_string()
    }
}

/// A cluster, and where those who work on it leave their logs.
struct Place<'a> {
    programs: &'a Programs,
    kubeconfig: &'a Path,
    logs: &'a Path,
}

impl Place<'_> {
    fn start_manager(&self) -> Child {
        let kubeconfig = self.kubeconfig.display();
        let binary = self.programs.assets.controller_manager().unwrap();
        let mut command = Command::new(binary);
        command.args([
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            "--use-service-account-credentials=true".to_owned(),
            // Nobody asks it anything.
            "--secure-port=0".to_owned(),
        ]);
        self.start("kube-controller-manager", &mut command)
    }

    fn start_sample(&self) -> Child {
        let mut command = Command::new(&self.programs.sample);
        command.arg("-kubeconfig").arg(self.kubeconfig);
        self.start("sample-controller", &mut command)
    }

    /// Starts a program that is killed when the answer is dropped.
    fn start(&self, name: &str, command: &mut Command) -> Child {
        let log = File::create(self.log(name)).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        command.kill_on_drop(true).spawn().unwrap()
    }

    fn log(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{name}.log"))
    }

    /// What kubectl prints; it must succeed.
    async fn kubectl(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(self.programs.assets.kubectl());
        let output = command
            .args(arguments)
            .env("KUBECONFIG", self.kubeconfig)
            .env("HOME", self.logs)
            .output()
            .await
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let logs = || {
            let tail = |name| {
                let log = std::fs::read_to_string(self.log(name)).unwrap_or_default();
                let lines: Vec<&str> = log.lines().rev().take(20).collect();
                lines.join("\n")
            };
            [tail("kube-controller-manager"), tail("sample-controller")].join("\n\n")
        };
        assert!(
            output.status.success(),
            "kubectl {arguments:?}: {errors}\n{}",
            logs()
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits for something that happens to an object, or to all objects of a kind.
    async fn wait(&self, what: &str, target: &str) {
        let what = format!("--for={what}");
        let mut arguments = vec!["wait", &what, target, LIMIT];
        if !target.contains('/') {
            arguments.push("--all");
        }
        self.kubectl(&arguments).await;
    }

    fn expect_no_errors(&self, name: &str) {
        let log = std::fs::read_to_string(self.log(name)).unwrap();
        let is_explained = |line: &&str| EXPLAINED.iter().any(|part| line.contains(part));
        let (explained, errors): (Vec<&str>, Vec<&str>) = log
            .lines()
            .filter(|line| is_error(line))
            .partition(is_explained);
        println!("{name}: {} explained errors", explained.len());
        assert!(errors.is_empty(), "{name} logged:\n{}", errors.join("\n"));
    }
}

/// Whether a line of a log is an error: it opens with the level and the day, as in `E1115`.
fn is_error(line: &str) -> bool {
    let day = line.strip_prefix('E').and_then(|rest| rest.get(..4));
    day.is_some_and(|day| day.bytes().all(|byte| byte.is_ascii_digit()))
}
