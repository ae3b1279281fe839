//! The reference of the book: every command and flag, every controller, every metric, written from
//! the code. `cargo xtask docs` writes the pages; without it these tests compare them.

mod commands;
mod metrics;

use std::path::{Path, PathBuf};

/// Writes the pages in place of comparing them.
const UPDATE: &str = "UPDATE_EXPECT";

/// At the head of each page.
const NOTE: &str = "<!-- Written by `cargo xtask docs`. -->\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares a page of the reference with what the code says.
fn check(name: &str, text: &str) {
    let path = root().join("docs/src/reference").join(name);
    let text = NOTE.to_owned() + text;
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        page == text,
        "{} is not up to date; run `cargo xtask docs`",
        path.display()
    );
}

#[test]
fn the_page_of_commands_is_up_to_date() {
    check("commands.md", &commands::page());
}

#[test]
fn the_page_of_controllers_is_up_to_date() {
    let mut text = "# Controllers\nNames for `--controllers`. `*` is all of them in `windlass up`, \
        and those marked below in `windlass controllers`.\n\n| name | part of `*` on any cluster |\n|---|---|\n"
        .to_owned();
    for entry in windlass_controllers::catalog::ALL {
        let mark = if entry.is_default { "yes" } else { "no" };
        text += &format!("| `{}` | {mark} |\n", entry.name);
    }
    check("controllers.md", &text);
}

#[test]
fn the_page_of_metrics_is_up_to_date() {
    check("metrics.md", &metrics::page(&root().join("crates")));
}
