//! The cluster on a socket, for programs beside the test such as kubectl.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use tokio::task::AbortHandle;
use windlass_core::Env;
use windlass_server::{Certificates, Server, kubeconfig, serve, write_private_file};

use super::{Cluster, Place};

/// A server on a socket, and the file that says how to reach it.
pub(super) struct Served {
    directory: TempDir,
    task: AbortHandle,
}

impl Cluster {
    /// A kubeconfig for programs beside the test, such as kubectl. The first call opens a port on
    /// this machine. `None` on an existing cluster, whose kubeconfig those programs find
    /// themselves.
    ///
    /// Such programs live in real time: the clock of the test must not be paused.
    ///
    /// # Panics
    /// When no port can be opened.
    pub async fn kubeconfig(&self) -> Option<PathBuf> {
        let Place::Embedded { server, served } = &self.0.place else {
            return None;
        };
        let served = served.get_or_init(|| Served::start(server)).await;
        Some(Served::file(served.directory.path()))
    }
}

impl Served {
    async fn start(server: &Server) -> Self {
        let hosts = [Ipv4Addr::LOCALHOST.to_string()];
        // Other programs check the certificates by the real time.
        let certificates = Certificates::in_memory(&hosts, &Env::real());
        let certificates = certificates.expect("certificates can be made");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listening = serve(server.clone(), address, &certificates, &hosts).await;
        let listening = listening.expect("a port can be opened");
        let url = format!("https://{}", listening.address());
        let directory = tempfile::tempdir().expect("a directory can be made");
        let text = kubeconfig(&url, &certificates, server.admin_token());
        write_private_file(&Self::file(directory.path()), text.as_bytes())
            .expect("the kubeconfig can be written");
        let task = tokio::spawn(listening.run(std::future::pending())).abort_handle();
        Self { directory, task }
    }

    fn file(directory: &Path) -> PathBuf {
        directory.join("kubeconfig")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}
