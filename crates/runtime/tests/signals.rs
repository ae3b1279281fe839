//! The first signal asks to stop, the second ends the process.

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use windlass_runtime::Shutdown;

/// Set in the child that this test makes of itself.
const CHILD: &str = "WINDLASS_TEST_SIGNAL_CHILD";

#[test]
fn the_first_signal_asks_and_the_second_ends_the_process_with_code_1() {
    if std::env::var_os(CHILD).is_some() {
        return child();
    }
    let name = "the_first_signal_asks_and_the_second_ends_the_process_with_code_1";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert!(lines.any(|line| line.contains("listening")));
    signal(child.id(), "-TERM");
    assert!(lines.any(|line| line.contains("asked to stop")));
    assert_eq!(child.try_wait().unwrap(), None);
    signal(child.id(), "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

fn signal(process: u32, signal: &str) {
    let status = Command::new("kill")
        .args([signal, &process.to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// A process that hears the first signal and does not stop.
fn child() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let shutdown = Shutdown::on_signals().unwrap();
        println!("listening");
        shutdown.requested().await;
        println!("asked to stop");
        std::future::pending::<()>().await;
    });
}
