//! Ordinary projects of operator authors in other languages, on `windlass test` and on the assets.
//!
//! Where a language is missing its test says so and passes, unless `WINDLASS_REQUIRE_CLIENTS` is
//! set.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::run;

/// True if a language is there; if it must be, its absence fails the test.
fn is_there(program: &str, version: &str) -> bool {
    let is_there = Command::new(program).arg(version).output();
    let is_there = is_there.is_ok_and(|output| output.status.success());
    let is_required = std::env::var_os("WINDLASS_REQUIRE_CLIENTS").is_some();
    assert!(is_there || !is_required, "{program} is missing");
    if !is_there {
        windlass_envtest::skip(&format_args!("{program} is missing"));
    }
    is_there
}

/// The directory of a project.
fn project(name: &str) -> PathBuf {
    let projects = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients");
    projects.join(name).canonicalize().unwrap()
}

/// A directory that outlives the test, so that what was installed once is installed no more.
fn built(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}

/// The definitions that the suites use.
fn definitions() -> String {
    let path = project("go-envtest").join("crds");
    path.to_str().unwrap().to_owned()
}

#[test]
fn exploring_a_go_controller_finds_the_duplicate_after_a_lost_answer() {
    if !is_there("go", "version") {
        return;
    }
    let program = built("go-explore");
    let program = program.to_str().unwrap();
    let mut build = Command::new("go");
    build.current_dir(project("go-explore"));
    succeed(build.args(["build", "-o", program]));
    let flags = ["test", "--explore", "--agent", "go-explore"];
    let careless = run(&[&flags[..], &["--", program]].concat());
    assert_eq!(careless.code, 1, "{careless:?}");
    let found = "BROKEN by lose at create configmaps in default #2: left 3 ConfigMap in default, 2 \
                 without faults\n";
    assert!(careless.stdout.contains(found), "{careless:?}");
    let careful = run(&[&flags[..], &["--", program, "careful"]].concat());
    assert_eq!(careful.code, 0, "{careful:?}");
}

#[test]
fn an_envtest_project_in_go_passes_unmodified() {
    if !is_there("go", "version") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    run(&["assets", directory.path().to_str().unwrap()]).succeed();
    let mut test = Command::new("go");
    test.current_dir(project("go-envtest"));
    test.args(["test", "-count=1", "./..."]);
    test.env("KUBEBUILDER_ASSETS", directory.path());
    succeed(test.env_remove("USE_EXISTING_CLUSTER"));
}

#[test]
fn a_suite_of_a_kopf_operator_passes_unmodified() {
    if !is_there("python3", "--version") {
        return;
    }
    let (project, environment) = (project("python"), built("python-kopf"));
    let python = environment.join("bin/python");
    let requirements = project.join("requirements.txt");
    let (stamp, wanted) = (
        environment.join("installed"),
        std::fs::read(&requirements).unwrap(),
    );
    if !std::fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        let mut make = Command::new("python3");
        succeed(make.args(["-m", "venv"]).arg(&environment));
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--requirement"]);
        succeed(install.arg(&requirements));
        std::fs::write(&stamp, wanted).unwrap();
    }
    let words = [
        "test",
        "--crds",
        &definitions(),
        "--",
        python.to_str().unwrap(),
    ];
    let pytest = ["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"];
    let outcome = run(&[&words[..], &pytest, &[project.to_str().unwrap()]].concat());
    assert_eq!(outcome.code, 0, "{outcome:?}");
}

#[test]
fn a_suite_with_the_client_for_node_passes_unmodified() {
    if !is_there("npm", "--version") {
        return;
    }
    let (project, copy) = (project("node"), built("node-client"));
    std::fs::create_dir_all(&copy).unwrap();
    for name in ["package.json", "widgets.test.mjs"] {
        std::fs::copy(project.join(name), copy.join(name)).unwrap();
    }
    let mut install = Command::new("npm");
    install
        .current_dir(&copy)
        .args(["install", "--no-audit", "--no-fund", "--no-package-lock"]);
    succeed(install.arg("--prefer-offline"));
    let words = ["test", "--crds", &definitions(), "--", "npm", "--prefix"];
    let outcome = run(&[&words[..], &[copy.to_str().unwrap(), "test"]].concat());
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("# pass 3\n"), "{outcome:?}");
}
