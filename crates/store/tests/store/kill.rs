//! A process that is killed under load loses nothing that it told anybody.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use windlass_core::Env;
use windlass_store::{Store, StoreOptions};

use crate::support::{brief, drain, key, pods, put, value};

const ROUNDS: usize = 6;
/// Lines that the child writes before it is killed.
const LINES: usize = 600;
const WRITERS: usize = 8;
const WATCHERS: usize = 4;
/// So that the process is killed while writes move from the log to the tables, too.
const SEGMENT_BYTES: u64 = 8 << 10;

fn options(env: Env, dir: &Path) -> StoreOptions {
    StoreOptions {
        segment_bytes: SEGMENT_BYTES,
        ..StoreOptions::directory(env, dir)
    }
}
/// Tells the child which directory to write to.
const DIR_VARIABLE: &str = "WINDLASS_STORE_KILL_TEST_DIR";

/// What the child told: `acked` and `seen` are revision, name and value.
#[derive(Default)]
struct Told {
    acked: Vec<(u64, String, i64)>,
    seen: BTreeMap<u64, (String, i64)>,
}

#[test]
fn nothing_that_was_told_is_lost_when_the_process_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut newest = 1;
    for round in 0..ROUNDS {
        let told = run_until_killed(dir.path());
        assert!(
            told.acked.iter().all(|(revision, ..)| *revision > newest),
            "round {round}"
        );
        let store = Store::open(options(Env::seeded(1), dir.path())).unwrap();
        check(&store, &told);
        newest = store.revision();
    }
}

/// The other process: it writes and watches until it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_of_the_kill_test() {
    let Ok(dir) = std::env::var(DIR_VARIABLE) else {
        return;
    };
    let store = Store::open(options(Env::real(), Path::new(&dir))).unwrap();
    for _ in 0..WATCHERS {
        let mut watch = store.watch(&pods(), store.revision()).unwrap();
        tokio::spawn(async move {
            while let Ok(event) = watch.next().await {
                let (revision, name, value) = brief(&event);
                tell(&format!("seen {revision} {name} {}", value.unwrap()));
            }
        });
    }
    let write = |writer: usize| {
        let store = store.clone();
        tokio::spawn(async move {
            let name = format!("object-{writer}");
            let start = store
                .get(&pods(), &key(&name))
                .map_or(0, |entry| value(entry.doc()));
            for value in start + 1.. {
                let entry = put(&store, &pods(), &name, value).await;
                tell(&format!("acked {} {name} {value}", entry.revision));
            }
        })
    };
    let writers: Vec<_> = (0..WRITERS).map(write).collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

/// A line goes out in one piece, past the capture of the test harness.
fn tell(line: &str) {
    let mut stdout = std::io::stdout().lock();
    // The parent may have stopped reading; it is about to kill this process.
    let _ = stdout
        .write_all(format!("{line}\n").as_bytes())
        .and_then(|()| stdout.flush());
}

fn run_until_killed(dir: &Path) -> Told {
    let mut child = start(dir);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = Told::default();
    for (count, line) in lines.map_while(Result::ok).enumerate() {
        told.note(&line);
        if count == LINES {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(!told.acked.is_empty() && !told.seen.is_empty());
    told
}

fn start(dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child_of_the_kill_test", "--nocapture"])
        .env(DIR_VARIABLE, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

impl Told {
    /// Lines of the test harness and a last line that was cut are passed over.
    fn note(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let [verb, revision, name, value] = words[..] else {
            return;
        };
        let (Ok(revision), Ok(value)) = (revision.parse(), value.parse()) else {
            return;
        };
        match verb {
            "acked" => self.acked.push((revision, name.to_owned(), value)),
            "seen" => {
                let known = self.seen.insert(revision, (name.to_owned(), value));
                assert!(known.is_none_or(|known| known == (name.to_owned(), value)));
            }
            _ => {}
        }
    }
}

fn check(store: &Store, told: &Told) {
    let events: BTreeMap<u64, (String, Option<i64>)> = drain(&mut store.watch(&pods(), 1).unwrap())
        .into_iter()
        .map(|(revision, name, value)| (revision, (name, value)))
        .collect();
    let acked = told
        .acked
        .iter()
        .map(|(revision, name, value)| (*revision, name, *value));
    let seen = told
        .seen
        .iter()
        .map(|(revision, (name, value))| (*revision, name, *value));
    for (revision, name, value) in acked.chain(seen) {
        assert_eq!(events.get(&revision), Some(&(name.clone(), Some(value))));
        assert!(store.get(&pods(), &key(name)).unwrap().revision >= revision);
    }
}
