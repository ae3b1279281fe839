use std::{
    env,
    io::{BufRead, BufReader, Write},
    time::Duration,
};

use super::*;
use crate::{directory::Directory, wait::Deadline};

const OWNER_VARIABLE: &str = "WINDLASS_ENVTEST_OWNER";
const OWNER_TEST: &str = "supervisor::tests::owner_holds_a_server_until_it_is_killed";

fn spawn(arguments: &[&str], directory: &Directory) -> Supervised {
    let flags: Vec<String> = arguments[1..].iter().map(|&flag| flag.to_owned()).collect();
    Supervised::spawn(Path::new(arguments[0]), &flags, directory.path()).unwrap()
}

fn is_running(pid: u32) -> bool {
    let script = format!("kill -0 {pid} 2>/dev/null");
    Command::new("sh")
        .args(["-c", &script])
        .status()
        .unwrap()
        .success()
}

fn wait_until(mut condition: impl FnMut() -> bool) {
    let deadline = Deadline::after(Duration::from_secs(30));
    while !condition() {
        assert!(deadline.rest(), "the condition did not come true");
    }
}

#[test]
fn dropped_server_is_gone() {
    let directory = Directory::new().unwrap();
    let mut server = spawn(&["/bin/sleep", "1000"], &directory);
    let pid = server.pid();
    assert!(is_running(pid) && !server.has_exited().unwrap());
    drop(server);
    assert!(!is_running(pid));
}

#[test]
fn server_that_ends_leaves_the_end_of_its_log() {
    let directory = Directory::new().unwrap();
    let script = "i=0; while [ $i -lt 100 ]; do echo line $i; i=$((i+1)); done; echo late >&2";
    let mut server = spawn(&["/bin/sh", "-c", script], &directory);
    wait_until(|| server.has_exited().unwrap());
    let tail = server.log_tail();
    assert!(
        tail.starts_with("line 89\n") && tail.ends_with("line 99\nlate"),
        "{tail}"
    );
}

#[test]
fn program_that_cannot_run_counts_as_ended() {
    let directory = Directory::new().unwrap();
    let mut server = spawn(&["/absent/program"], &directory);
    wait_until(|| server.has_exited().unwrap());
    assert!(
        server.log_tail().contains("not found"),
        "{}",
        server.log_tail()
    );
}

/// The test below runs this one in a process of its own; run directly, it has nothing to do.
#[test]
fn owner_holds_a_server_until_it_is_killed() {
    if env::var_os(OWNER_VARIABLE).is_none() {
        return;
    }
    let directory = Directory::new().unwrap();
    let server = spawn(&["/bin/sleep", "1000"], &directory);
    let mut stdout = io::stdout();
    writeln!(
        stdout,
        "\nowned {} {}",
        server.pid(),
        directory.path().display()
    )
    .unwrap();
    stdout.flush().unwrap();
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn killed_owner_takes_its_server_and_directory_along() {
    let mut owner = Command::new(env::current_exe().unwrap())
        .args([OWNER_TEST, "--exact", "--nocapture"])
        .env(OWNER_VARIABLE, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let line = lines
        .into_iter()
        .find_map(|line| line.strip_prefix("owned ").map(str::to_owned));
    let line = line.unwrap();
    let (pid, directory) = line.split_once(' ').unwrap();
    let (pid, directory) = (pid.parse().unwrap(), Path::new(directory));
    assert!(is_running(pid) && directory.exists());
    owner.kill().unwrap();
    owner.wait().unwrap();
    wait_until(|| !is_running(pid) && !directory.exists());
}
