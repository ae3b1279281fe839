//! The files that tell a client where the server is and who the client is.

use std::{
    fs, io,
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
    let (certificate, key) = (quote(&certificate), quote(&key));
    let user = format!("client-certificate: {certificate}, client-key: {key}");
    Ok(write_user(directory, name, url, &user)?)
}

/// Writes `NAME.kubeconfig` into the directory for who bears a token, and returns its path.
pub(crate) fn write_token(
    directory: &Directory,
    name: &str,
    url: &str,
    token: &str,
) -> io::Result<PathBuf> {
    write_user(directory, name, url, &format!("token: {token}"))
}

fn write_user(directory: &Directory, name: &str, url: &str, user: &str) -> io::Result<PathBuf> {
    let path = directory.file(&format!("{name}.kubeconfig"));
    fs::write(&path, render(url, &directory.file("ca.crt"), user))?;
    Ok(path)
}

fn render(url: &str, authority: &Path, user: &str) -> String {
    let authority = quote(authority);
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
  user: {{{user}}}
"
    )
}

/// A YAML string in single quotes, in which only the quote itself needs care.
fn quote(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "''"))
}
