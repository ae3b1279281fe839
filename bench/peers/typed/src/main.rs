//! Two common ways to hold a pod in a Rust program, measured as windlass's `Doc` is: the structs
//! of k8s-openapi and the tree of serde_json, each with and without its managed fields.

use std::process::ExitCode;

use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;
use windlass_bench::{
    contest::{self, Numbers},
    corpus::Corpus,
};

const USAGE: &str = "usage: windlass-bench-typed typed|typed-whole|value|value-whole PODS";

fn main() -> ExitCode {
    match run() {
        Ok(numbers) => {
            println!("{}", contest::to_json(&numbers));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error:#}\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<Numbers> {
    let mut arguments = std::env::args().skip(1);
    let contestant = arguments.next().context("no contestant")?;
    let pods = arguments.next().context("no number of pods")?.parse()?;
    let corpus = Corpus::new(pods);
    match contestant.as_str() {
        "typed" => measure(&corpus, typed),
        "typed-whole" => measure(&corpus, |text| Ok(serde_json::from_slice::<Pod>(text)?)),
        "value" => measure(&corpus, value),
        "value-whole" => measure(&corpus, |text| Ok(serde_json::from_slice::<Value>(text)?)),
        other => anyhow::bail!("unknown contestant {other:?}"),
    }
}

fn measure<T: Clone + PartialEq>(
    corpus: &Corpus,
    decode: impl Fn(&[u8]) -> anyhow::Result<T>,
) -> anyhow::Result<Numbers> {
    let held = contest::hold(corpus, &decode)?;
    let mut numbers = held.numbers;
    drop(held.objects);
    numbers.extend(contest::compare_and_clone(&decode)?);
    Ok(numbers)
}

fn typed(text: &[u8]) -> anyhow::Result<Pod> {
    let mut pod: Pod = serde_json::from_slice(text)?;
    pod.metadata.managed_fields = None;
    Ok(pod)
}

fn value(text: &[u8]) -> anyhow::Result<Value> {
    let mut value: Value = serde_json::from_slice(text)?;
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    Ok(value)
}
