//! Version and health.

use http::{Response, StatusCode};
use windlass_core::doc;

use crate::body::Body;
use crate::metrics_page;
use crate::ordered_json::{self, KeyOrder};
use crate::query::Query;
use crate::respond;
use crate::server::Server;
use crate::version::{COMPATIBLE_MINOR, GIT_COMMIT, GIT_VERSION, MAJOR, MINOR, platform};

/// The order in which upstream tells its version.
const VERSION_ORDER: KeyOrder = KeyOrder {
    top: &[
        "major",
        "minor",
        "emulationMajor",
        "emulationMinor",
        "minCompatibilityMajor",
        "minCompatibilityMinor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    ],
    nested: &[],
};

/// The health checks of upstream, in its order. A server that answers has done all that its hooks
/// stand for: the first objects are made before it listens.
const CHECKS: &[Check] = &[
    Check::everywhere("ping"),
    Check::everywhere("log"),
    Check {
        name: "loopback-serving-certificate",
        endpoints: Endpoints::AllButReadyz,
    },
    Check::everywhere(STORE_CHECK),
    Check {
        name: "etcd-readiness",
        endpoints: Endpoints::OnlyReadyz,
    },
    Check {
        name: "informer-sync",
        endpoints: Endpoints::OnlyReadyz,
    },
    Check::everywhere("poststarthook/start-apiserver-admission-initializer"),
    Check::everywhere("poststarthook/generic-apiserver-start-informers"),
    Check::everywhere("poststarthook/priority-and-fairness-config-consumer"),
    Check::everywhere("poststarthook/priority-and-fairness-filter"),
    Check::everywhere("poststarthook/storage-object-count-tracker-hook"),
    Check::everywhere("poststarthook/start-apiextensions-informers"),
    Check::everywhere("poststarthook/start-apiextensions-controllers"),
    Check::everywhere("poststarthook/crd-informer-synced"),
    Check::everywhere("poststarthook/start-system-namespaces-controller"),
    Check::everywhere("poststarthook/peer-endpoint-reconciler-controller"),
    Check::everywhere("poststarthook/start-cluster-authentication-info-controller"),
    Check::everywhere("poststarthook/start-kube-apiserver-identity-lease-controller"),
    Check::everywhere("poststarthook/start-kube-apiserver-identity-lease-garbage-collector"),
    Check::everywhere("poststarthook/storage-readiness"),
    Check::everywhere("poststarthook/start-legacy-token-tracking-controller"),
    Check::everywhere("poststarthook/start-service-ip-repair-controllers"),
    Check::everywhere("poststarthook/rbac/bootstrap-roles"),
    Check::everywhere("poststarthook/scheduling/bootstrap-system-priority-classes"),
    Check::everywhere("poststarthook/priority-and-fairness-config-producer"),
    Check::everywhere("poststarthook/bootstrap-controller"),
    Check::everywhere("poststarthook/start-kubernetes-service-cidr-controller"),
    Check::everywhere("poststarthook/start-kube-aggregator-informers"),
    Check::everywhere("poststarthook/apiservice-status-local-available-controller"),
    Check::everywhere("poststarthook/apiservice-status-remote-available-controller"),
    Check::everywhere("poststarthook/apiservice-registration-controller"),
    Check::everywhere("poststarthook/apiservice-discovery-controller"),
    Check::everywhere("poststarthook/kube-apiserver-autoregistration"),
    Check::everywhere("autoregister-completion"),
    Check::everywhere("poststarthook/apiservice-openapi-controller"),
    Check::everywhere("poststarthook/apiservice-openapiv3-controller"),
    Check {
        name: "shutdown",
        endpoints: Endpoints::OnlyReadyz,
    },
];

/// The check of the store, which is etcd upstream.
const STORE_CHECK: &str = "etcd";
/// A check that upstream does not have. It is listed while it fails.
const SPACE_CHECK: &str = "disk-space";

/// A health check.
#[derive(Clone, Copy)]
struct Check {
    name: &'static str,
    endpoints: Endpoints,
}

/// The endpoints that make a check.
#[derive(Clone, Copy, PartialEq)]
enum Endpoints {
    All,
    OnlyReadyz,
    AllButReadyz,
}

impl Check {
    const fn everywhere(name: &'static str) -> Self {
        Self {
            name,
            endpoints: Endpoints::All,
        }
    }

    fn is_made_by(self, endpoint: &str) -> bool {
        match self.endpoints {
            Endpoints::All => true,
            Endpoints::OnlyReadyz => endpoint == "readyz",
            Endpoints::AllButReadyz => endpoint != "readyz",
        }
    }
}

/// The version or the metrics, if a path is theirs.
pub(crate) fn page(server: &Server, path: &str) -> Option<Response<Body>> {
    match path.trim_matches('/') {
        "version" => Some(version()),
        "metrics" => Some(respond::text(StatusCode::OK, metrics_page::page(server))),
        _ => None,
    }
}

fn version() -> Response<Body> {
    let version = doc!({
        "major": MAJOR, "minor": MINOR, "emulationMajor": MAJOR, "emulationMinor": MINOR,
        "minCompatibilityMajor": MAJOR, "minCompatibilityMinor": COMPATIBLE_MINOR,
        "gitVersion": GIT_VERSION, "gitCommit": GIT_COMMIT, "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": (platform())
    });
    let bytes = ordered_json::write(&version, VERSION_ORDER, true);
    respond::whole(StatusCode::OK, "application/json", bytes.into())
}

/// The answer of a health endpoint, or of one of its checks, if a path is theirs.
pub(crate) fn check(server: &Server, path: &str, query: &Query) -> Option<Response<Body>> {
    let path = path.strip_prefix('/')?;
    let (endpoint, check) = match path.split_once('/') {
        Some((endpoint, check)) => (endpoint, Some(check)),
        None => (path, None),
    };
    if !matches!(endpoint, "healthz" | "livez" | "readyz") {
        return None;
    }
    match check {
        None => Some(all(server, endpoint, query)),
        Some(name) => {
            let known = CHECKS
                .iter()
                .any(|check| check.name == name && check.is_made_by(endpoint));
            (known || name == SPACE_CHECK).then(|| one(server, endpoint, name))
        }
    }
}

/// Returns true if a check passes.
fn passes(server: &Server, endpoint: &str, name: &str) -> bool {
    let storage = &server.inner().storage;
    match name {
        // A server whose disk failed still reads, and a restart would not help: it is alive, not
        // ready.
        STORE_CHECK | "etcd-readiness" => endpoint == "livez" || storage.health().is_ok(),
        // A full disk passes; until then objects are read and deleted.
        SPACE_CHECK => endpoint == "livez" || storage.space().is_ok(),
        _ => true,
    }
}

fn one(server: &Server, endpoint: &str, name: &str) -> Response<Body> {
    match passes(server, endpoint, name) {
        true => respond::text(StatusCode::OK, "ok"),
        false => respond::text(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("internal server error: {name} check failed\n"),
        ),
    }
}

fn all(server: &Server, endpoint: &str, query: &Query) -> Response<Body> {
    let mut excluded: Vec<&str> = query.all("exclude").filter(|it| !it.is_empty()).collect();
    let names = CHECKS
        .iter()
        .filter(|check| check.is_made_by(endpoint))
        .map(|check| check.name);
    let space = (!passes(server, endpoint, SPACE_CHECK)).then_some(SPACE_CHECK);
    let (mut lines, mut all_pass) = (String::new(), true);
    for name in names.chain(space) {
        if excluded.contains(&name) {
            excluded.retain(|known| *known != name);
            lines.push_str(&format!("[+]{name} excluded: ok\n"));
        } else if passes(server, endpoint, name) {
            lines.push_str(&format!("[+]{name} ok\n"));
        } else {
            all_pass = false;
            lines.push_str(&format!("[-]{name} failed: reason withheld\n"));
        }
    }
    if !excluded.is_empty() {
        lines.push_str(&unknown_exclusions(excluded));
    }
    if !all_pass {
        let text = format!("{lines}{endpoint} check failed\n");
        return respond::text(StatusCode::INTERNAL_SERVER_ERROR, text);
    }
    match query.find("verbose") {
        Some(_) => respond::text(StatusCode::OK, format!("{lines}{endpoint} check passed\n")),
        None => respond::text(StatusCode::OK, "ok"),
    }
}

/// The line about checks that are to be left out and do not exist.
fn unknown_exclusions(mut names: Vec<&str>) -> String {
    names.sort_unstable();
    names.dedup();
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    let names = names.join(",");
    format!("warn: some health checks cannot be excluded: no matches for {names}\n")
}
