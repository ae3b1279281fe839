//! A temporary directory that is removed when its owner is gone, however that happens.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

/// Waits until the pipe on standard input closes, then removes the directory. When the owner was
/// killed, servers may write for another instant, so a removal that fails is tried again.
const JANITOR: &str = r#"
read -r _
for _ in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf -- "$1" 2>/dev/null && exit 0
    sleep 0.1
done
exit 1
"#;

/// How many names to try before giving up; leftovers of a process with the same id take some.
const NAMES_LIMIT: u32 = 10_000;

/// A directory that only this user can read, because it holds keys.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// Removes the directory when its standard input closes.
    janitor: Child,
}

impl Directory {
    pub(crate) fn new() -> io::Result<Self> {
        let path = create()?;
        let spawned = Command::new("sh")
            .args(["-c", JANITOR, "windlass-envtest-janitor"])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        match spawned {
            Ok(janitor) => Ok(Self { path, janitor }),
            Err(error) => {
                fs::remove_dir(&path)?;
                Err(error)
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(self.janitor.stdin.take());
        // A failure leaves files in the temporary directory, and a destructor can do no more.
        let _ = self.janitor.wait();
    }
}

fn create() -> io::Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let parent = std::env::temp_dir();
    for _ in 0..NAMES_LIMIT {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("windlass-envtest-{}-{number}", std::process::id()));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|()| path),
        }
    }
    Err(io::Error::other(format!(
        "every name for a directory in {} is taken",
        parent.display()
    )))
}
