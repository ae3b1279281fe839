//! Doc comments start with the thing that they document.
//!
//! "What was worked out before" hides the thing; "A bounded memoization cache" names it. The first
//! word of a doc comment is none of [`REFUSED`], in the crates of [`CHECKED`].

use std::fs;
use std::path::Path;

use anyhow::Context;

use super::text::sources;

const REFUSED: [&str; 9] = [
    "How", "That", "What", "Where", "Whether", "Which", "Who", "Whose", "Why",
];

/// The crates whose comments have been rewritten. Add a crate when its comments are done.
const CHECKED: [&str; 4] = ["atlas", "cache", "client", "core"];

pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut breaches = Vec::new();
    for name in CHECKED {
        for path in sources(&root.join("crates").join(name))? {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let shown = path.strip_prefix(root).unwrap_or(&path).display();
            breaches.extend(riddles(&text).into_iter().map(|(line, word)| {
                format!("{shown}:{line}: a doc comment starts with `{word}`; start with the thing")
            }));
        }
    }
    Ok(breaches)
}

/// The lines of doc comments that start with a refused word.
fn riddles(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let mut is_inside = false;
    for (index, line) in text.lines().enumerate() {
        let words = doc_comment(line);
        if let (Some(words), false) = (words, is_inside) {
            let first = words.split(|one: char| !one.is_alphanumeric()).next();
            let refused = REFUSED.into_iter().find(|word| Some(*word) == first);
            found.extend(refused.map(|word| (index + 1, word)));
        }
        is_inside = words.is_some();
    }
    found
}

fn doc_comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line.strip_prefix("///").or(line.strip_prefix("//!"))?;
    Some(rest.trim_start())
}

#[test]
fn a_doc_comment_that_starts_with_a_question_is_found() {
    assert_eq!(riddles("//! What was worked out before."), [(1, "What")]);
    assert_eq!(
        riddles("fn f() {}\n    /// Whether it is so.\n"),
        [(2, "Whether")]
    );
    assert_eq!(riddles("/// Why.\npub reason: String,"), [(1, "Why")]);
    assert!(riddles("/// The reason.\n///\n/// What follows may say more.").is_empty());
    assert!(riddles("// What a plain comment says.\n/// Whatever.").is_empty());
}
