//! What goes wrong, in upstream's words.

use std::fmt;

/// One finding of the parser or the checker, not yet tied to the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Issue {
    at: usize,
    message: String,
}

impl Issue {
    pub(crate) fn new(at: usize, message: String) -> Self {
        Self { at, message }
    }
}

/// Why an expression is not accepted.
///
/// Prints as upstream does: each finding with its place, the line and a mark below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    text: String,
}

impl CompileError {
    pub(crate) fn new(source: &str, mut issues: Vec<Issue>) -> Self {
        issues.sort_by_key(|issue| issue.at);
        let findings: Vec<String> = issues.iter().map(|issue| display(source, issue)).collect();
        Self {
            text: findings.join("\n"),
        }
    }
}

fn display(source: &str, issue: &Issue) -> String {
    let at = issue.at.min(source.len());
    let before = &source[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = source[line_start..].lines().next().unwrap_or("");
    let row = before.matches('\n').count() + 1;
    let column = before[line_start..].chars().count();
    let message = &issue.message;
    if line.is_empty() && source.is_empty() {
        return format!("ERROR: <input>:1:1: {message}\n | \n | ^");
    }
    format!(
        "ERROR: <input>:{row}:{}: {message}\n | {}\n | {}^",
        column + 1,
        line.replace('\t', " "),
        ".".repeat(column)
    )
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for CompileError {}

/// Why an evaluation has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The expression failed on this input, for example `no such key: x`.
    #[error("{0}")]
    Failed(String),
    /// One evaluation cost more than it may.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimit,
    /// The evaluations of one object together cost more than they may.
    #[error(
        "validation failed due to running out of cost budget, no further validation rules will be run"
    )]
    Budget,
    /// The caller asked to stop.
    #[error("operation interrupted")]
    Interrupted,
}

impl EvalError {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    pub(crate) fn no_such_overload() -> Self {
        Self::failed("no such overload")
    }

    pub(crate) fn overflow() -> Self {
        Self::failed("return error for overflow")
    }

    pub(crate) fn no_such_key(key: impl fmt::Display) -> Self {
        Self::failed(format!("no such key: {key}"))
    }

    /// Whether `&&` and `||` may look past this error.
    pub(crate) fn is_absorbable(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}
