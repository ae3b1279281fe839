//! Version and health.

use http::{Response, StatusCode};
use windlass_core::doc;

use crate::body::Body;
use crate::metrics_page;
use crate::query::Query;
use crate::respond;
use crate::server::Server;
use crate::version::{COMPATIBLE_MINOR, GIT_VERSION, MAJOR, MINOR, platform};

/// The page at a path, if it is one of these.
pub(crate) fn page(server: &Server, path: &str, query: &Query) -> Option<Response<Body>> {
    let (endpoint, check) = path
        .trim_matches('/')
        .split_once('/')
        .unwrap_or((path.trim_matches('/'), ""));
    match endpoint {
        "version" if check.is_empty() => Some(version()),
        "metrics" if check.is_empty() => {
            Some(respond::text(StatusCode::OK, metrics_page::page(server)))
        }
        "healthz" | "livez" | "readyz" => health(server, endpoint, check, query),
        _ => None,
    }
}

fn version() -> Response<Body> {
    let version = doc!({
        "major": MAJOR, "minor": MINOR, "emulationMajor": MAJOR, "emulationMinor": MINOR,
        "minCompatibilityMajor": MAJOR, "minCompatibilityMinor": COMPATIBLE_MINOR, "gitVersion": GIT_VERSION, "gitCommit": "",
        "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": (platform())
    });
    respond::json(StatusCode::OK, &version, true)
}

fn health(server: &Server, endpoint: &str, check: &str, query: &Query) -> Option<Response<Body>> {
    let storage = server.inner().storage.health();
    // A server whose disk failed still reads, and a restart would not help: it is alive, not ready.
    let is_stored = storage.is_ok() || endpoint == "livez";
    // A full disk passes; until then objects are read and deleted.
    let has_space = server.inner().storage.space().is_ok() || endpoint == "livez";
    let checks = [
        ("ping", true),
        ("store", is_stored),
        ("disk-space", has_space),
    ];
    if !check.is_empty() {
        let (_, is_ok) = checks.into_iter().find(|(name, _)| *name == check)?;
        return Some(verdict(
            is_ok,
            "ok".to_owned(),
            format!("{check} check failed\n"),
        ));
    }
    let mut lines = String::new();
    let mut all_ok = true;
    for (name, is_ok) in checks {
        if query.all("exclude").any(|excluded| excluded == name) {
            lines.push_str(&format!("[+]{name} excluded: ok\n"));
            continue;
        }
        all_ok &= is_ok;
        let line = if is_ok {
            format!("[+]{name} ok\n")
        } else {
            format!("[-]{name} failed: reason withheld\n")
        };
        lines.push_str(&line);
    }
    let word = if all_ok { "passed" } else { "failed" };
    let full = format!("{lines}{endpoint} check {word}\n");
    let short = if query.find("verbose").is_some() {
        full.clone()
    } else {
        "ok".to_owned()
    };
    Some(verdict(all_ok, short, full))
}

fn verdict(is_ok: bool, good: String, bad: String) -> Response<Body> {
    if is_ok {
        respond::text(StatusCode::OK, good)
    } else {
        respond::text(StatusCode::INTERNAL_SERVER_ERROR, bad)
    }
}
