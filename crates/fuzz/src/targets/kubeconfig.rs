//! Kubeconfig files.

use std::io::Write as _;

use windlass_client::Config;
use windlass_core::Doc;

use crate::{Outcome, rig, work};

/// The secret of the seeds. No message may show it.
pub(crate) const SECRET: &str = "s3cr3t-t0ken";

/// A kubeconfig file: the same outcome each time and in JSON as in YAML, and no secret in a
/// message or in the debug form.
pub fn kubeconfig(data: &[u8]) -> Outcome {
    // Paths lead out of the input; files of this machine are not part of it.
    let names_files = [&b"/"[..], b"ile", b"certificate-authority:", b"client-"]
        .iter()
        .any(|word| data.windows(word.len()).any(|window| window == *word));
    let text = std::str::from_utf8(data);
    let Ok(text) = text else {
        return Outcome::Refused;
    };
    if names_files && !text.contains("https://") {
        return Outcome::Refused;
    }
    work::bounded(work::SERVED, data.len(), || {
        let outcome = load(text);
        assert_eq!(load(text), outcome, "deterministic");
        let docs = Doc::parse_yaml(text).unwrap_or_default();
        // A key of YAML has no more than 1024 characters where JSON writes it.
        let has_short_keys = data.len() < 1024;
        if let ([doc], Ok(_), true) = (&docs[..], &outcome, has_short_keys) {
            let json = String::from_utf8(doc.to_json()).expect("JSON is UTF-8");
            assert_eq!(load(&json), outcome, "as JSON");
        }
        Outcome::of(outcome.is_ok())
    })
}

/// Returns true if the secret stands only where secrets do. As a name it may be shown.
fn is_secret_only(text: &str) -> bool {
    let places = ["token: ", "\"token\":\"", "\"password\":\""];
    let meant: usize = places
        .iter()
        .map(|place| text.matches(&format!("{place}{SECRET}")).count())
        .sum();
    text.matches(SECRET).count() == meant
}

/// The server and namespace of a configuration, or the error without the name of the file.
fn load(text: &str) -> Result<(String, String), String> {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("a temporary file");
    let path = file.path().to_owned();
    let loaded = rig::runtime().block_on(Config::from_file(&path));
    match loaded {
        Ok(config) => {
            let shown = format!("{config:?}");
            assert!(
                !is_secret_only(text) || !shown.contains(SECRET),
                "a secret in the debug form: {shown}"
            );
            Ok((config.server(), config.default_namespace().to_owned()))
        }
        Err(error) => {
            let shown = format!("{error} {error:?}");
            assert!(
                !is_secret_only(text) || !shown.contains(SECRET),
                "a secret in a message: {shown}"
            );
            Err(error
                .to_string()
                .replace(&path.display().to_string(), "FILE"))
        }
    }
}
