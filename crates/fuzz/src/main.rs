//! Runs one fuzz target for some time: `windlass-fuzz TARGET [--seconds N] [--seed S]`, or on the
//! input in a file: `windlass-fuzz TARGET --input FILE`.

use std::process::ExitCode;

use windlass_core::Env;
use windlass_fuzz::{TARGETS, find, run, work};

const USAGE: &str = "usage: windlass-fuzz TARGET [--seconds N] [--seed S] | TARGET --input FILE";
/// CPU seconds without `--seconds`.
const SECONDS: u64 = 60;

struct Options {
    target: String,
    seconds: u64,
    seed: u64,
    input: Option<String>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options = match read(&arguments) {
        Ok(options) => options,
        Err(why) => {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            eprintln!("{why}\n{USAGE}\ntargets: {}", names.join(" "));
            return ExitCode::from(2);
        }
    };
    let Some(target) = find(&options.target) else {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!(
            "there is no target {:?}; there are: {}",
            options.target,
            names.join(" ")
        );
        return ExitCode::from(2);
    };
    if let Some(path) = &options.input {
        return match std::fs::read(path) {
            Ok(input) => {
                println!("{:?}", (target.run)(&input));
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("{path}: {error}");
                ExitCode::from(2)
            }
        };
    }
    let seed = options.seed;
    let start = work::cpu();
    let used = || work::cpu().saturating_sub(start);
    match run(target, seed, |_| used().as_secs() < options.seconds) {
        Ok(report) => {
            println!(
                "{}: {} inputs, {} accepted, {:.1} CPU seconds, seed {seed}, work {:.1} % of its limit",
                target.name,
                report.inputs,
                report.accepted,
                used().as_secs_f64(),
                work::peak_permille() as f64 / 10.0
            );
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn read(arguments: &[String]) -> Result<Options, String> {
    let (target, mut rest) = arguments
        .split_first()
        .ok_or("the name of a target is missing")?;
    let mut options = Options {
        target: target.clone(),
        seconds: SECONDS,
        seed: Env::real().random_u64(),
        input: None,
    };
    while let Some((flag, after)) = rest.split_first() {
        let (value, after) = after.split_first().ok_or(format!("{flag} needs a value"))?;
        let number = || {
            let read = value.parse();
            read.map_err(|_| format!("{flag} {value:?} is not a whole number"))
        };
        match flag.as_str() {
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = number()?,
            "--input" => options.input = Some(value.clone()),
            _ => return Err(format!("there is no option {flag}")),
        }
        rest = after;
    }
    Ok(options)
}
