//! A server under test with its victim.

use std::process::Command;

use anyhow::Context;
use windlass_envtest::ControlPlane;

use crate::bench::contestant::{Numbers, Program, Running, measure};
use crate::bench::process::{Directory, Started, cpu_s, forget_peaks, peak_mb, resident_mb};

/// Time that a server has to become quiet after an attack.
const SETTLE_LIMIT_S: f64 = 30.0;
/// Looks in a row that find it quiet, half a second apart.
const QUIET_PROBES: usize = 2;
/// Cores that a quiet server uses at most.
const QUIET_CORES: f64 = 0.2;

/// The server that is attacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contestant {
    Windlass,
    RealStack,
}

impl Contestant {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Windlass => "windlass",
            Self::RealStack => "real-stack",
        }
    }
}

/// Ends its server when it is dropped.
enum Server {
    Windlass { _started: Started },
    RealStack { _started: Box<ControlPlane> },
}

/// A running server and its victim.
pub(super) struct ServerUnderTest {
    // Clients go before the server, and the directory goes last.
    victim: Running,
    /// `None` when it was stopped.
    server: Option<Server>,
    pids: Vec<u32>,
    directory: Directory,
}

impl ServerUnderTest {
    /// Starts a server on an empty directory, and makes accounts and objects on it.
    pub(super) fn start(contestant: Contestant) -> anyhow::Result<Self> {
        eprintln!("{}: starting", contestant.name());
        let directory = Directory::new()?;
        let (server, pids, kubeconfig) = match contestant {
            Contestant::Windlass => {
                let started = Started::windlass(&directory, &["server"])?;
                let pids = vec![started.pid];
                let server = Server::Windlass { _started: started };
                (server, pids, directory.file("kubeconfig"))
            }
            Contestant::RealStack => {
                let options = windlass_envtest::Options::default().durable();
                let started = ControlPlane::start(&options)
                    .context("no control plane; `cargo xtask envtest build` makes one")?;
                let pids = started.pids();
                let pids = pids.apiserver.into_iter().chain([pids.etcd]).collect();
                let kubeconfig = started.kubeconfig().to_string_lossy().into_owned();
                let _started = Box::new(started);
                (Server::RealStack { _started }, pids, kubeconfig)
            }
        };
        measure(command(
            &kubeconfig,
            &["abuse", "prepare", &directory.file("")],
        ))?;
        let kubeconfig = directory.file("victim.kubeconfig");
        let mut victim = Running::start(command(&kubeconfig, &["abuse", "victim"]))?;
        victim.numbers()?;
        victim.tell("go")?;
        let mut this = Self {
            victim,
            server: Some(server),
            pids,
            directory,
        };
        this.settle()?;
        Ok(this)
    }

    /// The victim's figures while nobody else is there.
    pub(super) fn quiet(&mut self, seconds: u32) -> anyhow::Result<Numbers> {
        self.connect()?;
        self.measure(seconds)
    }

    /// Makes the victim's connections.
    fn connect(&mut self) -> anyhow::Result<Numbers> {
        self.victim.tell("connect")?;
        self.victim.numbers()
    }

    fn measure(&mut self, seconds: u32) -> anyhow::Result<Numbers> {
        self.victim.tell(&format!("measure {seconds}"))?;
        self.victim.numbers()
    }

    /// The figures of the victim, of the server and of another process that runs for as long.
    /// `other` waits for a line of input and then prints its figures.
    pub(super) fn beside(&mut self, other: &mut Running, seconds: u32) -> anyhow::Result<Numbers> {
        other.numbers().context("the preparation of an abuser")?;
        self.connect()?;
        forget_peaks(&self.pids)?;
        let cpu = cpu_s(&self.pids)?;
        other.tell("go")?;
        let mut numbers = self.measure(seconds)?;
        numbers.extend(other.numbers()?);
        // Its connections are closed before anybody waits for quiet.
        other.finish();
        numbers.extend(self.settle()?);
        if self.is_running() {
            let number = |name: &str, number| (name.to_owned(), number);
            numbers.extend([
                number("server_cpu_s", cpu_s(&self.pids)? - cpu),
                number("server_peak_mb", peak_mb(&self.pids)?),
                number("server_mb", resident_mb(&self.pids)?),
            ]);
        }
        Ok(numbers)
    }

    /// A command of an abuser or of a neighbour, who is `user` or `stranger` to the server.
    pub(super) fn abuser(&self, name: &str, words: &[&str]) -> anyhow::Result<Running> {
        let kubeconfig = self.directory.file(&format!("{name}.kubeconfig"));
        Running::start(command(&kubeconfig, words))
    }

    /// Ends the server, which may still be at work for an abuser.
    pub(super) fn stop(&mut self) {
        self.server = None;
    }

    /// Waits until the server answers and uses next to no CPU, and says how long that took.
    fn settle(&mut self) -> anyhow::Result<Numbers> {
        let (mut quiet, mut settle_s) = (0, 0.0);
        while quiet < QUIET_PROBES && settle_s < SETTLE_LIMIT_S && self.is_running() {
            let cpu = cpu_s(&self.pids)?;
            self.victim.tell("probe")?;
            let probe = self.victim.numbers()?;
            let took_s = probe.get("took_s").context("the time of a probe")?;
            // A server that has ended uses none either.
            let used = cpu_s(&self.pids).map_or(f64::INFINITY, |now| now - cpu) / took_s;
            if probe.get("answers") == Some(&1.0) && used < QUIET_CORES {
                quiet += 1;
            } else {
                quiet = 0;
                settle_s += took_s;
            }
        }
        let is_quiet = f64::from(u8::from(quiet == QUIET_PROBES));
        let numbers = [("is_quiet_after", is_quiet), ("settle_s", settle_s)];
        Ok(numbers
            .map(|(name, number)| (name.to_owned(), number))
            .into())
    }

    /// Returns true if all processes of the server are there; one that has ended has no memory.
    fn is_running(&self) -> bool {
        resident_mb(&self.pids).is_ok()
    }
}

fn command(kubeconfig: &str, words: &[&str]) -> Command {
    let mut command = Program::Windlass.command(words);
    command.env("KUBECONFIG", kubeconfig);
    command
}
