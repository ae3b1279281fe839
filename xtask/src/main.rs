//! The project's own tasks, written in the project's own language.
//!
//! `cargo xtask tidy` checks the shape of the tree, `cargo xtask external-types` its public API,
//! `cargo xtask bench` measures it against its peers, `cargo xtask soak` looks for what grows,
//! `cargo xtask judge` runs the suites of others on it,
//! `cargo xtask envtest` gives a real control plane to test against, `cargo xtask atlas` makes the
//! facts about the built-in types of Kubernetes, `cargo xtask docs` the reference of the book.

mod atlas;
mod bench;
mod docs;
mod envtest;
mod external_types;
mod judge;
mod soak;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask TASK

  tidy [--graph]                    check the crate graph, imports, file names, figures, forbidden calls
  external-types                    check whose types the public API names
  atlas [--check]                   make the facts about the built-in types of Kubernetes
  docs                              write the pages of the book that come from the code
  bench NAME [--peers]              measure, and print a table and one line of JSON
  soak [--minutes N] [--debug]      churn namespaces and fail if the server grows
  judge controller-runtime          run the suites of controller-runtime on the stand-ins
  envtest build|up|down|run -- CMD  a real Kubernetes control plane on loopback
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((task, rest)) = arguments.split_first() else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    let outcome = match task.as_str() {
        "tidy" => tidy::run(rest),
        "atlas" => atlas::run(rest),
        "bench" => bench::run(rest),
        "docs" => docs::run(rest),
        "envtest" => envtest::run(rest),
        "external-types" => external_types::run(rest),
        "judge" => judge::run(rest),
        "soak" => soak::run(rest),
        _ => {
            eprint!("unknown task {task:?}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask {task}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
