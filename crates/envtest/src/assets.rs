//! Where the binaries of the control plane are.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The version of Kubernetes that `cargo xtask envtest build` builds.
pub const KUBERNETES_VERSION: &str = "1.36.4";

/// The older versions of which `cargo xtask envtest build` builds kubectl: the two minor versions
/// before [`KUBERNETES_VERSION`], newest first.
pub const OLDER_KUBECTLS: [&str; 2] = ["1.35.8", "1.34.10"];

/// The binaries that `cargo xtask envtest build` builds of [`KUBERNETES_VERSION`].
pub const BINARIES: [&str; 4] = [ETCD, APISERVER, CONTROLLER_MANAGER, KUBECTL];

const ETCD: &str = "etcd";
const APISERVER: &str = "kube-apiserver";
const CONTROLLER_MANAGER: &str = "kube-controller-manager";
const KUBECTL: &str = "kubectl";

/// The variable by which controller projects of every language name such a directory.
const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// The binaries of a control plane, all in one directory.
#[derive(Debug, Clone)]
pub struct Assets {
    directory: PathBuf,
}

/// Why there are no usable binaries.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AssetsError {
    /// The cache has no complete set of binaries.
    #[error("nothing is built in {}: run `cargo xtask envtest build`", directory.display())]
    NotBuilt {
        /// The directory that was searched.
        directory: PathBuf,
    },
    /// `KUBEBUILDER_ASSETS` names a directory that lacks a binary.
    #[error(
        "KUBEBUILDER_ASSETS={} has no {binary}: \
         unset it and run `cargo xtask envtest build`",
        directory.display()
    )]
    Incomplete {
        /// The directory that was searched.
        directory: PathBuf,
        /// The first binary that is missing.
        binary: &'static str,
    },
    /// The user has no cache directory.
    #[error("neither XDG_CACHE_HOME nor HOME is an absolute path: set KUBEBUILDER_ASSETS")]
    NoCache,
}

impl Assets {
    /// The binaries of `KUBEBUILDER_ASSETS` if it is set, else those in the user's cache.
    ///
    /// # Errors
    ///
    /// When a binary is missing; the text says in one line how to get it.
    pub fn find() -> Result<Self, AssetsError> {
        if let Some(directory) = env::var_os(ASSETS_VARIABLE).filter(|value| !value.is_empty()) {
            return Self::in_directory(directory.into());
        }
        let directory = Self::cache()?;
        match first_missing(&directory, &BINARIES) {
            None => Ok(Self { directory }),
            Some(_) => Err(AssetsError::NotBuilt { directory }),
        }
    }

    /// The directory in the user's cache where built binaries are kept, whether or not it exists.
    ///
    /// # Errors
    ///
    /// When the user has no cache directory.
    pub fn cache() -> Result<PathBuf, AssetsError> {
        Self::cache_of(KUBERNETES_VERSION)
    }

    /// The directory in the user's cache for the binaries of one version.
    ///
    /// # Errors
    ///
    /// When the user has no cache directory.
    pub fn cache_of(version: &str) -> Result<PathBuf, AssetsError> {
        Ok(cache_directory()?.join(version).join("bin"))
    }

    /// The directory with kubectl of one of [`OLDER_KUBECTLS`].
    ///
    /// # Errors
    ///
    /// When it is not built.
    pub fn older_kubectl(version: &str) -> Result<PathBuf, AssetsError> {
        let directory = Self::cache_of(version)?;
        match first_missing(&directory, &[KUBECTL]) {
            None => Ok(directory),
            Some(_) => Err(AssetsError::NotBuilt { directory }),
        }
    }

    /// Binary distributions of these assets carry no controller manager, so it may be missing.
    fn in_directory(directory: PathBuf) -> Result<Self, AssetsError> {
        match first_missing(&directory, &[ETCD, APISERVER, KUBECTL]) {
            None => Ok(Self { directory }),
            Some(binary) => Err(AssetsError::Incomplete { directory, binary }),
        }
    }

    /// The directory that holds the binaries; with it in `PATH`, `kubectl` is found.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The kubectl of the same version as the server.
    #[must_use]
    pub fn kubectl(&self) -> PathBuf {
        self.directory.join(KUBECTL)
    }

    pub(crate) fn etcd(&self) -> PathBuf {
        self.directory.join(ETCD)
    }

    pub(crate) fn apiserver(&self) -> PathBuf {
        self.directory.join(APISERVER)
    }

    /// The controllers of the same version as the server.
    ///
    /// # Errors
    ///
    /// When the directory has none.
    pub fn controller_manager(&self) -> Result<PathBuf, AssetsError> {
        let path = self.directory.join(CONTROLLER_MANAGER);
        match path.is_file() {
            true => Ok(path),
            false => Err(AssetsError::Incomplete {
                directory: self.directory.clone(),
                binary: CONTROLLER_MANAGER,
            }),
        }
    }
}

/// The directory in the user's cache that belongs to this crate: `windlass/envtest` in
/// `XDG_CACHE_HOME`, which is `~/.cache` unless it says otherwise.
///
/// # Errors
///
/// When neither variable is an absolute path.
pub fn cache_directory() -> Result<PathBuf, AssetsError> {
    let xdg = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    xdg.filter(|path| path.is_absolute())
        .or_else(home)
        .filter(|path| path.is_absolute())
        .map(|cache| cache.join("windlass").join("envtest"))
        .ok_or(AssetsError::NoCache)
}

fn first_missing(directory: &Path, binaries: &[&'static str]) -> Option<&'static str> {
    binaries
        .iter()
        .copied()
        .find(|binary| !directory.join(binary).is_file())
}
