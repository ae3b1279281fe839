//! Tables in columns.

use windlass_core::Doc;

/// Between two columns.
const GAP: usize = 3;

/// Rows under headings. Rows can be added later, to be printed below those before them.
#[derive(Debug, Default)]
pub(crate) struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    /// The columns of the server that are shown.
    shown: Vec<usize>,
    widths: Vec<usize>,
}

impl Table {
    /// A table of the program's own.
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self {
            headings: headings.iter().map(|&heading| heading.to_owned()).collect(),
            ..Self::default()
        }
    }

    /// Adds a row of the program's own.
    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Takes the rows of a table that a server made. `name` writes the first cell, which the
    /// server fills with the name alone.
    pub(crate) fn take(
        &mut self,
        table: &Doc,
        is_wide: bool,
        with_namespace: bool,
        name: impl Fn(&str) -> String,
    ) {
        let columns = table.at("/columnDefinitions").items();
        if !columns.is_empty() {
            self.take_columns(columns, is_wide, with_namespace);
        }
        for row in table.at("/rows").items() {
            let mut cells = Vec::new();
            if with_namespace {
                cells.push(row.str_at("/object/metadata/namespace").to_owned());
            }
            for (position, &column) in self.shown.iter().enumerate() {
                let text = cell(row.at("/cells").item(column));
                cells.push(if position == 0 { name(&text) } else { text });
            }
            self.rows.push(cells);
        }
    }

    fn take_columns(&mut self, columns: &[Doc], is_wide: bool, with_namespace: bool) {
        let is_shown = |column: &Doc| is_wide || column.at("/priority").as_i64().unwrap_or(0) == 0;
        self.shown = (0..columns.len())
            .filter(|&at| is_shown(&columns[at]))
            .collect();
        let names = self.shown.iter().map(|&at| columns[at].str_at("/name"));
        let namespace = with_namespace.then_some("Namespace");
        self.headings = namespace
            .into_iter()
            .chain(names)
            .map(str::to_uppercase)
            .collect();
    }

    /// Whether there is nothing to show.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows that were not written yet, under their headings the first time.
    pub(crate) fn write(&mut self) -> String {
        let is_first = self.widths.is_empty();
        let rows = self.write_rows();
        let mut text = String::new();
        if is_first {
            self.line(&mut text, &self.headings);
        }
        text + &rows
    }

    /// The rows that were not written yet.
    pub(crate) fn write_rows(&mut self) -> String {
        self.widen();
        let mut text = String::new();
        for row in &self.rows {
            self.line(&mut text, row);
        }
        self.rows.clear();
        text
    }

    /// Columns only grow, so that what is written later stays below what was written before.
    fn widen(&mut self) {
        self.widths.resize(self.headings.len(), 0);
        for row in self.rows.iter().chain([&self.headings]) {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
    }

    fn line(&self, text: &mut String, cells: &[String]) {
        let last = cells.len().saturating_sub(1);
        for (at, (cell, width)) in cells.iter().zip(&self.widths).enumerate() {
            text.push_str(cell);
            if at < last {
                let gap = width - cell.chars().count() + GAP;
                text.extend(std::iter::repeat_n(' ', gap));
            }
        }
        text.push('\n');
    }
}

/// A cell in words. Text from a server must not reach the terminal as control characters.
fn cell(value: Option<&Doc>) -> String {
    let Some(value) = value else {
        return String::new();
    };
    let text = match value.as_str() {
        Some(text) => text.to_owned(),
        None if value.is_null() => "<none>".to_owned(),
        None => String::from_utf8_lossy(&value.to_json()).into_owned(),
    };
    printable(&text)
}

/// Text without control characters.
pub(crate) fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    fn pods() -> Doc {
        doc!({
            "columnDefinitions": [
                { "name": "Name", "priority": 0 },
                { "name": "Ready", "priority": 0 },
                { "name": "IP", "priority": 1 },
            ],
            "rows": [
                { "cells": ["web", "1/1"],
                  "object": { "metadata": { "namespace": "default" } } },
                { "cells": ["database", "0/1", "10.0.0.1"],
                  "object": { "metadata": { "namespace": "default" } } },
            ],
        })
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::default();
        table.take(&pods(), false, false, str::to_owned);
        assert_eq!(
            table.write(),
            "NAME       READY\nweb        1/1\ndatabase   0/1\n"
        );
    }

    #[test]
    fn wide_tables_show_more_and_namespaces_stand_first() {
        let mut table = Table::default();
        table.take(&pods(), true, true, |name| format!("pod/{name}"));
        assert_eq!(
            table.write(),
            "NAMESPACE   NAME           READY   IP\n\
             default     pod/web        1/1     \n\
             default     pod/database   0/1     10.0.0.1\n"
        );
    }

    #[test]
    fn later_rows_stand_below_the_first() {
        let mut table = Table::new(&["A", "B"]);
        table.push(vec!["long".to_owned(), "x".to_owned()]);
        assert_eq!(table.write(), "A      B\nlong   x\n");
        table.push(vec!["s".to_owned(), "y".to_owned()]);
        assert_eq!(table.write(), "s      y\n");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\nc"), "a [31mb c");
    }
}
