//! One user's requests while another attacks the server: windlass, and kube-apiserver with etcd.

mod options;
mod server_under_test;

use anyhow::Context;

use self::options::{Attack, Options};
use self::server_under_test::{Contestant, ServerUnderTest};
use super::contestant::{Numbers, Program};
use super::report::{Report, median};
use super::rows::Rows;

/// Times that the victim is measured while nobody else is there; the middle one counts.
const QUIET_ROUNDS: usize = 3;

/// The largest ratio of the victim's p99 under an attack to the quiet one.
const RATIO_LIMIT: f64 = 5.0;

const SHOWN: &[(&str, &str)] = &[
    ("get_ratio", "get"),
    ("patch_ratio", "patch"),
    ("get_p50_ms", "get p50"),
    ("get_p99_ms", "get p99"),
    ("patch_p50_ms", "patch p50"),
    ("patch_p99_ms", "patch p99"),
    ("failed", "failed"),
    ("abuser_cores", "cores"),
    ("abuser_sent", "sent"),
    ("abuser_2xx", "2xx"),
    ("abuser_4xx", "4xx"),
    ("abuser_429", "429"),
    ("abuser_lost", "lost"),
    ("server_cpu_s", "CPU s"),
    ("server_peak_mb", "peak MB"),
    ("server_mb", "MB after"),
    ("settle_s", "settle s"),
];

/// Runs the attacks on windlass, and on the peer if asked to.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<Report> {
    let options = Options::parse(words)?;
    Program::Windlass.build()?;
    Program::Server.build()?;
    let mut report = Report::new(
        "abuse",
        &[
            "the victim reads ConfigMaps 100 times and patches them 40 times per second, on 32",
            "connections made beforehand, as a process with priority if that is allowed; the abuser is",
            "another user with rights in another namespace, or a stranger; all on this machine, every",
            "write synced to the disk",
            "get, patch: p99 of the victim under the attack, divided by the quiet one (median of 3);",
            "times in ms; a request that fails (429 too) or takes 10 s is `failed` and counts as 60 s",
            "cores: CPU of the abuser itself; sent, 2xx, 429, lost: its requests and connections",
            "CPU s, peak MB: of the server, until it is quiet again, settle s after the attack",
            "neighbour: in place of the abuser a process that uses as much CPU as the costliest abuser,",
            "or all cores, and leaves the server alone; quiet-after: the victim alone, at the end",
            "real-stack: kube-apiserver 1.36.4 and etcd, default settings",
        ],
    );
    attack(Contestant::Windlass, &options, &mut report)?;
    if options.has_peers {
        attack(Contestant::RealStack, &options, &mut report)?;
    }
    Ok(report)
}

/// Runs all attacks on one contestant.
fn attack(contestant: Contestant, options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let mut series = AttackSeries::start(contestant, options.seconds)?;
    for attack in &options.attacks {
        series.attack(*attack)?;
    }
    let attacks = series.rows.len();
    series.controls()?;
    let worst = worst(&series.rows[..attacks]).context("no attack was run")?;
    let suffix = match contestant {
        Contestant::Windlass => "",
        Contestant::RealStack => "_real_stack",
    };
    for (name, ratio) in [
        ("get_p99_under_abuse", worst.get),
        ("patch_p99_under_abuse", worst.patch),
    ] {
        report.own_ratio(&format!("{name}{suffix}"), ratio);
        series.numbers.insert(name.to_owned(), ratio);
        if contestant == Contestant::Windlass && ratio > RATIO_LIMIT {
            eprintln!(
                "{name} is {ratio:.1}, more than {RATIO_LIMIT}: {}",
                worst.name
            );
        }
    }
    report.label(&format!("worst_attack{suffix}"), &worst.name);
    report.column(contestant.name(), series.numbers);
    report.rows(Rows {
        contestant: contestant.name(),
        shown: SHOWN,
        rows: series.rows,
    });
    Ok(())
}

/// The attacks on one contestant.
struct AttackSeries {
    contestant: Contestant,
    seconds: u32,
    server: ServerUnderTest,
    /// The victim's figures while nobody else is there.
    quiet: Numbers,
    rows: Vec<(String, Numbers)>,
    numbers: Numbers,
}

impl AttackSeries {
    fn start(contestant: Contestant, seconds: u32) -> anyhow::Result<Self> {
        let mut server = ServerUnderTest::start(contestant)?;
        let mut rounds = Vec::new();
        for round in 1..=QUIET_ROUNDS {
            eprintln!("{}: quiet, {round} of {QUIET_ROUNDS}", contestant.name());
            rounds.push(server.quiet(seconds)?);
        }
        let quiet = median(&rounds);
        let mut numbers: Numbers = quiet
            .iter()
            .filter(|(name, _)| name.ends_with("_ms"))
            .map(|(name, number)| (format!("quiet_{name}"), *number))
            .collect();
        numbers.extend(["failed", "restarts"].map(|name| (name.to_owned(), 0.0)));
        Ok(Self {
            contestant,
            seconds,
            server,
            quiet,
            rows: Vec::new(),
            numbers,
        })
    }

    fn attack(&mut self, attack: Attack) -> anyhow::Result<()> {
        let (name, abuser) = (attack.name, attack.abuser.name());
        eprintln!("{}: {abuser} {name}", self.contestant.name());
        let seconds = self.seconds.to_string();
        let words = ["abuse", "attack", name, abuser, &seconds];
        let mut other = self.server.abuser(abuser, &words)?;
        let numbers = self.server.beside(&mut other, self.seconds)?;
        let is_quiet = numbers.get("is_quiet_after") == Some(&1.0);
        self.add(format!("{abuser} {name}"), numbers);
        if !is_quiet {
            eprintln!("the server did not become quiet; a new one takes the next attack");
            *self.numbers.entry("restarts".to_owned()).or_default() += 1.0;
            self.server.stop();
            self.server = ServerUnderTest::start(self.contestant)?;
        }
        Ok(())
    }

    /// Adds a line, with its ratios to the quiet figures.
    fn add(&mut self, name: String, mut numbers: Numbers) {
        let number = |name: &str| numbers.get(name).copied().unwrap_or(f64::NAN);
        let ratio = |name: &str| number(name) / self.quiet.get(name).copied().unwrap_or(f64::NAN);
        let failed = number("get_failed") + number("patch_failed");
        let ratios = [
            ("get_ratio", ratio("get_p99_ms")),
            ("patch_ratio", ratio("patch_p99_ms")),
            ("failed", failed),
        ];
        eprintln!(
            "  get {:.1}, patch {:.1}, {failed} failed",
            ratios[0].1, ratios[1].1
        );
        *self.numbers.entry("failed".to_owned()).or_default() += failed;
        numbers.extend(ratios.map(|(name, number)| (name.to_owned(), number)));
        self.rows.push((name, numbers));
    }

    /// The victim beside busy neighbours, and alone once more.
    fn controls(&mut self) -> anyhow::Result<()> {
        let cores = self
            .rows
            .iter()
            .filter_map(|(_, numbers)| numbers.get("abuser_cores"));
        let costliest = cores.copied().fold(0.0, f64::max);
        let all = std::thread::available_parallelism()?.get() as f64;
        for (name, cores) in [("neighbour", costliest), ("neighbour-all-cores", all)] {
            eprintln!("{}: {name}", self.contestant.name());
            let (cores, seconds) = (cores.to_string(), self.seconds.to_string());
            let words = ["abuse", "neighbour", &cores, &seconds];
            let mut other = self.server.abuser("stranger", &words)?;
            let numbers = self.server.beside(&mut other, self.seconds)?;
            self.add(name.to_owned(), numbers);
        }
        eprintln!("{}: quiet-after", self.contestant.name());
        let numbers = self.server.quiet(self.seconds)?;
        self.add("quiet-after".to_owned(), numbers);
        Ok(())
    }
}

/// The worst ratios of all attacks.
struct Worst {
    get: f64,
    patch: f64,
    /// The attack with the largest of both; of several the first.
    name: String,
}

fn worst(rows: &[(String, Numbers)]) -> Option<Worst> {
    let of = |numbers: &Numbers, name: &str| numbers.get(name).copied().unwrap_or(f64::INFINITY);
    let both = |numbers: &Numbers| of(numbers, "get_ratio").max(of(numbers, "patch_ratio"));
    let (name, _) = rows
        .iter()
        .rev()
        .max_by(|(_, a), (_, b)| both(a).total_cmp(&both(b)))?;
    let largest = |ratio: &str| {
        let ratios = rows.iter().map(|(_, numbers)| of(numbers, ratio));
        ratios.fold(0.0, f64::max)
    };
    Some(Worst {
        get: largest("get_ratio"),
        patch: largest("patch_ratio"),
        name: name.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worst_attack_has_the_largest_ratio_of_either_request() {
        let row = |name: &str, get, patch| {
            let ratios = [("get_ratio", get), ("patch_ratio", patch)];
            let ratios = ratios.map(|(name, ratio)| (name.to_owned(), ratio));
            (name.to_owned(), Numbers::from(ratios))
        };
        let rows = [row("a", 2.0, 1.0), row("b", 1.0, 3.0), row("c", 1.5, 3.0)];
        let worst = worst(&rows).unwrap();
        assert_eq!((worst.get, worst.patch), (2.0, 3.0));
        assert_eq!(worst.name, "b");
    }
}
