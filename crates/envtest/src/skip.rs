//! Tests that are skipped say so.

use std::collections::BTreeSet;
use std::env;
use std::fmt::Display;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::Assets;

/// Set to `1` where a missing control plane is a failure and not a reason to skip.
const REQUIRE_VARIABLE: &str = "WINDLASS_REQUIRE_ENVTEST";

/// Says on stderr that the running test is skipped, and why, in one line that starts with
/// `skipped: `. A test that calls this twice is named once.
///
/// The line is written past the capture of the test harness, which drops the output of a test that
/// passes: a skipped test is one of those. `.ci/run` counts the lines.
pub fn skip(reason: &dyn Display) {
    static SKIPPED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    // The harness names the thread of a test after it.
    let name = thread::current().name().unwrap_or("main").to_owned();
    let mut skipped = SKIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    if skipped.insert(name.clone()) {
        // A closed stderr must not fail a test.
        let _ = writeln!(std::io::stderr().lock(), "skipped: {name}: {reason}");
    }
}

/// The binaries of the real control plane, or `None` after [`skip`] where there are none.
///
/// # Panics
///
/// With `WINDLASS_REQUIRE_ENVTEST=1`, when there are none.
#[must_use]
pub fn real_assets() -> Option<Assets> {
    match Assets::find() {
        Ok(assets) => Some(assets),
        Err(error) => {
            let is_required = env::var_os(REQUIRE_VARIABLE).is_some_and(|value| value == "1");
            assert!(!is_required, "{REQUIRE_VARIABLE}=1, but {error}");
            skip(&error);
            None
        }
    }
}
