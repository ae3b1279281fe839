//! The arguments of the benchmark, and the names of the attacks.

use anyhow::{Context, bail, ensure};

const USAGE: &str = "\
usage: cargo xtask bench abuse [--peers] [--seconds N] [--attack NAME] [--user | --stranger]

  --peers        also attack kube-apiserver with etcd
  --seconds N    of each attack (10)
  --attack NAME  only this attack
  --user         only the abuser who has rights in one namespace
  --stranger     only the abuser without credentials";

/// The attacks and their attackers. A stranger runs those that need no rights.
const ATTACKS: [(&str, &[Abuser]); 14] = [
    ("merge-keys", &[Abuser::User]),
    ("json-inserts", &[Abuser::User]),
    ("role-product", &[Abuser::User]),
    ("list-maps", &[Abuser::User]),
    ("odd-bodies", BOTH),
    ("one-object", BOTH),
    ("half-bodies", BOTH),
    ("idle-connections", BOTH),
    ("unread-answers", BOTH),
    ("unread-watches", BOTH),
    ("small-requests", BOTH),
    ("list-flood", BOTH),
    ("rapid-reset", BOTH),
    ("large-updates", &[Abuser::User]),
];

const BOTH: &[Abuser] = &[Abuser::User, Abuser::Stranger];

/// The identity of the attacker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abuser {
    /// Has rights in one namespace.
    User,
    /// Has no credentials.
    Stranger,
}

impl Abuser {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Stranger => "stranger",
        }
    }
}

/// One attack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attack {
    pub(super) name: &'static str,
    pub(super) abuser: Abuser,
}

/// The arguments.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) has_peers: bool,
    pub(super) seconds: u32,
    pub(super) attacks: Vec<Attack>,
}

impl Options {
    pub(super) fn parse(words: &[&str]) -> anyhow::Result<Self> {
        let (mut has_peers, mut seconds) = (false, 10);
        let (mut wanted, mut abuser) = (None, None);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--peers" => has_peers = true,
                "--seconds" => {
                    let number = words.next().context(USAGE)?;
                    seconds = number.parse().context(USAGE)?;
                }
                "--attack" => wanted = Some(*words.next().context(USAGE)?),
                "--user" => abuser = Some(Abuser::User),
                "--stranger" => abuser = Some(Abuser::Stranger),
                _ => bail!(USAGE),
            }
        }
        ensure!(seconds > 0, USAGE);
        let attacks = chosen(wanted, abuser);
        if attacks.is_empty() {
            let names = ATTACKS.map(|(name, _)| name).join(", ");
            bail!("no such attack, or not by this abuser; the attacks are: {names}\n{USAGE}");
        }
        Ok(Self {
            has_peers,
            seconds,
            attacks,
        })
    }
}

/// All that a user does come first.
fn chosen(wanted: Option<&str>, only: Option<Abuser>) -> Vec<Attack> {
    let mut attacks = Vec::new();
    for abuser in BOTH {
        for (name, abusers) in ATTACKS {
            let is_meant = wanted.is_none_or(|wanted| wanted == name)
                && only.is_none_or(|only| only == *abuser);
            if is_meant && abusers.contains(abuser) {
                attacks.push(Attack {
                    name,
                    abuser: *abuser,
                });
            }
        }
    }
    attacks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_abusers_attack_unless_one_is_chosen() {
        let names = |words: &[&str]| -> Vec<String> {
            let options = Options::parse(words).unwrap();
            let attacks = options.attacks.iter();
            attacks
                .map(|attack| format!("{} {}", attack.abuser.name(), attack.name))
                .collect()
        };
        assert_eq!(
            names(&["--attack", "odd-bodies"]),
            ["user odd-bodies", "stranger odd-bodies"]
        );
        assert_eq!(
            names(&["--attack", "odd-bodies", "--stranger"]),
            ["stranger odd-bodies"]
        );
        assert_eq!(names(&[]).len(), 14 + 9);
    }

    #[test]
    fn an_unknown_attack_is_refused_with_the_names_there_are() {
        let error = Options::parse(&["--attack", "merge"]).unwrap_err();
        assert!(error.to_string().contains("merge-keys, json-inserts"));
        assert!(Options::parse(&["--attack", "merge-keys", "--stranger"]).is_err());
        assert!(Options::parse(&["--seconds", "0"]).is_err());
    }
}
