//! The processes that are measured.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::{Context, bail};

/// The figures of a contestant, by name.
pub(crate) type Numbers = BTreeMap<String, f64>;

/// Something that can be built once and then run with different arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Program {
    /// The package `windlass-bench`.
    Windlass,
    /// The binary `windlass`.
    Server,
    /// A Rust package under `bench/peers`, a workspace of its own.
    RustPeer(&'static str),
    /// The Go module under `bench/peers`.
    GoPeer,
}

/// The profile of a build. Peers have one for release alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// For figures that are compared.
    Release,
    /// For whoever looks for the cause of something.
    Debug,
}

impl Program {
    /// Builds for release.
    pub(crate) fn build(self) -> anyhow::Result<()> {
        self.build_as(Profile::Release)
    }

    /// Builds with a profile.
    pub(crate) fn build_as(self, profile: Profile) -> anyhow::Result<()> {
        eprintln!("building {self:?}");
        let binary = self.binary();
        let mut command = match self {
            Self::Windlass | Self::Server => cargo_build(&target(), profile),
            Self::RustPeer(_) => cargo_build(&peers_target(), profile),
            Self::GoPeer => Command::new("go"),
        };
        match self {
            Self::Windlass => command.args(["--package", "windlass-bench"]),
            Self::Server => command.args(["--package", "windlass-cli"]),
            Self::RustPeer(name) => command.current_dir(peers().join(name)),
            Self::GoPeer => command
                .current_dir(peers().join("go"))
                .args(["build", "-o"])
                .arg(binary),
        };
        let status = command.stdout(Stdio::null()).status();
        let status = status.with_context(|| format!("cannot run {command:?}"))?;
        if !status.success() {
            bail!("{command:?} ended with {status}");
        }
        Ok(())
    }

    /// The command that runs it with these arguments. It is the program itself and not Cargo,
    /// which would wait for whoever else is building.
    pub(crate) fn command(self, arguments: &[&str]) -> Command {
        self.command_as(Profile::Release, arguments)
    }

    /// The same for a build of this profile.
    pub(crate) fn command_as(self, profile: Profile, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.binary_as(profile));
        command.args(arguments);
        command
    }

    /// Where it is once it is built.
    pub(crate) fn binary(self) -> PathBuf {
        self.binary_as(Profile::Release)
    }

    /// Where it is once it is built with a profile.
    pub(crate) fn binary_as(self, profile: Profile) -> PathBuf {
        let ours = target().join(match profile {
            Profile::Release => "release",
            Profile::Debug => "debug",
        });
        match self {
            Self::Server => ours.join("windlass"),
            Self::Windlass => ours.join("windlass-bench"),
            Self::RustPeer(name) => peers_target()
                .join("release")
                .join(format!("windlass-bench-{name}")),
            Self::GoPeer => peers_target().join("go-peer"),
        }
    }
}

/// Runs a contestant to its end and returns the figures on its last line.
pub(crate) fn measure(mut command: Command) -> anyhow::Result<Numbers> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} ended with {}", output.status);
    }
    let text = String::from_utf8(output.stdout).context("figures that are not text")?;
    let line = text
        .lines()
        .next_back()
        .with_context(|| format!("{command:?} printed nothing"))?;
    parse(line)
}

/// Runs `source | sink` and returns the figures that the sink prints.
pub(crate) fn measure_pipe(mut source: Command, mut sink: Command) -> anyhow::Result<Numbers> {
    let mut source = source
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run the source")?;
    let output = source
        .stdout
        .take()
        .context("invariant: the output is piped")?;
    sink.stdin(output);
    let numbers = measure(sink);
    let status = source.wait()?;
    let numbers = numbers?;
    if !status.success() {
        bail!("the source ended with {status}");
    }
    Ok(numbers)
}

/// A contestant that is told when to start and to stop. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    /// `None` when nothing more will be said.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Running {
    /// Starts it.
    pub(crate) fn start(mut command: Command) -> anyhow::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {command:?}"))?;
        let input = child
            .stdin
            .take()
            .context("invariant: the input is piped")?;
        let output = child
            .stdout
            .take()
            .context("invariant: the output is piped")?;
        Ok(Self {
            child,
            input: Some(input),
            output: BufReader::new(output),
        })
    }

    /// Waits for its next line of figures.
    pub(crate) fn numbers(&mut self) -> anyhow::Result<Numbers> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        parse(&line)
    }

    /// Sends it a word.
    pub(crate) fn tell(&mut self, word: &str) -> anyhow::Result<()> {
        let input = self.input.as_mut().context("the contestant was told all")?;
        writeln!(input, "{word}").context("the contestant is gone")
    }

    /// The id of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends its input and waits until it has ended by itself.
    pub(crate) fn finish(&mut self) {
        self.input = None;
        // How it ended does not matter: its figures are here.
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself, which is not worth a word.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The root of the repository.
fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest
        .parent()
        .expect("invariant: xtask is a directory of the repository")
}

fn peers() -> PathBuf {
    root().join("bench/peers")
}

fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into()))
}

/// Peers share one target directory, because they share most of what they depend on.
fn peers_target() -> PathBuf {
    target().join("peers")
}

fn cargo_build(target: &Path, profile: Profile) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command
        .current_dir(root())
        .args(["build", "--quiet", "--target-dir"])
        .arg(target);
    if profile == Profile::Release {
        command.arg("--release");
    }
    command
}

fn parse(line: &str) -> anyhow::Result<Numbers> {
    serde_json::from_str(line).with_context(|| format!("not a line of figures: {line:?}"))
}
