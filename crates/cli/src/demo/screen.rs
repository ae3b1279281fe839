//! Where the demonstration is shown: a terminal, on which the lines are drawn again in their
//! place, or a file or pipe, which gets one line for each change.

use std::io::{IsTerminal as _, Write as _};

use super::view::Line;

/// The size of a terminal that does not tell.
const SIZE: (usize, usize) = (80, 24);

/// Up by some lines, and clear what is below.
fn back(lines: usize) -> String {
    match lines {
        0 => String::new(),
        lines => format!("\x1b[{lines}A\x1b[J"),
    }
}

/// What was shown last, and how the next is shown.
#[derive(Debug)]
pub(super) enum Screen {
    /// How many lines are to be drawn over.
    Terminal { drawn: usize },
    /// The lines so far, and whether the text after them was written.
    Stream { shown: Vec<Line>, is_said: bool },
}

impl Screen {
    /// The standard output.
    pub(super) fn of_stdout() -> Self {
        match std::io::stdout().is_terminal() {
            true => Self::Terminal { drawn: 0 },
            false => Self::Stream {
                shown: Vec::new(),
                is_said: false,
            },
        }
    }

    /// Shows lines, and a text below them.
    pub(super) fn show(&mut self, lines: &[Line], after: Option<&str>) {
        let text = match self {
            Self::Terminal { drawn } => {
                let page = page(lines, after.unwrap_or_default(), size());
                let text = back(*drawn) + &page;
                *drawn = page.lines().count();
                text
            }
            Self::Stream { shown, is_said } => {
                let mut text = changes(shown, lines);
                *shown = lines.to_vec();
                if let (Some(after), false) = (after, *is_said) {
                    text += after;
                    *is_said = true;
                }
                text
            }
        };
        // The cluster is of use even if nobody looks.
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

/// The whole picture, no wider and no higher than the terminal: what does not fit could not be
/// drawn over.
fn page(lines: &[Line], after: &str, (width, height): (usize, usize)) -> String {
    let titles = lines.iter().map(|line| line.title.chars().count());
    let titles = titles.max().unwrap_or(0);
    let after: Vec<&str> = after.lines().collect();
    let room = height.saturating_sub(after.len() + 1);
    let mut page: Vec<String> = lines
        .iter()
        .map(|line| format!("{:<titles$}   {}", line.title, line.state))
        .collect();
    if page.len() > room {
        let more = page.len() - room.saturating_sub(1);
        page.truncate(room.saturating_sub(1));
        page.push(format!("and {more} more"));
    }
    page.extend(after.into_iter().map(str::to_owned));
    let cut = |line: &String| line.chars().take(width).collect::<String>() + "\n";
    page.iter().map(cut).collect()
}

/// One line for each object that came, changed or went.
fn changes(before: &[Line], now: &[Line]) -> String {
    let mut text = String::new();
    for line in now.iter().filter(|line| !before.contains(line)) {
        text += &format!("{} {}\n", line.title.trim_start(), line.state);
    }
    let is_gone = |line: &&Line| !now.iter().any(|left| left.title == line.title);
    for line in before.iter().filter(is_gone) {
        text += &format!("{} is gone\n", line.title.trim_start());
    }
    text
}

fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            (usize::from(size.ws_col), usize::from(size.ws_row))
        }
        _ => SIZE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(title: &str, state: &str) -> Line {
        Line {
            title: title.to_owned(),
            state: state.to_owned(),
        }
    }

    #[test]
    fn a_stream_gets_one_line_for_each_change() {
        let before = [
            line("deployment/a", "0/1 ready"),
            line("  pod/x", "Pending"),
        ];
        let now = [line("deployment/a", "0/1 ready"), line("  pod/y", "Ready")];
        assert_eq!(changes(&before, &now), "pod/y Ready\npod/x is gone\n");
    }

    #[test]
    fn a_page_is_cut_to_the_terminal() {
        let lines = [line("a", "1"), line("bb", "2"), line("c", "3")];
        assert_eq!(page(&lines, "", SIZE), "a    1\nbb   2\nc    3\n");
        assert_eq!(page(&lines, "", (4, 3)), "a   \nand \n");
        assert_eq!(page(&lines, "end\n", (80, 4)), "a    1\nand 2 more\nend\n");
    }
}
