//! Builds the binaries of the control plane, and kubectl of older versions.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context, ensure};
use windlass_envtest::{Assets, KUBERNETES_VERSION, OLDER_KUBECTLS};

/// The Go module that pins every version. Those of older versions are in directories of it.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/envtest");

/// A main package: its path, the name that Go gives to its binary and the name it should have.
type Package = (&'static str, &'static str, &'static str);

const PACKAGES: [Package; 4] = [
    ("go.etcd.io/etcd/server/v3", "server", "etcd"),
    (
        "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-apiserver",
        "kube-apiserver",
    ),
    (
        "k8s.io/kubernetes/cmd/kube-controller-manager",
        "kube-controller-manager",
        "kube-controller-manager",
    ),
    KUBECTL,
];

const KUBECTL: Package = ("k8s.io/kubernetes/cmd/kubectl", "kubectl", "kubectl");

/// The packages whose variables say which version a Kubernetes binary is.
const VERSION_PACKAGES: [&str; 2] = [
    "k8s.io/component-base/version",
    "k8s.io/client-go/pkg/version",
];

/// What one Go module builds of one version of Kubernetes.
struct Set {
    version: &'static str,
    module: PathBuf,
    packages: &'static [Package],
}

/// The control plane first: it is what most tests need.
fn sets() -> Vec<Set> {
    let newest = Set {
        version: KUBERNETES_VERSION,
        module: MODULE.into(),
        packages: &PACKAGES,
    };
    let older = OLDER_KUBECTLS.iter().map(|version| Set {
        version,
        module: Path::new(MODULE).join(format!("kubectl-{}", minor(version))),
        packages: &[KUBECTL],
    });
    std::iter::once(newest).chain(older).collect()
}

/// The version without its last number.
fn minor(version: &str) -> &str {
    version.rsplit_once('.').map_or(version, |(minor, _)| minor)
}

/// Builds into the user's cache, unless everything is there.
pub(super) fn run() -> anyhow::Result<ExitCode> {
    for set in sets() {
        set.build()?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Set {
    fn build(&self) -> anyhow::Result<()> {
        let directory = Assets::cache_of(self.version)?;
        if !self.is_in(&directory) {
            ensure!(
                has_go(),
                "the control plane is built with Go, and there is no `go` in PATH"
            );
            eprintln!("building {self}, once; this takes minutes");
            fs::create_dir_all(&directory)?;
            let scratch = directory.with_file_name(format!("bin.{}.partial", std::process::id()));
            let outcome = self
                .go_build(&scratch)
                .and_then(|()| self.install(&scratch, &directory));
            // The failure to report is that of the build, so that of the removal is dropped.
            let _ = fs::remove_dir_all(&scratch);
            outcome?;
        }
        eprintln!("{self} is in {}", directory.display());
        Ok(())
    }

    fn is_in(&self, directory: &Path) -> bool {
        self.packages
            .iter()
            .all(|(_, _, name)| directory.join(name).is_file())
    }

    /// One build for all, because they share most packages.
    fn go_build(&self, output: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(output)?;
        let status = Command::new("go")
            .current_dir(&self.module)
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .args([
                "build",
                "-mod=readonly",
                "-buildvcs=false",
                "-trimpath",
                "-ldflags",
            ])
            .arg(linker_flags(self.version))
            .arg("-o")
            // A slash, so that it is a directory also for a single binary.
            .arg(output.join(""))
            .args(self.packages.iter().map(|(package, _, _)| package))
            .status()
            .context("cannot run go")?;
        ensure!(status.success(), "go build failed: {status}");
        Ok(())
    }

    /// Moves each binary to its place in one step, so that a half-written one is never found.
    fn install(&self, scratch: &Path, directory: &Path) -> anyhow::Result<()> {
        for (_, built, name) in self.packages {
            fs::rename(scratch.join(built), directory.join(name))
                .with_context(|| format!("cannot install {name}"))?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Set {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.packages {
            [(_, _, name)] => name,
            _ => "Kubernetes",
        };
        write!(f, "{what} {}", self.version)
    }
}

fn has_go() -> bool {
    let version = Command::new("go")
        .arg("version")
        .stdout(Stdio::null())
        .status();
    version.is_ok_and(|status| status.success())
}

/// Leaves out symbols that nobody debugs here, and sets the version, which Kubernetes' own build
/// would take from its repository.
fn linker_flags(version: &str) -> String {
    let mut numbers = version.split('.');
    let (major, minor) = (numbers.next().unwrap_or(""), numbers.next().unwrap_or(""));
    let versions = VERSION_PACKAGES.map(|package| {
        format!(
            "-X {package}.gitVersion=v{version} -X {package}.gitMajor={major} \
             -X {package}.gitMinor={minor} -X {package}.gitTreeState=archive"
        )
    });
    format!("-s -w {}", versions.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_envtest::BINARIES;

    fn text(set: &Set) -> String {
        fs::read_to_string(set.module.join("go.mod")).unwrap()
    }

    #[test]
    fn go_modules_pin_the_versions_that_are_looked_for() {
        for set in sets() {
            let line = format!("k8s.io/kubernetes v{}", set.version);
            assert!(text(&set).contains(&line), "no go.mod requires {line}");
        }
    }

    #[test]
    fn every_binary_is_built_by_a_package_that_its_go_module_names() {
        assert_eq!(PACKAGES.map(|(_, _, name)| name), BINARIES);
        for set in sets() {
            for (package, _, _) in set.packages {
                let is_tool = text(&set).lines().any(|line| {
                    let line = line.trim_start_matches("tool").trim();
                    line == *package
                });
                assert!(is_tool, "{package} is not a tool of {set}");
            }
        }
    }
}
