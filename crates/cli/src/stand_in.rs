//! Stand-ins for `kube-apiserver` and `etcd`: this program under another name.
//!
//! Test benches such as envtest start those two programs from a directory of assets. `windlass
//! assets` makes such a directory, in which both are links to this program. It recognizes the name
//! that it was called by, takes the flags of that program and behaves as its callers expect.

mod api_server;
mod assets;
mod etcd;
mod etcd_http;
mod flags;
mod klog;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

pub(crate) use assets::{Arguments, write as write_assets};

/// A program that this one can stand in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StandIn {
    /// The API server.
    KubeApiserver,
    /// The store behind it.
    Etcd,
}

impl StandIn {
    /// All of them.
    const ALL: [Self; 2] = [Self::KubeApiserver, Self::Etcd];

    /// The program that a process was called as, by its first argument.
    pub(crate) fn called(first: Option<OsString>) -> Option<Self> {
        let first = first?;
        let name = Path::new(&first).file_stem()?.to_str()?.to_owned();
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// The name of the program.
    fn name(self) -> &'static str {
        match self {
            Self::KubeApiserver => "kube-apiserver",
            Self::Etcd => "etcd",
        }
    }

    /// Runs as that program.
    pub(crate) fn run(self) -> ExitCode {
        let words: Vec<String> = std::env::args_os()
            .skip(1)
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        match self {
            Self::KubeApiserver => api_server::run(&words),
            Self::Etcd => etcd::run(&words),
        }
    }
}
