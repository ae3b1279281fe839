//! Who uses a data directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context as _;
use windlass_core::{Doc, doc};

/// Locked while a process uses the directory, and says which one.
const FILE: &str = "process.json";

/// What the file may hold at most.
const FILE_BYTES_LIMIT: u64 = 64 << 10;

/// A data directory that nobody else uses.
#[derive(Debug)]
pub(crate) struct Held {
    file: File,
}

/// The process that uses a data directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holder {
    pub(crate) pid: Option<i32>,
    pub(crate) url: String,
    pub(crate) kubeconfig: PathBuf,
}

impl Held {
    /// Takes the directory, unless another process has it.
    pub(crate) fn take(data: &Path) -> anyhow::Result<Self> {
        let mut file = open(data)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => anyhow::bail!(
                "data directory {} is in use by {}; stop it with `windlass down`, or choose \
                 another with --data",
                data.display(),
                Holder::read(&mut file).name()
            ),
            Err(TryLockError::Error(error)) => {
                return Err(error).context(format!("cannot lock {}", data.display()));
            }
        }
        let mut held = Self { file };
        held.write(&doc!({ "pid": i64::from(std::process::id()) }))?;
        Ok(held)
    }

    /// Writes down where this process serves.
    pub(crate) fn sign(&mut self, url: &str, kubeconfig: &Path) -> anyhow::Result<()> {
        let kubeconfig = std::path::absolute(kubeconfig)?;
        self.write(&doc!({
            "pid": i64::from(std::process::id()),
            "url": url,
            "kubeconfig": kubeconfig.to_string_lossy().as_ref(),
        }))
    }

    fn write(&mut self, holder: &Doc) -> anyhow::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(&holder.to_json())?;
        Ok(())
    }
}

impl Holder {
    /// The process that uses a directory; none if nobody does.
    pub(crate) fn of(data: &Path) -> anyhow::Result<Option<Self>> {
        if !data.join(FILE).exists() {
            return Ok(None);
        }
        let mut file = open(data)?;
        match file.try_lock() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => Ok(Some(Self::read(&mut file))),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Waits until nobody uses the directory; says whether that came about in time.
    pub(crate) fn wait_for_end(data: &Path, patience: Duration) -> anyhow::Result<bool> {
        let file = open(data)?;
        let (sender, ended) = mpsc::channel();
        // The system wakes us when the lock is free. A thread that waits too long ends with the
        // program.
        std::thread::spawn(move || sender.send(file.lock()));
        match ended.recv_timeout(patience) {
            Ok(locked) => locked.map(|()| true).map_err(Into::into),
            Err(_) => Ok(false),
        }
    }

    /// What the file says. It may be half written, in which case less is known.
    fn read(file: &mut File) -> Self {
        let mut text = Vec::new();
        let read = file.take(FILE_BYTES_LIMIT).read_to_end(&mut text);
        let holder = match (read, Doc::parse(&text)) {
            (Ok(_), Ok(holder)) => holder,
            _ => return Self::default(),
        };
        let pid = holder.at("/pid").as_i64();
        Self {
            pid: pid.and_then(|pid| i32::try_from(pid).ok()),
            url: holder.str_at("/url").to_owned(),
            kubeconfig: holder.str_at("/kubeconfig").into(),
        }
    }

    fn name(&self) -> String {
        match (self.pid, self.url.as_str()) {
            (None, _) => "another process".to_owned(),
            (Some(pid), "") => format!("process {pid}"),
            (Some(pid), url) => format!("process {pid}, which serves {url}"),
        }
    }
}

fn open(data: &Path) -> anyhow::Result<File> {
    let path = data.join(FILE);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let file = options.open(&path);
    file.with_context(|| format!("cannot open {}", path.display()))
}
