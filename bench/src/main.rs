//! Measures windlass. Each command prints its figures as one line of JSON, except `corpus`, which
//! prints the pods that the others are measured with.
//!
//! `cargo xtask bench` runs these commands together with those of the peers.

mod abuse;
mod claims;
mod corpus_text;
mod doc;
mod informer;
mod list;
mod queue;
mod replicaset;
mod server;
mod soak;

use std::process::ExitCode;

use anyhow::{Context, bail};
use windlass_bench::{contest, corpus::Corpus};

const USAGE: &str = "\
usage: windlass-bench doc parser|single|own-tokens PODS   hold pods as `Doc`s
       windlass-bench list serve PODS             serve pods as one list, for others to read
       windlass-bench list read URL               read such a list
       windlass-bench claims                      give devices to pods
       windlass-bench queue                       add keys to a work queue and hand them out
       windlass-bench informer                            hold the pods of $KUBECONFIG's server
       windlass-bench server start PROGRAM ...            start a server and wait until it is ready
       windlass-bench server create PODS CLIENTS          create pods on $KUBECONFIG's server
       windlass-bench server list PODS                    list them
       windlass-bench server fanout WATCHERS              write to one that so many watch
       windlass-bench abuse prepare DIRECTORY             accounts and objects for the next three
       windlass-bench abuse victim                        read and patch at a fixed rate
       windlass-bench abuse attack NAME user|stranger SECONDS
       windlass-bench abuse neighbour CORES SECONDS       use CPU, and leave the server alone
       windlass-bench replicaset SETS PODS                scale sets of $KUBECONFIG's server up
       windlass-bench soak WORKERS PODS                   churn namespaces until the input ends
       windlass-bench corpus list|load|keys PODS  print pods: a PodList, input for a loader, keys";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> anyhow::Result<()> {
    let number = |pods: &str| pods.parse::<usize>().context("a number");
    let corpus = |pods| number(pods).map(Corpus::new);
    let with_own_tokens = |pods| number(pods).map(Corpus::with_own_tokens);
    let numbers = match words {
        ["doc", "parser", pods] => doc::with_parser(&corpus(pods)?)?,
        ["doc", "single", pods] => doc::one_by_one(&corpus(pods)?)?,
        ["doc", "own-tokens", pods] => doc::with_parser(&with_own_tokens(pods)?)?,
        ["list", "serve", pods] => return list::serve(&corpus(pods)?),
        ["list", "read", url] => list::read(url)?,
        ["informer"] => return informer::run(),
        ["server", "start", program, rest @ ..] => return server::start(program, rest),
        ["server", "create", pods, clients] => server::create(number(pods)?, number(clients)?)?,
        ["server", "list", pods] => server::list(number(pods)?)?,
        ["server", "fanout", watchers] => server::fanout(number(watchers)?)?,
        ["abuse", rest @ ..] => return abuse::run(rest),
        ["replicaset", sets, pods] => return replicaset::run(number(sets)?, number(pods)?),
        ["soak", workers, pods] => return soak::run(number(workers)?, number(pods)?),
        ["queue"] => queue::run()?,
        ["claims"] => claims::run()?,
        ["corpus", form, pods] => return corpus_text::print(&corpus(pods)?, form),
        _ => bail!(USAGE),
    };
    println!("{}", contest::to_json(&numbers));
    Ok(())
}
