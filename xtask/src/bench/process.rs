//! Processes that are measured from outside, and where they keep their data.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;

use super::contestant::{Numbers, Profile, Program, Running};

/// A server of ours that has become ready.
#[derive(Debug)]
pub(crate) struct Started {
    /// Ends the server when it is dropped.
    running: Running,
    pub(crate) pid: u32,
    /// How long it took to become ready.
    pub(crate) ready: Numbers,
}

impl Started {
    /// Starts the binary `windlass` with these words and its data in a directory, where its
    /// kubeconfig is too.
    pub(crate) fn windlass(directory: &Directory, words: &[&str]) -> anyhow::Result<Self> {
        Self::windlass_as(Profile::Release, directory, words)
    }

    /// The same with a build of this profile.
    pub(crate) fn windlass_as(
        profile: Profile,
        directory: &Directory,
        words: &[&str],
    ) -> anyhow::Result<Self> {
        let program = Program::Server.binary_as(profile);
        let program = program.to_string_lossy();
        let data = directory.file("");
        let start = ["server", "start", &program];
        let words = [&start, words, &["--data", &data]].concat();
        let mut running = Running::start(Program::Windlass.command_as(profile, &words))?;
        let mut ready = running.numbers()?;
        let pid = ready.remove("pid").context("the id of the process")?;
        Ok(Self {
            running,
            pid: pid as u32,
            ready,
        })
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // The end of its input ends the server too, which a signal would leave behind.
        self.running.finish();
    }
}

/// The resident memory of processes together.
pub(crate) fn resident_mb(pids: &[u32]) -> anyhow::Result<f64> {
    memory_mb(pids, "VmRSS:")
}

/// The peaks of the resident memory of processes together.
pub(crate) fn peak_mb(pids: &[u32]) -> anyhow::Result<f64> {
    memory_mb(pids, "VmHWM:")
}

/// Makes the kernel forget the peaks so far.
pub(crate) fn forget_peaks(pids: &[u32]) -> anyhow::Result<()> {
    for pid in pids {
        let path = format!("/proc/{pid}/clear_refs");
        fs::write(&path, "5").context(path)?;
    }
    Ok(())
}

fn memory_mb(pids: &[u32], field: &str) -> anyhow::Result<f64> {
    let mut kilobytes = 0.0;
    for pid in pids {
        let path = format!("/proc/{pid}/status");
        let text = fs::read_to_string(&path).with_context(|| path.clone())?;
        let line = text.lines().find_map(|line| line.strip_prefix(field));
        let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
        kilobytes += number.context(path)?.trim().parse::<f64>()?;
    }
    Ok(kilobytes * 1024.0 / 1e6)
}

/// User and system time of processes. The kernel counts in ticks of 10 ms, on all machines.
pub(crate) fn cpu_s(pids: &[u32]) -> anyhow::Result<f64> {
    let mut ticks = 0.0;
    for pid in pids {
        let path = format!("/proc/{pid}/stat");
        let text = fs::read_to_string(&path).with_context(|| path.clone())?;
        let (_, rest) = text.rsplit_once(") ").context(path)?;
        let fields: Vec<&str> = rest.split(' ').collect();
        for field in fields.get(11..13).context("user and system time")? {
            ticks += field.parse::<f64>()?;
        }
    }
    Ok(ticks / 100.0)
}

/// A directory for data that goes away with this.
#[derive(Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// Where the peer has its data too, so that both are on one disk.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let base = std::env::temp_dir();
        for number in 0.. {
            let path = base.join(format!("windlass-bench-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).context(path.display().to_string()),
            }
        }
        unreachable!("the numbers do not end")
    }

    /// The path of a file in it.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What cannot be removed is among temporary files, where it hurts nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}
