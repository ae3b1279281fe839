//! The windlass binary.
//!
//! `windlass up` starts an API server with its controllers in one process, on a data directory,
//! and writes a kubeconfig for it.

mod access;
mod audit;
mod background;
mod commands;
mod controllers;
mod demo;
mod held;
mod merge;
#[cfg(test)]
mod reference;
mod serve;
mod shutdown;
mod stand_in;
mod test;
mod up;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use stand_in::StandIn;

/// Opening a large store takes a tenth less time than with the system's, and writes cost a tenth
/// less.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A Kubernetes control plane in one process.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Starts the API server and its controllers.
    Up(up::Arguments),
    /// Starts the API server alone.
    Server(serve::ServeArguments),
    /// Says whether a cluster runs in a data directory, and where.
    Status(background::Arguments),
    /// Ends the cluster of a data directory.
    Down(background::Arguments),
    /// Runs controllers on any cluster, beside or instead of its own.
    Controllers(controllers::Arguments),
    /// Shows objects.
    Get(commands::Get),
    /// Shows objects in full, with their events.
    Describe(commands::Describe),
    /// Makes objects as files say.
    Apply(commands::Apply),
    /// Deletes objects.
    Delete(commands::Delete),
    /// Sets how many replicas there shall be.
    Scale(commands::Scale),
    /// Shows what happened.
    Events(commands::Events),
    /// Shows what controllers did about an object, and what made them.
    Why(commands::Why),
    /// Shows the versions of this program and of the server.
    Version(commands::Version),
    /// Writes all objects and keys of a data directory into one file.
    Backup(commands::Backup),
    /// Makes a data directory of a backup.
    Restore(commands::Restore),
    /// Verifies the objects of a data directory, and saves what is sound if some are not.
    Check(commands::Check),
    /// Runs a command on a fresh cluster in memory, and returns its exit code.
    Test(test::Arguments),
    /// Writes stand-ins for kube-apiserver and etcd, for envtest and its like.
    Assets(stand_in::Arguments),
    /// Prints a script that completes commands in a shell.
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    if let Some(stand_in) = StandIn::called(std::env::args_os().next()) {
        return stand_in.run();
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    match run(arguments.command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("windlass: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Help and versions are no failures; everything else ends with 1, as kubectl does.
fn usage(error: &clap::Error) -> ExitCode {
    let is_failure = error.use_stderr();
    // A terminal that is gone cannot be told.
    let _ = error.print();
    match is_failure {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// Runs a command; its exit code is that of the command it runs, if it runs one.
fn run(command: Command) -> anyhow::Result<ExitCode> {
    if let Command::Test(arguments) = &command {
        log("error");
        return test::run(arguments);
    }
    run_own(command).map(|()| ExitCode::SUCCESS)
}

fn run_own(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Up(arguments) => {
            log(arguments.log_level());
            up::run(&arguments)
        }
        Command::Server(arguments) => {
            log("info");
            up::run_server(&arguments)
        }
        Command::Status(arguments) => arguments.status(),
        Command::Down(arguments) => arguments.down(),
        Command::Backup(arguments) => arguments.run(),
        Command::Restore(arguments) => arguments.run(),
        Command::Check(arguments) => arguments.run(),
        Command::Assets(arguments) => arguments.run(),
        // It starts its own logs, as its flags say.
        Command::Controllers(arguments) => controllers::run(&arguments),
        Command::Completion { shell } => {
            let mut command = Arguments::command();
            clap_complete::generate(shell, &mut command, "windlass", &mut std::io::stdout());
            Ok(())
        }
        command => {
            // What a client command has to say goes to the terminal as its error.
            log("error");
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(ask(command))
        }
    }
}

/// Runs a command that is a client of some cluster.
async fn ask(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Get(arguments) => arguments.run().await,
        Command::Describe(arguments) => arguments.run().await,
        Command::Apply(arguments) => arguments.run().await,
        Command::Delete(arguments) => arguments.run().await,
        Command::Scale(arguments) => arguments.run().await,
        Command::Events(arguments) => arguments.run().await,
        Command::Why(arguments) => arguments.run().await,
        Command::Version(arguments) => arguments.run().await,
        _ => Ok(()),
    }
}

fn log(level: &str) {
    // Warnings of h2 are about clients that break its rules: any of them could fill the log.
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(format!("{level},h2=error")));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
}
