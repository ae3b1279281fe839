//! File names say their subject.

use std::fs;
use std::path::Path;

use anyhow::Context;

/// Words that tell how a file came to be, not what is in it.
const REFUSED: [&str; 5] = ["hard", "misc", "more", "odd", "rare"];

/// Files that still have such a name. Take a line out with the file.
const KNOWN: [&str; 1] = ["more_cells.rs"];

/// Refuses files and directories whose name begins with a word of [`REFUSED`].
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut breaches = Vec::new();
    for top in ["bench", "crates", "docs", "xtask"] {
        check_directory(root, &root.join(top), &mut breaches)?;
    }
    breaches.sort();
    Ok(breaches)
}

fn check_directory(root: &Path, path: &Path, breaches: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(path).with_context(|| path.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(word) = refused_word(&name) {
            let shown = path.strip_prefix(root).unwrap_or(&path).display();
            breaches.push(format!(
                "{shown}: `{word}` says nothing about the content; name the file after its subject"
            ));
        }
        if path.is_dir() && name != "target" {
            check_directory(root, &path, breaches)?;
        }
    }
    Ok(())
}

fn refused_word(name: &str) -> Option<&'static str> {
    if KNOWN.contains(&name) {
        return None;
    }
    let first = name.split(['_', '-', '.']).next().unwrap_or(name);
    REFUSED.into_iter().find(|word| *word == first)
}

#[test]
fn a_name_without_a_subject_is_refused() {
    assert_eq!(refused_word("misc.rs"), Some("misc"));
    assert_eq!(refused_word("odd_pods.rs"), Some("odd"));
    assert_eq!(refused_word("rare"), Some("rare"), "a directory");
    assert_eq!(refused_word("inter_pod_affinity.rs"), None);
    assert_eq!(refused_word("hardware.rs"), None);
    assert_eq!(refused_word("more_cells.rs"), None, "known");
}
