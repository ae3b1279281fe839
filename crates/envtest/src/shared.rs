//! One control plane for all tests of a process.

use std::sync::OnceLock;

use crate::{ControlPlane, Options, real_assets, report};

/// The control plane that the tests of this process share, started by the first that asks.
///
/// `None`, with one line on stderr for each test, when there are no binaries: the test then returns
/// early. A shared server cannot be stopped or restarted, and what one test creates all others see,
/// so each test works in a namespace of its own. Without kube-controller-manager nothing empties a
/// namespace, so tests do not wait for one to go away.
///
/// # Panics
///
/// When the binaries are there and do not start, and, with `WINDLASS_REQUIRE_ENVTEST=1`, when
/// there are none.
#[must_use]
pub fn real_server() -> Option<&'static ControlPlane> {
    static SERVER: OnceLock<ControlPlane> = OnceLock::new();
    real_assets()?;
    Some(SERVER.get_or_init(start))
}

fn start() -> ControlPlane {
    match ControlPlane::start(&Options::default()) {
        Ok(server) => server,
        Err(error) => panic!("the real server does not start: {}", report::chain(&error)),
    }
}
