//! Processes that compete for one Lease, and end in a hard or a soft way.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tokio::time::{Instant, sleep};
use windlass_client::RestClient;
use windlass_envtest::{ControlPlane, real_server};
use windlass_runtime::LeaseRecord;

use crate::setup::{Place, place};

/// Cargo builds the examples of a package before it runs all of its tests, but not for some.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let path = profile.join("examples").join(name);
    if !path.exists() {
        let mut build = Command::new(env!("CARGO"));
        build.args([
            "build",
            "--quiet",
            "--package",
            env!("CARGO_PKG_NAME"),
            "--example",
            name,
        ]);
        assert!(build.status().unwrap().success());
    }
    path
}

/// A candidate that is killed when this is dropped.
struct Candidate(Child);

impl Candidate {
    fn start(server: &ControlPlane, namespace: &str) -> Self {
        let child = Command::new(example("candidate"))
            .env("KUBECONFIG", server.kubeconfig())
            .args([
                "--metrics-bind-address=0",
                "--leader-elect-resource-namespace",
                namespace,
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    fn terminate(&mut self) {
        let id = self.0.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .unwrap()
                .success()
        );
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn record(client: &RestClient, namespace: &str) -> LeaseRecord {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/candidate");
    match client.get(path).into_doc().await {
        Ok(lease) => LeaseRecord::from_lease(&lease),
        Err(_) => LeaseRecord::default(),
    }
}

/// Waits for a holder other than this one: who it is, and how long it took.
async fn next_holder(client: &RestClient, namespace: &str, before: &str) -> (String, Duration) {
    let start = Instant::now();
    loop {
        let holder = record(client, namespace).await.holder;
        if !holder.is_empty() && holder != before {
            return (holder, start.elapsed());
        }
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "nobody took over"
        );
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn another_process_takes_over_after_a_kill_and_after_a_clean_stop() {
    let Some(server) = real_server() else { return };
    let Place {
        client, namespace, ..
    } = place(server, "take-over").await;
    let mut first = Candidate::start(server, &namespace);
    let (holder, _) = next_holder(&client, &namespace, "").await;
    let mut second = Candidate::start(server, &namespace);
    sleep(Duration::from_secs(5)).await;
    first.0.kill().unwrap();
    let (holder, took) = next_holder(&client, &namespace, &holder).await;
    println!("took over {took:?} after a kill");
    assert!(took < Duration::from_secs(24), "{took:?}");

    let _third = Candidate::start(server, &namespace);
    sleep(Duration::from_secs(3)).await;
    second.terminate();
    let (_, took) = next_holder(&client, &namespace, &holder).await;
    println!("took over {took:?} after a clean stop");
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(record(&client, &namespace).await.transitions, 2);
}
