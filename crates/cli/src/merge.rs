//! The cluster in the user's own kubeconfig.

use std::path::PathBuf;

use anyhow::Context as _;
use windlass_core::{Doc, doc};

/// Puts the cluster, user and context of a kubeconfig into the user's own, and makes the context
/// the current one. Entries of the same name are replaced, all others stay.
pub(crate) fn into_own(text: &str) -> anyhow::Result<()> {
    let path = own_path()?;
    let place = || format!("cannot merge into {}", path.display());
    let own = match std::fs::read_to_string(&path) {
        Ok(own) => own,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(place),
    };
    let own = Doc::parse_yaml(&own).with_context(place)?;
    let own = own
        .into_iter()
        .next()
        .unwrap_or_else(|| doc!({ "apiVersion": "v1", "kind": "Config", "preferences": {} }));
    let added = Doc::parse_yaml(text)?;
    let added = added
        .first()
        .context("invariant: a kubeconfig is one document")?;
    let merged = merged(&own, added)?.to_yaml()?;
    if let Some(directory) = path.parent() {
        windlass_server::make_directory(directory).with_context(place)?;
    }
    windlass_server::write_private_file(&path, merged.as_bytes()).with_context(place)
}

/// The first file of `KUBECONFIG`, else the one in the home directory.
fn own_path() -> anyhow::Result<PathBuf> {
    let listed = std::env::var_os("KUBECONFIG");
    let first = listed.and_then(|list| std::env::split_paths(&list).next());
    if let Some(path) = first.filter(|path| !path.as_os_str().is_empty()) {
        return Ok(path);
    }
    let home = std::env::home_dir().context("there is no home directory to merge into")?;
    Ok(home.join(".kube/config"))
}

fn merged(own: &Doc, added: &Doc) -> anyhow::Result<Doc> {
    let mut merged = own.clone();
    for list in ["/clusters", "/users", "/contexts"] {
        let mut entries = own.at(list).items().to_vec();
        for entry in added.at(list).items() {
            entries.retain(|known| known.at("/name") != entry.at("/name"));
            entries.push(entry.clone());
        }
        merged = merged.with(list, Doc::from(entries))?;
    }
    Ok(merged.with("/current-context", added.at("/current-context").clone())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_the_same_name_are_replaced_and_others_stay() {
        let own = doc!({
            "clusters": [{ "name": "work", "x": 1 }, { "name": "windlass", "x": 2 }],
            "contexts": [{ "name": "work" }],
            "current-context": "work",
            "extra": true,
        });
        let added = doc!({
            "clusters": [{ "name": "windlass", "x": 3 }],
            "users": [{ "name": "windlass" }],
            "contexts": [{ "name": "windlass" }],
            "current-context": "windlass",
        });
        assert_eq!(
            merged(&own, &added).unwrap(),
            doc!({
                "clusters": [{ "name": "work", "x": 1 }, { "name": "windlass", "x": 3 }],
                "users": [{ "name": "windlass" }],
                "contexts": [{ "name": "work" }, { "name": "windlass" }],
                "current-context": "windlass",
                "extra": true,
            })
        );
    }
}
