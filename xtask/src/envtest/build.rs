//! Builds the binaries of the control plane.

use std::{
    fs,
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context, ensure};
use windlass_envtest::{Assets, BINARIES, KUBERNETES_VERSION};

/// The Go module that pins every version.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/envtest");

/// The main packages, each with the name that Go gives to its binary and the name it should have.
const PACKAGES: [(&str, &str, &str); 4] = [
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
    ("k8s.io/kubernetes/cmd/kubectl", "kubectl", "kubectl"),
];

/// The packages whose variables say which version a Kubernetes binary is.
const VERSION_PACKAGES: [&str; 2] = [
    "k8s.io/component-base/version",
    "k8s.io/client-go/pkg/version",
];

/// Builds into the user's cache, unless everything is there.
pub(super) fn run() -> anyhow::Result<ExitCode> {
    let directory = Assets::cache()?;
    if BINARIES
        .iter()
        .all(|binary| directory.join(binary).is_file())
    {
        eprintln!(
            "Kubernetes {KUBERNETES_VERSION} is in {}",
            directory.display()
        );
        return Ok(ExitCode::SUCCESS);
    }
    ensure!(
        has_go(),
        "the control plane is built with Go, and there is no `go` in PATH"
    );
    eprintln!("building Kubernetes {KUBERNETES_VERSION}, once; this takes minutes");
    fs::create_dir_all(&directory)?;
    let scratch = directory.with_file_name(format!("bin.{}.partial", std::process::id()));
    let outcome = go_build(&scratch).and_then(|()| install(&scratch, &directory));
    // The failure to report is that of the build, so that of the removal is dropped.
    let _ = fs::remove_dir_all(&scratch);
    outcome?;
    eprintln!(
        "Kubernetes {KUBERNETES_VERSION} is in {}",
        directory.display()
    );
    Ok(ExitCode::SUCCESS)
}

fn has_go() -> bool {
    let version = Command::new("go")
        .arg("version")
        .stdout(Stdio::null())
        .status();
    version.is_ok_and(|status| status.success())
}

/// One build for all four, because they share most packages.
fn go_build(output: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(output)?;
    let status = Command::new("go")
        .current_dir(MODULE)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .args([
            "build",
            "-mod=readonly",
            "-buildvcs=false",
            "-trimpath",
            "-ldflags",
        ])
        .arg(linker_flags())
        .arg("-o")
        .arg(output)
        .args(PACKAGES.map(|(package, _, _)| package))
        .status()
        .context("cannot run go")?;
    ensure!(status.success(), "go build failed: {status}");
    Ok(())
}

/// Leaves out symbols that nobody debugs here, and sets the version, which Kubernetes' own build
/// would take from its repository.
fn linker_flags() -> String {
    let mut numbers = KUBERNETES_VERSION.split('.');
    let (major, minor) = (numbers.next().unwrap_or(""), numbers.next().unwrap_or(""));
    let versions = VERSION_PACKAGES.map(|package| {
        format!(
            "-X {package}.gitVersion=v{KUBERNETES_VERSION} -X {package}.gitMajor={major} \
             -X {package}.gitMinor={minor} -X {package}.gitTreeState=archive"
        )
    });
    format!("-s -w {}", versions.join(" "))
}

/// Moves each binary to its place in one step, so that a half-written one is never found.
fn install(scratch: &Path, directory: &Path) -> anyhow::Result<()> {
    for (_, built, name) in PACKAGES {
        fs::rename(scratch.join(built), directory.join(name))
            .with_context(|| format!("cannot install {name}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_module_pins_the_version_that_is_looked_for() {
        let module = fs::read_to_string(Path::new(MODULE).join("go.mod")).unwrap();
        let line = format!("k8s.io/kubernetes v{KUBERNETES_VERSION}");
        assert!(module.contains(&line), "go.mod does not require {line}");
    }

    #[test]
    fn every_binary_is_built_by_a_package_that_the_go_module_names() {
        assert_eq!(PACKAGES.map(|(_, _, name)| name), BINARIES);
        let module = fs::read_to_string(Path::new(MODULE).join("go.mod")).unwrap();
        for (package, _, _) in PACKAGES {
            assert!(
                module.contains(&format!("\t{package}\n")),
                "{package} is not a tool"
            );
        }
    }
}
