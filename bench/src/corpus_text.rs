//! Prints the corpus for programs in other languages.

use std::io::{BufWriter, Write, stdout};

use anyhow::bail;
use windlass_bench::corpus::Corpus;

/// Prints the corpus in one of three forms: `list` is a PodList; `load` has one line per pod with
/// its key, the body of its create and, if it is running, its status, separated by tabs; `keys`
/// has one key per line.
pub(crate) fn print(corpus: &Corpus, form: &str) -> anyhow::Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    let write_line = match form {
        "list" => {
            let mut text = Vec::new();
            corpus.write_list(&mut text);
            out.write_all(&text)?;
            return Ok(out.flush()?);
        }
        "load" => write_load_line,
        "keys" => Corpus::write_key,
        _ => bail!("the corpus has no form {form:?}; it has list, load and keys"),
    };
    let mut line = Vec::new();
    for index in 0..corpus.len() {
        line.clear();
        write_line(corpus, index, &mut line);
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(out.flush()?)
}

fn write_load_line(corpus: &Corpus, index: usize, line: &mut Vec<u8>) {
    corpus.write_key(index, line);
    line.push(b'\t');
    corpus.write_create(index, line);
    if Corpus::is_running(index) {
        line.push(b'\t');
        corpus.write_status(index, line);
    }
}
