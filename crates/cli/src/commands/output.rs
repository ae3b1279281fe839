//! The forms in which objects are printed.

use std::io::Write as _;

use clap::ValueEnum;
use windlass_core::{Doc, Prune, doc};

/// How objects are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// The columns that everybody looks at.
    #[default]
    Table,
    /// More columns.
    Wide,
    /// YAML.
    Yaml,
    /// JSON.
    Json,
    /// `TYPE/NAME` only.
    Name,
}

impl Output {
    /// Whether the objects themselves are needed.
    pub(crate) fn is_whole(self) -> bool {
        matches!(self, Self::Yaml | Self::Json)
    }
}

/// Prints text. A reader that has seen enough, such as `head`, is no error.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).is_err() || out.flush().is_err() {
        #[expect(clippy::exit, reason = "nobody reads what would follow")]
        std::process::exit(0);
    }
}

/// Objects as one text: one as it is, several as a list.
pub(crate) fn whole(objects: &[Doc], is_list: bool, output: Output) -> anyhow::Result<String> {
    let prune = Prune::managed_fields();
    let objects: Vec<Doc> = objects.iter().map(|object| prune.apply(object)).collect();
    let object = match objects.as_slice() {
        [object] if !is_list => object.clone(),
        objects => doc!({
            "apiVersion": "v1",
            "kind": "List",
            "items": Doc::from(objects.to_vec()),
            "metadata": { "resourceVersion": "" },
        }),
    };
    Ok(match output {
        Output::Json => object.to_json_pretty() + "\n",
        _ => object.to_yaml()?,
    })
}
