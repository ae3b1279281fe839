//! A control plane that stays up between commands.
//!
//! A background process owns it and holds a lock for as long as it lives; the state file says
//! where its kubeconfig is and on which socket it waits. Whoever connects to that socket stops it,
//! and sees the connection end when everything is gone. No process id is stored anywhere, so none
//! can be stale.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::{
        net::{UnixListener, UnixStream},
        process::CommandExt,
    },
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context, bail, ensure};
use windlass_envtest::{ControlPlane, Options, cache_directory};

const LOCK_FILE: &str = "up.lock";
const LOG_FILE: &str = "up.log";
const STATE_FILE: &str = "up.state";

/// What the background process writes when it is ready.
const READY: &str = "ready\n";

/// Where a running control plane can be found: the two lines of the state file.
struct State {
    kubeconfig: String,
    socket: String,
}

/// Starts the background process unless it runs, waits until it is ready, and says how to use it.
pub(super) fn up(flags: &[&str]) -> anyhow::Result<ExitCode> {
    super::options(flags)?;
    super::assets()?;
    if lock()?.is_some() {
        spawn(flags)?;
    }
    let state = running()?.context("another `up` is under way")?;
    println!("export KUBECONFIG={}", state.kubeconfig);
    eprintln!("stop it with `cargo xtask envtest down`");
    Ok(ExitCode::SUCCESS)
}

/// Stops the background process and returns when everything of it is gone.
pub(super) fn down() -> anyhow::Result<ExitCode> {
    let Some(state) = running()? else {
        eprintln!("no control plane is up");
        return Ok(ExitCode::SUCCESS);
    };
    let mut connection = UnixStream::connect(&state.socket)
        .with_context(|| format!("cannot reach {}", state.socket))?;
    connection.read_to_end(&mut Vec::new())?;
    Ok(ExitCode::SUCCESS)
}

/// What the background process does: holds a control plane until somebody connects.
pub(super) fn serve(options: &Options) -> anyhow::Result<ExitCode> {
    let _lock = lock()?.context("another control plane is up")?;
    let server = ControlPlane::start(options)?;
    let socket = server.directory().join("stop.sock");
    let listener = UnixListener::bind(&socket)?;
    let state = file(STATE_FILE)?;
    fs::write(
        &state,
        format!("{}\n{}\n", server.kubeconfig().display(), socket.display()),
    )?;
    let mut stdout = std::io::stdout();
    stdout.write_all(READY.as_bytes())?;
    stdout.flush()?;
    let (connection, _) = listener.accept()?;
    fs::remove_file(&state)?;
    drop(server);
    drop(connection);
    Ok(ExitCode::SUCCESS)
}

fn spawn(flags: &[&str]) -> anyhow::Result<()> {
    let log = file(LOG_FILE)?;
    let mut child = Command::new(env::current_exe()?)
        .args(["envtest", "serve"])
        .args(flags)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // An inherited stream would keep whoever reads ours waiting for as long as the server runs.
        .stderr(fs::File::create(&log)?)
        .process_group(0)
        .spawn()?;
    let stdout = child.stdout.take().context("a piped stream is missing")?;
    let mut line = String::new();
    BufReader::new(stdout.take(64)).read_line(&mut line)?;
    ensure!(line == READY, "{}", fs::read_to_string(&log)?.trim_end());
    Ok(())
}

/// The running control plane, if there is one and it is ready.
fn running() -> anyhow::Result<Option<State>> {
    if lock()?.is_some() {
        return Ok(None);
    }
    match fs::read_to_string(file(STATE_FILE)?) {
        Ok(text) => parse(&text).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn parse(text: &str) -> anyhow::Result<State> {
    let [kubeconfig, socket] = text.lines().collect::<Vec<_>>()[..] else {
        bail!("{STATE_FILE} has not two lines");
    };
    Ok(State {
        kubeconfig: kubeconfig.to_owned(),
        socket: socket.to_owned(),
    })
}

/// The lock, or `None` if a background process holds it. It is let go when the file is dropped,
/// also by a process that is killed.
fn lock() -> anyhow::Result<Option<fs::File>> {
    let lock = fs::File::create(file(LOCK_FILE)?)?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error.into()),
    }
}

fn file(name: &str) -> anyhow::Result<PathBuf> {
    let directory = cache_directory()?;
    fs::create_dir_all(&directory)?;
    Ok(directory.join(name))
}
