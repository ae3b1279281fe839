//! As much of Markdown as the pages use.

/// A block of code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The line of its fence, from one on.
    pub(crate) line: usize,
    /// The first word after the fence: `sh`, `rust`, `text`.
    pub(crate) language: String,
    pub(crate) text: String,
}

/// The fenced blocks of a page.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_inside = false;
    for (index, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), is_inside) {
            (Some(info), false) => {
                let language = info.split([',', ' ']).next().unwrap_or_default();
                blocks.push(Block {
                    line: index + 1,
                    language: language.to_owned(),
                    text: String::new(),
                });
                is_inside = true;
            }
            (Some(_), true) => is_inside = false,
            (None, true) => {
                let block = blocks.last_mut().unwrap();
                block.text += line;
                block.text += "\n";
            }
            (None, false) => {}
        }
    }
    assert!(!is_inside, "a block is not closed");
    blocks
}

/// The links of a page to files beside it.
pub(crate) fn links(page: &str) -> Vec<&str> {
    let targets = page.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split(')').next());
    targets.filter(|link| !link.contains("://")).collect()
}

#[test]
fn blocks_have_a_language_and_a_place() {
    let page = "a\n```sh\nls\nls -l\n```\n```rust,no_run\nx\n```\n";
    let expected = [(2, "sh", "ls\nls -l\n"), (6, "rust", "x\n")];
    for (block, (line, language, text)) in blocks(page).iter().zip(expected) {
        assert_eq!(
            (block.line, block.language.as_str(), block.text.as_str()),
            (line, language, text)
        );
    }
    assert_eq!(links("[a](b.md) and [c](https://d)"), ["b.md"]);
}
