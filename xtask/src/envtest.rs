//! A real Kubernetes control plane on loopback, built once from Go modules.

mod background;
mod build;

use std::{
    env,
    os::unix::process::ExitStatusExt,
    process::{Command, ExitCode, ExitStatus},
};

use anyhow::{Context, bail};
use windlass_envtest::{Assets, AssetsError, ControlPlane, KUBERNETES_VERSION, Options};

const USAGE: &str = "\
usage: cargo xtask envtest build
       cargo xtask envtest up [--controller-manager]
       cargo xtask envtest down
       cargo xtask envtest run [--controller-manager] -- CMD [ARG...]";

const CONTROLLER_MANAGER_FLAG: &str = "--controller-manager";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["build"] => build::run(),
        ["up", flags @ ..] => background::up(flags),
        // What `up` leaves in the background; not for people, so not in the usage.
        ["serve", flags @ ..] => background::serve(&options(flags)?),
        ["down"] => background::down(),
        ["run", rest @ ..] => {
            let mut parts = rest.splitn(2, |word| *word == "--");
            let flags = parts.next().unwrap_or_default();
            let Some([program, arguments @ ..]) = parts.next() else {
                bail!(USAGE)
            };
            with_server(&options(flags)?, program, arguments)
        }
        _ => bail!(USAGE),
    }
}

/// Runs a command against a control plane of its own and returns its exit code.
fn with_server(options: &Options, program: &str, arguments: &[&str]) -> anyhow::Result<ExitCode> {
    let assets = assets()?;
    let server = ControlPlane::start(options)?;
    eprintln!(
        "Kubernetes {KUBERNETES_VERSION} at {}, ready in {:.1} s",
        server.url(),
        server.started_in().as_secs_f64()
    );
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = std::iter::once(assets.directory().to_owned()).chain(env::split_paths(&path));
    let status = Command::new(program)
        .args(arguments)
        .env("KUBECONFIG", server.kubeconfig())
        .env("PATH", env::join_paths(directories)?)
        .status()
        .with_context(|| format!("cannot run {program:?}"))?;
    Ok(exit_code(status))
}

/// The binaries, built now if they are missing and there is a Go to build them with.
fn assets() -> anyhow::Result<Assets> {
    match Assets::find() {
        Err(AssetsError::NotBuilt { .. }) => {
            build::run()?;
            Ok(Assets::find()?)
        }
        found => Ok(found?),
    }
}

fn options(flags: &[&str]) -> anyhow::Result<Options> {
    match flags {
        [] => Ok(Options::default()),
        [CONTROLLER_MANAGER_FLAG] => Ok(Options::default().controllers(["*"])),
        _ => bail!(USAGE),
    }
}

/// The code a shell would report: that of the command, or 128 and the signal that ended it.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from)
}
