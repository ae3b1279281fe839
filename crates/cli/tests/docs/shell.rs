//! The shell blocks of each page, run one after the other in a directory of their own, as a reader
//! would in a clone of the repository.
//!
//! A reader runs `up` in a terminal of its own; here it goes to the background. What builds or
//! tests the workspace was done before, so `cargo` is a stand-in that knows the commands of the
//! pages and refuses all others.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use windlass_envtest::{Assets, skip};

use super::markdown::{Block, blocks};
use super::{pages, root};

/// `up` goes to the background. The real binary is beside the page.
const WINDLASS: &str = "#!/bin/sh
case \"$1\" in
    up) exec \"$REAL_WINDLASS\" \"$@\" --detach ;;
    *) exec \"$REAL_WINDLASS\" \"$@\" ;;
esac
";

/// The commands of cargo that are on the pages.
const CARGO: &str = "#!/bin/sh
case \"$*\" in
    'run --release -- '*) shift 3; exec windlass \"$@\" ;;
    'install --path crates/cli') ;;
    'test --workspace' | 'build --release') ;;
    'new website' | 'test' | 'run') ;;
    'run -p windlass --example '*) test -e \"crates/windlass/examples/$5.rs\" ;;
    'xtask envtest build' | 'xtask envtest run -- cargo test' | 'xtask docs' | 'xtask tidy') ;;
    'test --manifest-path tests/operator/Cargo.toml') ;;
    'run --manifest-path tests/operator/Cargo.toml -- '*) ;;
    'bench -p windlass-runtime --bench latency') ;;
    *) echo \"cargo $*: not a command that the pages may use\" >&2; exit 1 ;;
esac
";

/// Ends the cluster of the page, if it has one, with the code of the blocks.
const END: &str = "
end() { code=$?; test ! -e .windlass || windlass down >/dev/null 2>&1; exit $code; }
trap end EXIT
set -e
";

fn script(blocks: &[Block]) -> String {
    let mut script = END.to_owned();
    for block in blocks {
        script += &format!("echo '--- line {}'\n{}", block.line, block.text);
    }
    script
}

fn write_program(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn run(page: &Path) {
    let text = std::fs::read_to_string(page).unwrap();
    let mut blocks = blocks(&text);
    blocks.retain(|block| block.language == "sh");
    let kubectl = Assets::find().ok().map(|assets| assets.kubectl());
    let is_required = std::env::var_os("WINDLASS_REQUIRE_ENVTEST").is_some();
    assert!(kubectl.is_some() || !is_required, "there is no kubectl");
    let is_needed = blocks.iter().any(|block| block.text.contains("kubectl"));
    if blocks.is_empty() {
        return;
    }
    if is_needed && kubectl.is_none() {
        skip(&format_args!("{} needs kubectl", page.display()));
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let programs = place.join("programs");
    std::fs::create_dir(&programs).unwrap();
    write_program(&programs.join("windlass"), WINDLASS);
    write_program(&programs.join("cargo"), CARGO);
    for name in ["crates", "deploy", "tests"] {
        symlink(root().join(name), place.join(name)).unwrap();
    }
    if let Some(kubectl) = &kubectl {
        symlink(kubectl, programs.join("kubectl")).unwrap();
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", &script(&blocks)])
        .current_dir(place)
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("REAL_WINDLASS", env!("CARGO_BIN_EXE_windlass"))
        .env("HOME", place)
        .env_remove("KUBECONFIG")
        .env_remove("RUST_LOG")
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{}: {}\n{out}\n{err}",
        page.display(),
        output.status
    );
}

#[test]
fn the_shell_blocks_of_every_page_work() {
    for page in pages() {
        run(&page);
    }
}
