//! Real kubectl on both servers: sessions of commands and what they print.
//!
//! A session is a text file. A line with `$` runs in a shell, lines with `>` go on with it, and
//! what follows is what it prints, with a last line such as `[1]` if it fails. Where a kubectl of
//! an older minor version prints something else, a line such as `@1.34` and its output follow. What
//! differs from run to run is replaced by a word: see [`normal`]. Lines with `#` are for people.
//!
//! A session that prints something else is left in full in the build's directory for temporary
//! files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use windlass_contract::{embedded_kubeconfig, real_kubeconfig};
use windlass_core::Env;
use windlass_envtest::{
    Assets, ControlPlane, KUBERNETES_VERSION, OLDER_KUBECTLS, Options, real_assets, skip,
};
use windlass_testing::Cluster;

/// What kubectl does with a server alone.
const SERVER: &str = include_str!("kubectl/server.txt");

#[test]
fn embedded_server_prints_what_is_expected() {
    check("embedded", embedded_kubeconfig(), SERVER);
}

#[test]
fn real_server_prints_what_is_expected() {
    if let Some(kubeconfig) = real_kubeconfig() {
        check("real", kubeconfig, SERVER);
    }
}

#[test]
fn embedded_server_prints_what_is_expected_to_the_last_kubectl() {
    check_with(OLDER_KUBECTLS[0], "embedded", embedded_kubeconfig(), SERVER);
}

#[test]
fn real_server_prints_what_is_expected_to_the_last_kubectl() {
    if let Some(kubeconfig) = real_kubeconfig() {
        check_with(OLDER_KUBECTLS[0], "real", kubeconfig, SERVER);
    }
}

#[test]
fn embedded_server_prints_what_is_expected_to_the_kubectl_before_the_last() {
    check_with(OLDER_KUBECTLS[1], "embedded", embedded_kubeconfig(), SERVER);
}

#[test]
fn real_server_prints_what_is_expected_to_the_kubectl_before_the_last() {
    if let Some(kubeconfig) = real_kubeconfig() {
        check_with(OLDER_KUBECTLS[1], "real", kubeconfig, SERVER);
    }
}

/// What kubectl does where controllers run, too. Nodes do not: the session plays their part.
const CONTROLLERS: &str = include_str!("kubectl/controllers.txt");

/// What needs controllers that only kube-controller-manager has.
const JOBS: &str = include_str!("kubectl/jobs.txt");

#[test]
fn real_control_plane_prints_what_is_expected() {
    if real_assets().is_none() {
        return;
    }
    let options = Options::default().controllers(["*"]);
    let plane = ControlPlane::start(&options).expect("a control plane");
    let kubeconfig = fs::read_to_string(plane.kubeconfig()).expect("a kubeconfig");
    check("real-controllers", &kubeconfig, CONTROLLERS);
    check("real-jobs", &kubeconfig, JOBS);
}

#[test]
fn embedded_cluster_prints_what_is_expected() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let controllers = [
        "deployment-controller",
        "garbage-collector-controller",
        "namespace-controller",
        "replicaset-controller",
        "replicationcontroller-controller",
        "root-ca-certificate-publisher-controller",
        "serviceaccount-controller",
    ];
    // kubectl tells ages by the real time.
    let cluster = Cluster::builder()
        .env(Env::real())
        .controllers(controllers)
        .settings(|settings| "a certificate".clone_into(&mut settings.root_ca.root_ca));
    let cluster = runtime.block_on(cluster.start());
    let kubeconfig = runtime
        .block_on(cluster.kubeconfig())
        .expect("it is embedded");
    let kubeconfig = fs::read_to_string(kubeconfig).expect("a kubeconfig");
    check("embedded-controllers", &kubeconfig, CONTROLLERS);
}

/// One command of a session.
#[derive(Debug, Default, PartialEq, Eq)]
struct Step {
    command: String,
    output: String,
    /// What other kubectls print instead, by minor version.
    older: Vec<(String, String)>,
}

impl Step {
    /// What some version of kubectl should print.
    fn expected(&self, version: &str) -> &str {
        let minor = minor(version);
        let older = self.older.iter().find(|(older, _)| older == minor);
        older.map_or(&self.output, |(_, output)| output)
    }
}

/// The version without its last number.
fn minor(version: &str) -> &str {
    version.rsplit_once('.').map_or(version, |(minor, _)| minor)
}

/// Runs a session and demands what it says.
fn check(name: &str, kubeconfig: &str, session: &str) {
    check_with(KUBERNETES_VERSION, name, kubeconfig, session);
}

/// The directory with some version of kubectl, or `None` with a line on stderr.
fn binaries(version: &str) -> Option<PathBuf> {
    let found = match version {
        KUBERNETES_VERSION => Assets::find().map(|assets| assets.directory().to_owned()),
        older => Assets::older_kubectl(older),
    };
    let is_required = std::env::var_os("WINDLASS_REQUIRE_ENVTEST").is_some();
    match found {
        Ok(directory) => Some(directory),
        Err(error) => {
            assert!(!is_required, "{error}");
            skip(&error);
            None
        }
    }
}

/// Runs a session with some version of kubectl.
fn check_with(version: &str, server: &str, kubeconfig: &str, session: &str) {
    let Some(binaries) = binaries(version) else {
        return;
    };
    let name = format!("{server}-{}", minor(version).replace('.', "-"));
    let place = Place::new(&name, kubeconfig, &binaries);
    let steps = steps(session);
    let mut transcript = String::new();
    let mut faults = Vec::new();
    for step in &steps {
        let output = place.run(&step.command);
        transcript += &format!("$ {}\n{output}", step.command.replace('\n', "\n> "));
        let expected = step.expected(version);
        if output != expected {
            let command = &step.command;
            faults.push(format!(
                "$ {command}\nexpected:\n{expected}printed:\n{output}"
            ));
        }
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kubectl-{name}.txt"));
    fs::write(&path, transcript).expect("the transcript is written");
    assert!(
        faults.is_empty(),
        "{} of {} commands of kubectl {version} on the {server} server, see {}:\n{}",
        faults.len(),
        steps.len(),
        path.display(),
        faults.join("\n")
    );
}

/// The commands of a session.
fn steps(session: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in session.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                command: command.to_owned(),
                ..Step::default()
            });
        } else if let Some(step) = steps.last_mut() {
            if let Some(more) = line.strip_prefix("> ") {
                step.command += &format!("\n{more}");
            } else if let Some(version) = line.strip_prefix('@') {
                step.older.push((version.to_owned(), String::new()));
            } else if !line.starts_with('#') && !line.is_empty() {
                let output = match step.older.last_mut() {
                    Some((_, output)) => output,
                    None => &mut step.output,
                };
                *output += &format!("{line}\n");
            }
        }
    }
    steps
}

/// Where commands run: a directory with a kubeconfig and a home of its own.
struct Place {
    directory: PathBuf,
    path: String,
    namespace: String,
}

impl Place {
    fn new(name: &str, kubeconfig: &str, binaries: &Path) -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kubectl-{name}"));
        // What an earlier run left would be found in the cache of kubectl.
        drop(fs::remove_dir_all(&directory));
        fs::create_dir_all(&directory).expect("a directory");
        fs::write(directory.join("kubeconfig"), kubeconfig).expect("a kubeconfig");
        let path = std::env::var("PATH").unwrap_or_default();
        let place = Self {
            directory,
            path: format!("{}:{path}", binaries.display()),
            namespace: format!("kubectl-{name}-{}", std::process::id()),
        };
        let namespace = &place.namespace;
        place.run(&format!("kubectl create namespace {namespace}"));
        place.run(&format!(
            "kubectl config set-context --current --namespace={namespace}"
        ));
        place
    }

    /// What a command prints, and the code with which it fails.
    fn run(&self, command: &str) -> String {
        let output = Command::new("sh")
            .args(["-c", &format!("exec 2>&1\n{command}")])
            .current_dir(&self.directory)
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", &self.directory)
            .env("NS", &self.namespace)
            .env("KUBECONFIG", self.directory.join("kubeconfig"))
            .output()
            .expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout);
        let text = text.replace(&self.namespace, "NS");
        let mut lines: String = text.lines().filter_map(normal).collect();
        match output.status.code() {
            Some(0) => {}
            code => lines += &format!("[{}]\n", code.unwrap_or(-1)),
        }
        lines
    }
}

/// A line without what differs from run to run: columns are one space apart, and ages, dates, times,
/// addresses, ids and colours are words.
fn normal(line: &str) -> Option<String> {
    let plain = without_colours(line);
    let words: Vec<String> = plain.split_whitespace().map(word).collect();
    let words = without_dates(words);
    (!words.is_empty()).then(|| format!("{}\n", words.join(" ")))
}

/// Words in which dates such as `Sun, 15 Nov 2026 TIME +0000` are one word.
fn without_dates(mut words: Vec<String>) -> Vec<String> {
    const WORDS: usize = 6;
    const DAYS: [&str; 7] = ["Mon,", "Tue,", "Wed,", "Thu,", "Fri,", "Sat,", "Sun,"];
    let is_date = |date: &[String]| DAYS.contains(&date[0].as_str()) && date[4] == "TIME";
    while let Some(at) = words.windows(WORDS).position(is_date) {
        words.splice(at..at + WORDS, ["DATE".to_owned()]);
    }
    words
}

fn word(word: &str) -> String {
    let (bare, tail) = match word.strip_suffix([',', '.', ';', '"']) {
        Some(bare) => (bare, &word[bare.len()..]),
        None => (word, ""),
    };
    let (head, bare) = match bare.strip_prefix('"') {
        Some(bare) => ("\"", bare),
        None => ("", bare),
    };
    let bare = match bare {
        age if is_age(age) => "AGE".to_owned(),
        time if is_time(time) => "TIME".to_owned(),
        address if is_address(address) => "ADDRESS".to_owned(),
        url if url.starts_with("https://127.0.0.1:") => "URL".to_owned(),
        other => without_node_ports(&without_ids(other)),
    };
    format!("{head}{bare}{tail}")
}

/// Such as `5s`, `3m20s`.
fn is_age(word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, 's' | 'm' | 'h' | 'd');
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.ends_with(['s', 'm', 'h', 'd'])
        && word.chars().all(is_part)
        && word.len() < 8
}

/// Such as `2026-01-01T00:00:00Z` and the time of day in longer forms.
fn is_time(word: &str) -> bool {
    let is_shape = |shape: &str| {
        word.len() == shape.len()
            && word
                .chars()
                .zip(shape.chars())
                .all(|(c, shape)| match shape {
                    '0' => c.is_ascii_digit(),
                    other => c == other,
                })
    };
    is_shape("0000-00-00T00:00:00Z") || is_shape("00:00:00")
}

/// An address of the service network.
fn is_address(word: &str) -> bool {
    word.starts_with("10.") && word.parse::<std::net::Ipv4Addr>().is_ok()
}

/// A word in which ids are replaced.
fn without_ids(word: &str) -> String {
    const LENGTH: usize = 36;
    let is_id = |text: &str| {
        text.char_indices().all(|(at, c)| match at {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_hexdigit(),
        })
    };
    let mut at = 0;
    while let Some(window) = word.get(at..at + LENGTH) {
        if is_id(window) {
            return format!("{}ID{}", &word[..at], without_ids(&word[at + LENGTH..]));
        }
        at += 1;
    }
    word.to_owned()
}

/// A word in which ports of the nodes are replaced, as in `80:30123/TCP`.
fn without_node_ports(word: &str) -> String {
    let is_port = |part: &str| {
        let number = part.parse::<u32>();
        part.len() == 5 && number.is_ok_and(|number| (30_000..32_768).contains(&number))
    };
    let parts = word.split_inclusive(|c: char| !c.is_ascii_digit());
    let parts = parts.map(|part| {
        let digits = part.trim_end_matches(|c: char| !c.is_ascii_digit());
        match is_port(digits) {
            true => format!("PORT{}", &part[digits.len()..]),
            false => part.to_owned(),
        }
    });
    parts.collect()
}

fn without_colours(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain += part.split_once('m').map_or("", |(_, rest)| rest);
    }
    plain
}

#[test]
fn session_is_commands_and_what_they_print() {
    let session = "# about\n$ a\n> b\nout\n[1]\n@1.34\nold\n\n$ c\n";
    let steps = steps(session);
    let commands: Vec<&str> = steps.iter().map(|step| step.command.as_str()).collect();
    assert_eq!(commands, ["a\nb", "c"]);
    assert_eq!(steps[0].expected("1.36.4"), "out\n[1]\n");
    assert_eq!(steps[0].expected("1.34.10"), "old\n");
    assert_eq!(steps[1].expected("1.34.10"), "");
}

#[test]
fn what_differs_from_run_to_run_is_replaced() {
    let line = "x-00000000-0000-0000-0000-000000000000  10.0.0.1   5m2s  2026-01-01T00:00:00Z,";
    assert_eq!(normal(line), Some("x-ID ADDRESS AGE TIME,\n".to_owned()));
    assert_eq!(
        normal("\u{1b}[0;32mgreen\u{1b}[0m"),
        Some("green\n".to_owned())
    );
    assert_eq!(normal("80:30123/TCP"), Some("80:PORT/TCP\n".to_owned()));
    assert_eq!(
        normal("At: Sun, 15 Nov 2026 01:02:03 +0000 b"),
        Some("At: DATE b\n".to_owned())
    );
    assert_eq!(normal(" "), None);
}
