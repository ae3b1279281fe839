//! The real kubectl on a server.

use std::path::Path;
use std::process::Stdio;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use windlass_envtest::{Assets, real_assets};

use crate::process::Process;

/// How long kubectl waits for one thing. Only a failure takes so long.
pub(crate) const LIMIT: &str = "--timeout=180s";

/// How often a page is asked for until it says what it should.
const LOOKS: usize = 600;

pub(crate) struct Kubectl<'a> {
    assets: Assets,
    kubeconfig: &'a Path,
    home: &'a Path,
}

impl<'a> Kubectl<'a> {
    /// kubectl as the administrator of a server; `None` where it is not installed.
    pub(crate) fn of(server: &'a Process, home: &'a Path) -> Option<Self> {
        Some(Self {
            assets: real_assets()?,
            kubeconfig: &server.kubeconfig,
            home,
        })
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.assets.kubectl());
        command
            .args(arguments)
            .env("KUBECONFIG", self.kubeconfig)
            .env("HOME", self.home)
            .kill_on_drop(true);
        command
    }

    /// What kubectl prints; it must succeed.
    pub(crate) async fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().await.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) async fn apply(&self, manifest: &str) {
        let mut command = self.command(&["apply", "-f", "-"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(manifest.as_bytes()).await.unwrap();
        drop(input);
        assert!(child.wait().await.unwrap().success());
    }

    /// What kubectl says when it fails, which it must.
    pub(crate) async fn fail(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().await.unwrap();
        assert!(!output.status.success(), "{arguments:?} succeeds");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Waits for something that happens to an object.
    pub(crate) async fn wait(&self, what: &str, target: &str) {
        let what = format!("--for={what}");
        self.run(&["wait", &what, target, LIMIT]).await;
    }

    /// Describes an object until the page has all these parts.
    pub(crate) async fn describes(&self, target: &str, parts: &[&str]) {
        let mut page = String::new();
        for _ in 0..LOOKS {
            page = self.run(&["describe", target]).await;
            if parts.iter().all(|part| page.contains(part)) {
                return;
            }
        }
        panic!("{parts:?} are not all in\n{page}");
    }
}
