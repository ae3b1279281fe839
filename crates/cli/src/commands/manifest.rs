//! Objects from files, directories and standard input.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use windlass_core::Doc;

/// What a file may hold; more is not a manifest.
const FILE_BYTES_LIMIT: u64 = 64 << 20;

/// An object and the place it was read from.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    pub(crate) object: Doc,
    pub(crate) source: String,
}

/// All objects of some files, of the YAML and JSON files of directories, and of standard input
/// where a file is called `-`.
pub(crate) fn read(files: &[PathBuf]) -> anyhow::Result<Vec<Manifest>> {
    let mut manifests = Vec::new();
    for file in files {
        for file in expanded(file)? {
            let (text, source) = text(&file)?;
            let objects = Doc::parse_yaml(&text).with_context(|| match tab(&text) {
                Some(line) => format!("{source}: line {line} is indented by a tab; use spaces"),
                None => source.clone(),
            })?;
            for object in objects {
                push(&mut manifests, object, &source)?;
            }
        }
    }
    anyhow::ensure!(!manifests.is_empty(), "no objects in the files");
    Ok(manifests)
}

/// The first line that begins with a tab, which is what most often ails YAML.
fn tab(text: &str) -> Option<usize> {
    let mut lines = text.lines();
    let is_tabbed = |line: &str| line.trim_start_matches(' ').starts_with('\t');
    lines.position(is_tabbed).map(|index| index + 1)
}

/// Adds an object, or the items of a list.
fn push(manifests: &mut Vec<Manifest>, object: Doc, source: &str) -> anyhow::Result<()> {
    if object.is_null() {
        return Ok(());
    }
    if object.str_at("/kind").ends_with("List") && object.get("items").is_some() {
        let items = object.at("/items").items();
        return items
            .iter()
            .try_for_each(|item| push(manifests, item.clone(), source));
    }
    let is_whole = object.gvk().is_some();
    anyhow::ensure!(is_whole, "{source}: apiVersion and kind must both be set");
    let meta = object.meta();
    let is_named = !meta.name().is_empty() || !meta.generate_name().is_empty();
    anyhow::ensure!(
        is_named,
        "{source}: {}: metadata.name must be set",
        object.str_at("/kind")
    );
    manifests.push(Manifest {
        object,
        source: source.to_owned(),
    });
    Ok(())
}

fn expanded(file: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !file.is_dir() {
        return Ok(vec![file.to_owned()]);
    }
    let is_manifest = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        path.is_file() && matches!(extension, Some("yaml" | "yml" | "json"))
    };
    let entries = std::fs::read_dir(file).with_context(|| file.display().to_string())?;
    let entries: Result<Vec<_>, _> = entries.map(|entry| Ok(entry?.path())).collect();
    let entries: Result<Vec<PathBuf>, std::io::Error> = entries;
    let mut files: Vec<_> = entries?.into_iter().filter(is_manifest).collect();
    files.sort();
    Ok(files)
}

fn text(file: &Path) -> anyhow::Result<(String, String)> {
    let (source, reader): (String, Box<dyn std::io::Read>) = match file.to_str() {
        Some("-") => ("standard input".to_owned(), Box::new(std::io::stdin())),
        _ => {
            let source = file.display().to_string();
            let opened = std::fs::File::open(file).with_context(|| source.clone())?;
            (source, Box::new(opened))
        }
    };
    let mut text = String::new();
    let read = reader.take(FILE_BYTES_LIMIT + 1).read_to_string(&mut text);
    let read = read.with_context(|| source.clone())? as u64;
    anyhow::ensure!(
        read <= FILE_BYTES_LIMIT,
        "{source}: larger than {FILE_BYTES_LIMIT} bytes"
    );
    Ok((text, source))
}
