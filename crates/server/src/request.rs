//! What a request asks for, read from its method, path and query.

use http::{HeaderMap, Method, header};

use crate::query::Query;
use windlass_access::Attributes;
pub(crate) use windlass_access::percent_decode;
use windlass_rules::status::Status;
pub(crate) use windlass_schema::resource::Verb;

/// At most so many path segments are looked at; the longest meaningful path has nine.
const SEGMENTS_LIMIT: usize = 32;

/// A request as routing and authorization see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Something under `/api/v1` or `/apis/<group>/<version>`.
    Resource(ResourcePath),
    /// Everything else, by its path and the lower-case method.
    Path { path: String, verb: String },
}

/// The parts of a path to a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    /// Empty at cluster scope and for all namespaces.
    pub(crate) namespace: String,
    pub(crate) resource: String,
    /// Empty for a collection.
    pub(crate) name: String,
    pub(crate) subresource: String,
    pub(crate) verb: Option<Verb>,
}

impl Target {
    /// Reads a method, a raw path and the query.
    pub(crate) fn read(method: &Method, path: &str, query: &Query) -> Result<Self, Status> {
        let page = || Self::Path {
            path: path.to_owned(),
            verb: method.as_str().to_ascii_lowercase(),
        };
        if path.starts_with("//") {
            return Ok(page());
        }
        let segments = segments(path)?;
        let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
        let resource = match parts[..] {
            ["api", version, ref rest @ ..] if !rest.is_empty() => {
                ResourcePath::read("", version, rest, method, query)
            }
            ["apis", group, version, ref rest @ ..] if !rest.is_empty() => {
                ResourcePath::read(group, version, rest, method, query)
            }
            _ => None,
        };
        check_dots(&parts, resource.as_ref())?;
        Ok(resource.map_or_else(page, Self::Resource))
    }

    /// Returns true if a request may last: a watch, or a connection to a container or a node.
    pub(crate) fn is_long_running(&self) -> bool {
        let Self::Resource(path) = self else {
            return false;
        };
        let part = path.subresource.as_str();
        path.verb == Some(Verb::Watch)
            || matches!(part, "attach" | "exec" | "proxy" | "log" | "portforward")
    }
}

impl From<&Target> for Attributes {
    /// What a request wants to do.
    fn from(target: &Target) -> Self {
        match target {
            Target::Path { path, verb } => {
                let verb = if verb == "head" { "get" } else { verb };
                Self {
                    verb: verb.to_owned(),
                    path: Some(percent_decode(path, false).unwrap_or_else(|| path.clone())),
                    ..Self::default()
                }
            }
            Target::Resource(path) => Self {
                verb: path.verb.map_or("", Verb::as_str).to_owned(),
                group: path.group.clone(),
                resource: Self::join(&path.resource, &path.subresource),
                namespace: path.namespace.clone(),
                name: path.name.clone(),
                ..Self::default()
            },
        }
    }
}

impl ResourcePath {
    fn read(
        group: &str,
        version: &str,
        rest: &[&str],
        method: &Method,
        query: &Query,
    ) -> Option<Self> {
        let (forced_watch, rest) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            rest => (false, rest),
        };
        let (namespace, rest) = match rest {
            ["namespaces", ns, rest @ ..] if names_contents(rest) => (*ns, rest),
            ["namespaces", name, ..] => (*name, rest),
            rest => ("", rest),
        };
        let part = |at: usize| rest.get(at).copied().unwrap_or_default().to_owned();
        let mut path = Self {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: namespace.to_owned(),
            resource: part(0),
            name: part(1),
            subresource: match rest.get(2) {
                // What follows is a path at the other end.
                Some(&"proxy") => "proxy".to_owned(),
                _ => rest.get(2..).unwrap_or_default().join("/"),
            },
            verb: None,
        };
        path.verb = path.verb_of(method, query, forced_watch);
        if path.name.is_empty() && matches!(path.verb, Some(Verb::List | Verb::Watch)) {
            path.name = query.single_name().unwrap_or_default();
        }
        Some(path)
    }

    fn verb_of(&self, method: &Method, query: &Query, forced_watch: bool) -> Option<Verb> {
        let single = !self.name.is_empty();
        Some(match *method {
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE if single => Verb::Delete,
            Method::DELETE => Verb::DeleteCollection,
            Method::GET if forced_watch && self.subresource.is_empty() => Verb::Watch,
            Method::GET if single => Verb::Get,
            Method::GET if query.asks_to_watch() => Verb::Watch,
            Method::GET => Verb::List,
            _ => return None,
        })
    }
}

/// Whether what follows `namespaces/<ns>` is a resource inside it, not a part of the namespace.
fn names_contents(rest: &[&str]) -> bool {
    match rest {
        [] | ["status" | "finalize"] => false,
        [first, ..] => !first.is_empty(),
    }
}

/// Encoded dots are not cleaned away, and they name nothing.
fn check_dots(parts: &[&str], resource: Option<&ResourcePath>) -> Result<(), Status> {
    let Some(dots) = parts.iter().find(|part| is_dots(part)) else {
        return Ok(());
    };
    match resource {
        Some(path) if path.name == *dots => Err(Status::bad_request(format!(
            "Name parameter invalid: {dots:?}: may not be '{dots}'"
        ))),
        _ => Err(Status::no_such_path()),
    }
}

fn is_dots(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

/// The decoded segments of a path. A path that would read differently once cleaned leads nowhere.
fn segments(path: &str) -> Result<Vec<String>, Status> {
    let trimmed = path.strip_prefix('/').unwrap_or(path);
    let trimmed = trimmed.strip_suffix('/').unwrap_or(trimmed);
    if trimmed.is_empty() {
        return Ok(Vec::new());
    }
    let mut segments = Vec::new();
    for raw in trimmed.split('/') {
        let segment = percent_decode(raw, false).ok_or_else(Status::no_such_path)?;
        if segment.is_empty()
            || is_dots(raw)
            || segment.contains(['/', '\0'])
            || segments.len() == SEGMENTS_LIMIT
        {
            return Err(Status::no_such_path());
        }
        segments.push(segment);
    }
    Ok(segments)
}

/// The bearer token of a request.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The headers that name a user to impersonate.
pub(crate) fn impersonation(headers: &HeaderMap) -> Vec<(&str, &[u8])> {
    let named = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()));
    named
        .filter(|(name, _)| name.starts_with("impersonate-"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &Method, uri: &str) -> ResourcePath {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        match Target::read(method, path, &Query::parse(query).unwrap()).unwrap() {
            Target::Resource(path) => path,
            Target::Path { path, .. } => panic!("{path} is not a resource path"),
        }
    }

    #[test]
    fn paths_are_read_into_their_parts() {
        let check = |method, uri, expected: [&str; 6], verb| {
            let path = read(&method, uri);
            let parts = [
                &path.group,
                &path.version,
                &path.namespace,
                &path.resource,
                &path.name,
                &path.subresource,
            ];
            assert_eq!(parts, expected, "{uri}");
            assert_eq!(path.verb, Some(verb), "{uri}");
        };
        let (get, post, delete) = (Method::GET, Method::POST, Method::DELETE);
        check(
            get.clone(),
            "/api/v1/pods",
            ["", "v1", "", "pods", "", ""],
            Verb::List,
        );
        check(
            get.clone(),
            "/api/v1/namespaces/a/pods/b/status",
            ["", "v1", "a", "pods", "b", "status"],
            Verb::Get,
        );
        check(
            get.clone(),
            "/apis/apps/v1/namespaces/a/deployments?watch=1",
            ["apps", "v1", "a", "deployments", "", ""],
            Verb::Watch,
        );
        check(
            get.clone(),
            "/api/v1/namespaces/a",
            ["", "v1", "a", "namespaces", "a", ""],
            Verb::Get,
        );
        check(
            Method::PUT,
            "/api/v1/namespaces/a/finalize",
            ["", "v1", "a", "namespaces", "a", "finalize"],
            Verb::Update,
        );
        check(
            get.clone(),
            "/api/v1/watch/namespaces/a/pods",
            ["", "v1", "a", "pods", "", ""],
            Verb::Watch,
        );
        check(
            get,
            "/api/v1/pods?fieldSelector=metadata.name%3Db",
            ["", "v1", "", "pods", "b", ""],
            Verb::List,
        );
        check(
            post,
            "/api/v1/namespaces",
            ["", "v1", "", "namespaces", "", ""],
            Verb::Create,
        );
        check(
            delete,
            "/api/v1/namespaces/a/pods",
            ["", "v1", "a", "pods", "", ""],
            Verb::DeleteCollection,
        );
    }

    #[test]
    fn a_path_that_needs_cleaning_leads_nowhere() {
        let query = Query::default();
        for path in [
            "/api/v1/../secrets",
            "/api//v1/pods",
            "/api/v1/%2e%2e/x",
            "/api/v1/a%2Fb",
        ] {
            assert!(Target::read(&Method::GET, path, &query).is_err(), "{path}");
        }
    }
}
