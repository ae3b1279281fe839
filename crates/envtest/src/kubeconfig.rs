//! The files that tell a client where the server is and who the client is.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    directory::Directory,
    pki::{Identity, PkiError},
};

/// Writes `NAME.kubeconfig` into the directory, with its key and certificate, and returns its path.
pub(crate) fn write(
    directory: &Directory,
    name: &str,
    url: &str,
    identity: &Identity,
) -> Result<PathBuf, PkiError> {
    let certificate = directory.file(&format!("{name}.crt"));
    let key = directory.file(&format!("{name}.key"));
    identity.write(&certificate, &key)?;
    let text = render(url, &directory.file("ca.crt"), &certificate, &key);
    let path = directory.file(&format!("{name}.kubeconfig"));
    fs::write(&path, text)?;
    Ok(path)
}

fn render(url: &str, authority: &Path, certificate: &Path, key: &Path) -> String {
    let (authority, certificate, key) = (quote(authority), quote(certificate), quote(key));
    format!(
        "apiVersion: v1
kind: Config
current-context: envtest
contexts:
- name: envtest
  context: {{cluster: envtest, user: envtest}}
clusters:
- name: envtest
  cluster:
    server: {url}
    certificate-authority: {authority}
users:
- name: envtest
  user:
    client-certificate: {certificate}
    client-key: {key}
"
    )
}

/// A YAML string in single quotes, in which only the quote itself needs care.
fn quote(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "''"))
}
