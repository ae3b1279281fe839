//! The windlass binary.
//!
//! `windlass up` starts an API server with its controllers in one process, on a data directory,
//! and writes a kubeconfig for it.

mod shutdown;
mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    Server(up::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env()
                .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info")),
        )
        .with_writer(std::io::stderr)
        .init();
    let outcome = match arguments.command {
        Command::Up(arguments) => up::run(&arguments, up::Controllers::Built),
        Command::Server(arguments) => up::run(&arguments, up::Controllers::None),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("windlass: {error:#}");
            ExitCode::FAILURE
        }
    }
}
