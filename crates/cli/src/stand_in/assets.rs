//! `windlass assets`: a directory of stand-ins, for envtest and its like.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use super::StandIn;
use crate::commands::print;

/// The version in the layout of setup-envtest.
const VERSION: &str = "1.36.4";

/// Options of `assets`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The directory, for KUBEBUILDER_ASSETS.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Use the layout of setup-envtest: DIR/k8s/VERSION-SYSTEM-ARCHITECTURE.
    #[arg(long)]
    setup_envtest: bool,
    /// Copy this program in place of links to it.
    #[arg(long)]
    copy: bool,
}

impl Arguments {
    /// Writes the directory and prints its path.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let directory = match self.setup_envtest {
            true => self.directory.join("k8s").join(platform()),
            false => self.directory.clone(),
        };
        write(&directory, self.copy)?;
        print(&format!("{}\n", std::path::absolute(&directory)?.display()));
        Ok(())
    }
}

/// The name of a directory in the layout of setup-envtest.
fn platform() -> String {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        system => system,
    };
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{VERSION}-{system}-{architecture}")
}

/// Writes the stand-ins into a directory, and a link to kubectl if there is one.
pub(crate) fn write(directory: &Path, is_copied: bool) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let program = std::env::current_exe()?.canonicalize()?;
    for stand_in in StandIn::ALL {
        put(&program, &directory.join(stand_in.name()), is_copied)?;
    }
    if let Some(kubectl) = find("kubectl", directory) {
        put(&kubectl, &directory.join("kubectl"), false)?;
    }
    Ok(())
}

/// A program of the PATH, outside of a directory.
fn find(name: &str, outside: &Path) -> Option<PathBuf> {
    let outside = outside.canonicalize().ok()?;
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path)
        .map(|place| place.join(name))
        .filter_map(|place| place.canonicalize().ok());
    places.find(|place| place.is_file() && !place.starts_with(&outside))
}

/// Makes a link or a copy, in place of an earlier one and of nothing else.
fn put(from: &Path, to: &Path, is_copied: bool) -> anyhow::Result<()> {
    match to.symlink_metadata() {
        Ok(found) if found.is_symlink() => std::fs::remove_file(to)?,
        Ok(_) if is_own_copy(from, to) => std::fs::remove_file(to)?,
        Ok(_) => anyhow::bail!(
            "{} is there and is not a stand-in; remove it or choose another directory",
            to.display()
        ),
        Err(_) => {}
    }
    let made = match is_copied {
        true => std::fs::copy(from, to).map(drop),
        false => std::os::unix::fs::symlink(from, to),
    };
    made.with_context(|| format!("cannot make {}", to.display()))
}

/// Returns true if a file is a copy of this program, by its size.
fn is_own_copy(from: &Path, to: &Path) -> bool {
    let size = |path: &Path| path.metadata().map(|found| found.len()).ok();
    size(from).is_some() && size(from) == size(to)
}
