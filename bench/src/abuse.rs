//! One user of a server while another abuses it.
//!
//! Four sorts of processes take part, so that none measures its own work: the server; the victim,
//! who reads and patches a ConfigMap at a fixed low rate; the abuser, who attacks for some
//! seconds; and, in place of the abuser, a neighbour that uses as much CPU and leaves the server
//! alone. The same commands drive windlass and kube-apiserver.

mod attack;
mod bodies;
mod frames;
mod hold;
mod neighbour;
mod plan;
mod prepare;
mod repeat;
mod reset;
mod victim;

use std::time::Duration;

use anyhow::{Context, bail};
use windlass_bench::contest::{self, Numbers};

/// The namespace in which the abuser has rights.
const ABUSER: &str = "abuser";
/// The namespace in which the victim has rights.
const VICTIM: &str = "victim";
/// The victim's ConfigMaps. There are several, so that its patches do not conflict with each other.
const VICTIM_CONFIGMAPS: &str = "/api/v1/namespaces/victim/configmaps";
const VICTIM_COUNT: u64 = 16;
/// Collections that the abuser may read and write.
const CONFIGMAPS: &str = "/api/v1/namespaces/abuser/configmaps";
const PODS: &str = "/api/v1/namespaces/abuser/pods";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/abuser/roles";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// ConfigMaps that the abuser's clients write to, each its own.
const OWN_CONFIGMAPS: usize = 16;
/// ConfigMaps that fill a list, and the bytes of each.
const COLLECTION: usize = 2_000;
const COLLECTION_BYTES: usize = 4_000;
/// Selects them, and not what else the abuser writes.
const COLLECTION_SELECTOR: &str = "labelSelector=collection%3Dyes";

/// The identity of the attacker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Abuser {
    /// Has rights in one namespace.
    User,
    /// Has no credentials.
    Stranger,
}

impl Abuser {
    fn parse(word: &str) -> anyhow::Result<Self> {
        match word {
            "user" => Ok(Self::User),
            "stranger" => Ok(Self::Stranger),
            _ => bail!("the abuser is `user` or `stranger`, not {word:?}"),
        }
    }
}

/// Runs one of the commands.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let seconds = |word: &str| word.parse().map(Duration::from_secs).context("seconds");
    match words {
        ["prepare", directory] => prepare::run(directory),
        ["victim"] => victim::run(),
        ["attack", name, abuser, time] => attack::run(name, Abuser::parse(abuser)?, seconds(time)?),
        ["neighbour", cores, time] => neighbour::run(cores.parse()?, seconds(time)?),
        _ => bail!("usage: windlass-bench abuse prepare|victim|attack|neighbour ..."),
    }
}

/// Says that everything is prepared, and waits for a line of input.
fn wait_for_start() -> anyhow::Result<()> {
    println!("{}", contest::to_json(&Numbers::new()));
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}
