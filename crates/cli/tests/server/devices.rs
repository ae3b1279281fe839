//! What people see of devices: kubectl follows claims and explains pods on the embedded cluster.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use crate::kubectl::{Kubectl, LIMIT};
use crate::process::Process;

/// How long the next line of a watch may take.
const SILENCE_LIMIT: Duration = Duration::from_secs(90);

/// A claim that nobody uses.
const FIRST: &str = "
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: { name: unused }
spec: { devices: { requests: [{ name: gpu, exactly: { deviceClassName: gpu.example.com } }] } }
";

/// A pod with a device from a template.
const WORKLOAD: &str = "
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: { name: gpu }
spec: { spec: { devices: { requests: [
  { name: gpu, exactly: { deviceClassName: CLASS } }
] } } }
---
apiVersion: v1
kind: Pod
metadata: { name: web }
spec:
  containers: [{ name: web, image: 'web:1', resources: { claims: [{ name: gpu }] } }]
  resourceClaims: [{ name: gpu, resourceClaimTemplateName: gpu }]
";

/// `kubectl get resourceclaims -w` while it goes on.
struct Watch {
    lines: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl Watch {
    fn start(kubectl: &Kubectl<'_>) -> Self {
        let words = ["get", "resourceclaims", "-w", "--output-watch-events"];
        let mut command = kubectl.command(&words);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        Self {
            lines: BufReader::new(child.stdout.take().unwrap()).lines(),
            _child: child,
        }
    }

    /// Reads on until a claim is said to be in a state: the event, the name and the state.
    async fn until(&mut self, event: &str, name: &str, state: &str) {
        let mut seen = Vec::new();
        loop {
            let line = tokio::time::timeout(SILENCE_LIMIT, self.lines.next_line()).await;
            let line = line.unwrap_or_else(|_| panic!("{event} {name} {state} is not in {seen:?}"));
            let line = line.unwrap().unwrap();
            let words: Vec<&str> = line.split_whitespace().collect();
            let is_meant = words.len() >= 3
                && (event.is_empty() || words[0] == event)
                && words[1].starts_with(name)
                && (state.is_empty() || words[2] == state);
            if is_meant {
                return;
            }
            seen.push(line);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_follows_claims_and_explains_pods() {
    let data = tempfile::tempdir().unwrap();
    let server = Process::up(data.path(), &["--nodes", "1", "--devices", "1"]).await;
    let Some(kubectl) = Kubectl::of(&server, data.path()) else {
        return;
    };
    kubectl.apply(FIRST).await;
    let mut watch = Watch::start(&kubectl);
    watch.until("ADDED", "unused", "pending").await;

    kubectl.wait("create", "deviceclass/gpu.windlass.dev").await;
    let workload = WORKLOAD.replace("CLASS", "gpu.windlass.dev");
    kubectl.apply(&workload).await;
    watch.until("ADDED", "web-gpu-", "pending").await;
    watch
        .until("MODIFIED", "web-gpu-", "allocated,reserved")
        .await;
    kubectl
        .wait("jsonpath={.status.phase}=Running", "pod/web")
        .await;
    let table = kubectl.run(&["get", "resourceclaims"]).await;
    assert!(table.contains("STATE"), "{table}");
    kubectl.describes("pod/web", &["Normal", "Scheduled"]).await;

    // The only device is taken.
    let pod = workload.split("---").nth(1).unwrap();
    kubectl
        .apply(&pod.replace("name: web }", "name: late }"))
        .await;
    watch.until("ADDED", "late-gpu-", "pending").await;
    let reason = "cannot allocate all claims";
    kubectl
        .describes("pod/late", &["Warning", "FailedScheduling", reason])
        .await;

    // A template that is not there.
    let lost = pod.replace("name: web }", "name: lost }");
    let lost = lost.replace("TemplateName: gpu", "TemplateName: missing");
    kubectl.apply(&lost).await;
    let parts = [
        "Warning",
        "FailedResourceClaimCreation",
        "resource claim template \"missing\"",
    ];
    kubectl.describes("pod/lost", &parts).await;

    kubectl.run(&["delete", "pod", "web", LIMIT]).await;
    watch.until("DELETED", "web-gpu-", "").await;
    watch
        .until("MODIFIED", "late-gpu-", "allocated,reserved")
        .await;
    kubectl
        .wait("jsonpath={.status.phase}=Running", "pod/late")
        .await;
}
