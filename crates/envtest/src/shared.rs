//! One control plane for all tests of a process.

use std::{env, sync::OnceLock};

use crate::{Assets, ControlPlane, Options, report};

/// Set to `1` where a missing control plane is a failure and not a reason to skip.
const REQUIRE_VARIABLE: &str = "WINDLASS_REQUIRE_ENVTEST";

/// The control plane that the tests of this process share, started by the first that asks.
///
/// `None`, with one printed line, when there are no binaries: the test then returns early. A
/// shared server cannot be stopped or restarted, and what one test creates all others see, so each
/// test works in a namespace of its own. Without kube-controller-manager nothing empties a
/// namespace, so tests do not wait for one to go away.
///
/// # Panics
///
/// When the binaries are there and do not start, and, with `WINDLASS_REQUIRE_ENVTEST=1`, when
/// there are none.
#[must_use]
pub fn real_server() -> Option<&'static ControlPlane> {
    static SERVER: OnceLock<Option<ControlPlane>> = OnceLock::new();
    SERVER.get_or_init(start).as_ref()
}

fn start() -> Option<ControlPlane> {
    match Assets::find() {
        Ok(_) => match ControlPlane::start(&Options::default()) {
            Ok(server) => Some(server),
            Err(error) => panic!("the real server does not start: {}", report::chain(&error)),
        },
        Err(error) if is_required() => panic!("{REQUIRE_VARIABLE}=1, but {error}"),
        Err(error) => {
            eprintln!("skipped, {error}");
            None
        }
    }
}

fn is_required() -> bool {
    env::var_os(REQUIRE_VARIABLE).is_some_and(|value| value == "1")
}
