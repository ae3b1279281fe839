//! A server process that ends when its owner does.

use std::{
    ffi::OsString,
    fs,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Runs `"$@"` with its output appended to the file `$LOG`, writes its process id to standard
/// output, and kills it when the pipe on standard input closes. The shell is the parent of the
/// server, so the id cannot pass to another process while the shell waits for it.
const SUPERVISOR: &str = r#"
exec 3<&0
"$@" 3<&- </dev/null >>"$LOG" 2>&1 &
server=$!
echo "$server"
(read -r _ <&3; kill -KILL "$server") >/dev/null 2>&1 &
watcher=$!
wait "$server"
status=$?
kill "$watcher" 2>/dev/null
exit "$status"
"#;

/// How much of the end of a log an error shows.
const TAIL_BYTES_LIMIT: u64 = 4096;
const TAIL_LINES_LIMIT: usize = 12;

/// A running server. Dropping it kills the server and returns when it is gone.
#[derive(Debug)]
pub(crate) struct Supervised {
    /// The shell. Its standard input is the pipe that keeps the server alive.
    shell: Child,
    pid: u32,
    log: PathBuf,
}

impl Supervised {
    /// Starts `program`, with its log next to others in `logs`.
    pub(crate) fn spawn(program: &Path, flags: &[String], logs: &Path) -> io::Result<Self> {
        let name = program.file_name().unwrap_or(program.as_os_str());
        let mut log_name = OsString::from(name);
        log_name.push(".log");
        let log = logs.join(log_name);
        let mut shell = Command::new("sh")
            .args(["-c", SUPERVISOR, "windlass-envtest-supervisor"])
            .arg(program)
            .args(flags)
            .env("LOG", &log)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Its own group, so that an interrupt at the terminal reaches the owner alone.
            .process_group(0)
            .spawn()?;
        let pid = read_pid(&mut shell)?;
        Ok(Self { shell, pid, log })
    }

    /// The id of the server itself, not of the shell around it.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn has_exited(&mut self) -> io::Result<bool> {
        Ok(self.shell.try_wait()?.is_some())
    }

    /// The last lines of the log, for an error.
    pub(crate) fn log_tail(&self) -> String {
        read_tail(&self.log).unwrap_or_else(|error| format!("no log: {error}"))
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // It can only fail if somebody else waited for our child, and then it is gone as well.
        let _ = self.shell.wait();
    }
}

fn read_pid(shell: &mut Child) -> io::Result<u32> {
    let stdout = shell
        .stdout
        .take()
        .ok_or_else(|| io::Error::other("a piped stream is missing"))?;
    let mut line = String::new();
    BufReader::new(stdout.take(32)).read_line(&mut line)?;
    line.trim()
        .parse()
        .map_err(|_| io::Error::other(format!("sh wrote {line:?}, not a process id")))
}

fn read_tail(log: &Path) -> io::Result<String> {
    let mut file = fs::File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES_LIMIT)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES_LIMIT).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(TAIL_LINES_LIMIT)..].join("\n"))
}

#[cfg(test)]
mod tests;
