//! The version that the server says it is.

/// The version of Kubernetes whose behaviour is served.
pub(crate) const MAJOR: &str = "1";
pub(crate) const MINOR: &str = "36";
/// The oldest minor version with which upstream's servers get along.
pub(crate) const COMPATIBLE_MINOR: &str = "35";
/// Exactly upstream's: `kubectl --match-server-version` compares it.
pub(crate) const GIT_VERSION: &str = "v1.36.4";
/// The version of this program, in the place of a commit.
pub(crate) const GIT_COMMIT: &str = concat!("windlass-", env!("CARGO_PKG_VERSION"));

/// The system and the architecture that this runs on.
pub(crate) fn platform() -> String {
    format!("{}/{}", std::env::consts::OS, go_architecture())
}

/// The name that clients know the architecture by.
fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
