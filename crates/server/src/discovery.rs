//! Discovery: which kinds there are, in the old form and the aggregated one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use ring::digest;
use windlass_core::{Doc, Gvk, Object, doc};

use crate::body::Body;
use crate::negotiate::{self, Encoding, JSON, PROTOBUF, Route, YAML};
use crate::ordered_json::{self, KeyOrder};
use crate::registry::{Group, Resource, Table, Version};
use crate::request::Verb;
use crate::respond;
use windlass_rules::status::Status;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const AGGREGATED_YAML: &str =
    "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const AGGREGATED_PROTOBUF: &str =
    "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The order of the fields of upstream's types.
const KEY_ORDER: KeyOrder = KeyOrder {
    top: &[
        "kind",
        "apiVersion",
        "groupVersion",
        "name",
        "metadata",
        "versions",
        "serverAddressByClientCIDRs",
        "groups",
        "resources",
        "preferredVersion",
        "items",
        "paths",
    ],
    nested: &[
        "metadata",
        "clientCIDR",
        "serverAddress",
        "name",
        "singularName",
        "namespaced",
        "groupVersion",
        "subresource",
        "resource",
        "responseKind",
        "group",
        "version",
        "kind",
        "scope",
        "singularResource",
        "verbs",
        "shortNames",
        "categories",
        "subresources",
        "storageVersionHash",
        "resources",
        "freshness",
        "versions",
        "preferredVersion",
    ],
};

/// The page at a path, if it is one of these.
pub(crate) fn page(
    table: &Table,
    path: &str,
    headers: &HeaderMap,
    is_pretty: bool,
) -> Result<Option<Response<Body>>, Status> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let doc = match parts[..] {
        [] => {
            return Ok(Some(respond::json(
                StatusCode::OK,
                &paths(table),
                is_pretty,
            )));
        }
        ["api"] => match wants_aggregated(headers)? {
            Some(encoding) => {
                return aggregated(table, headers, (encoding, is_pretty), str::is_empty).map(Some);
            }
            None => doc!({
                "kind": "APIVersions", "versions": ["v1"],
                "serverAddressByClientCIDRs": [
                    { "clientCIDR": "0.0.0.0/0", "serverAddress": (host(headers)) }
                ]
            }),
        },
        ["apis"] => match wants_aggregated(headers)? {
            Some(encoding) => {
                let is_named = |group: &str| !group.is_empty();
                return aggregated(table, headers, (encoding, is_pretty), is_named).map(Some);
            }
            None => groups(table),
        },
        ["api", "v1"] => match table.version("", "v1") {
            Some(version) => {
                negotiate::check_route(headers, Route::Plain)?;
                resources("v1", version)
            }
            None => return Ok(None),
        },
        ["apis", group] => match table.group(group).filter(|_| !group.is_empty()) {
            Some(group) => with_type(&legacy_group(group), "APIGroup"),
            None => return Ok(None),
        },
        ["apis", group, version] => match table.version(group, version) {
            Some(found) => resources(&format!("{group}/{version}"), found),
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(Some(match negotiate::plain(headers)? {
        Encoding::Json => {
            let bytes = ordered_json::write(&doc, KEY_ORDER, is_pretty);
            respond::whole(StatusCode::OK, JSON, bytes.into())
        }
        encoding => respond::object(StatusCode::OK, &doc, encoding, false),
    }))
}

/// The address under which a client knows the server.
fn host(headers: &HeaderMap) -> &str {
    let host = headers.get(header::HOST);
    host.and_then(|host| host.to_str().ok()).unwrap_or_default()
}

/// Every path that a reader may start from.
fn paths(table: &Table) -> Doc {
    let mut paths: Vec<String> = [
        "/.well-known/openid-configuration",
        "/api",
        "/api/v1",
        "/apis",
        "/apis/",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
    ]
    .map(str::to_owned)
    .to_vec();
    for group in table.groups().iter().filter(|group| !group.name.is_empty()) {
        paths.push(format!("/apis/{}", group.name));
        for version in &group.versions {
            paths.push(format!("/apis/{}/{}", group.name, version.name));
        }
    }
    paths.sort();
    doc!({ "paths": (paths.iter().map(Doc::from).collect::<Vec<_>>()) })
}

fn groups(table: &Table) -> Doc {
    let named = table.groups().iter().filter(|group| !group.name.is_empty());
    let groups: Vec<Doc> = named.map(legacy_group).collect();
    doc!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

fn legacy_group(group: &Group) -> Doc {
    let entry = |version: &Version| {
        let name = format!("{}/{}", group.name, version.name);
        doc!({ "groupVersion": name, "version": (&version.name) })
    };
    let versions: Vec<Doc> = group.versions.iter().map(entry).collect();
    let preferred = versions.first().cloned().unwrap_or_default();
    doc!({ "name": (&group.name), "versions": versions, "preferredVersion": preferred })
}

fn with_type(doc: &Doc, kind: &str) -> Doc {
    let object = doc.as_object().cloned().unwrap_or_else(Object::empty);
    object
        .with("kind", kind.into())
        .with("apiVersion", "v1".into())
        .into()
}

/// The resources of a group version in the old form, parts as entries of their own.
fn resources(group_version: &str, version: &Version) -> Doc {
    let mut entries = Vec::new();
    for resource in version.resources.values() {
        entries.push(legacy_resource(resource));
        let parts = parts(resource);
        entries.extend(parts.iter().map(|part| legacy_part(resource, part)));
    }
    let list = doc!({
        "kind": "APIResourceList", "groupVersion": group_version, "resources": entries
    });
    // The oldest group has no version of its list.
    match group_version {
        "v1" => list,
        _ => with_type(&list, "APIResourceList"),
    }
}

fn legacy_resource(resource: &Resource) -> Doc {
    let mut fields = vec![
        ("name".into(), Doc::from(&*resource.plural)),
        ("singularName".into(), Doc::from(&*resource.singular)),
        ("namespaced".into(), resource.is_namespaced().into()),
        ("kind".into(), resource.gvk.kind().into()),
        ("verbs".into(), verbs(&resource.verbs)),
    ];
    if !resource.short_names.is_empty() {
        fields.push(("shortNames".into(), texts(&resource.short_names)));
    }
    if !resource.categories.is_empty() {
        fields.push(("categories".into(), texts(&resource.categories)));
    }
    if resource.allows(Verb::Watch) {
        let hash = version_hash(resource);
        fields.push(("storageVersionHash".into(), hash.into()));
    }
    Object::new(fields).into()
}

/// A subresource as discovery tells it.
struct Part {
    name: &'static str,
    gvk: Gvk,
    verbs: &'static [Verb],
}

const CONNECT: &[Verb] = &[Verb::Create, Verb::Get];
const PROXY: &[Verb] = &[
    Verb::Create,
    Verb::Delete,
    Verb::Get,
    Verb::Patch,
    Verb::Update,
];

/// The subresources of a kind. Those of built-in kinds stand in the order of their names, and among
/// them those that lead to a node.
fn parts(resource: &Resource) -> Vec<Part> {
    let stored = resource.subresources.iter().map(|sub| Part {
        name: sub.name,
        gvk: sub.gvk.clone(),
        verbs: sub.verbs,
    });
    let connections = resource.needs.connections.iter();
    let connections = connections.filter_map(|name| connection(resource, name));
    let mut parts: Vec<Part> = stored.chain(connections).collect();
    if !resource.is_custom {
        parts.sort_by_key(|part| part.name);
    }
    parts
}

/// A subresource that leads to a node: its kind is that of its options.
fn connection(resource: &Resource, name: &'static str) -> Option<Part> {
    let (word, verbs) = match name {
        "attach" => ("Attach", CONNECT),
        "exec" => ("Exec", CONNECT),
        "portforward" => ("PortForward", CONNECT),
        "proxy" => ("Proxy", PROXY),
        _ => return None,
    };
    let kind = format!("{}{word}Options", resource.gvk.kind());
    let gvk = Gvk::parse(&resource.gvk.api_version(), &kind).ok()?;
    Some(Part { name, gvk, verbs })
}

fn legacy_part(resource: &Resource, sub: &Part) -> Doc {
    let mut fields = vec![
        (
            "name".into(),
            Doc::from(format!("{}/{}", resource.plural, sub.name)),
        ),
        ("singularName".into(), "".into()),
        ("namespaced".into(), resource.is_namespaced().into()),
        ("kind".into(), sub.gvk.kind().into()),
        ("verbs".into(), verbs(sub.verbs)),
    ];
    if sub.gvk.group_version() != resource.gvk.group_version() {
        fields.push(("group".into(), sub.gvk.group().into()));
        fields.push(("version".into(), sub.gvk.version().into()));
    }
    Object::new(fields).into()
}

/// The encoding of the aggregated document if a client asks for it, in the version that is still
/// served.
fn wants_aggregated(headers: &HeaderMap) -> Result<Option<Encoding>, Status> {
    for clause in negotiate::clauses(headers) {
        let is_aggregated = clause.parameter("as") == "APIGroupDiscoveryList"
            && clause.parameter("g") == "apidiscovery.k8s.io"
            && clause.parameter("v") == "v2";
        match clause.encodings().first() {
            Some(_) if !clause.transforms() => return Ok(None),
            Some(encoding) if is_aggregated => return Ok(Some(*encoding)),
            _ => {}
        }
    }
    Err(Status::not_acceptable(&[JSON, YAML, PROTOBUF]))
}

fn aggregated(
    table: &Table,
    headers: &HeaderMap,
    (encoding, is_pretty): (Encoding, bool),
    chosen: impl Fn(&str) -> bool,
) -> Result<Response<Body>, Status> {
    let items: Vec<Doc> = table
        .groups()
        .iter()
        .filter(|group| chosen(&group.name))
        .map(discovery_group)
        .collect();
    let list = doc!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {}, "items": items
    });
    let tag = content_hash(&list.to_json());
    let (media_type, bytes) = match encoding {
        Encoding::Json => {
            let bytes = ordered_json::write(&list, KEY_ORDER, is_pretty);
            (AGGREGATED, bytes.into())
        }
        Encoding::Yaml => {
            let text = list.to_yaml().map_err(Status::internal)?;
            (AGGREGATED_YAML, text.into())
        }
        Encoding::Protobuf => {
            let bytes = respond::protobuf(&list).map_err(Status::internal)?;
            (AGGREGATED_PROTOBUF, bytes)
        }
    };
    Ok(tagged(headers, media_type, bytes, &tag))
}

/// A document with an entity tag, which is the hash of its JSON; clients that know it already get only that answer.
pub(crate) fn tagged(
    headers: &HeaderMap,
    media_type: &'static str,
    bytes: Bytes,
    hash: &str,
) -> Response<Body> {
    let tag = format!("\"{hash}\"");
    let known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok());
    let is_known = known.is_some_and(|known| known.split(',').any(|one| one.trim() == tag));
    let mut response = if is_known {
        respond::whole(StatusCode::NOT_MODIFIED, media_type, Vec::new().into())
    } else {
        respond::whole(StatusCode::OK, media_type, bytes)
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    response
}

/// What changes when a document does.
pub(crate) fn content_hash(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA512, bytes).as_ref())
}

fn discovery_group(group: &Group) -> Doc {
    let version = |version: &Version| {
        let resources: Vec<Doc> = version
            .resources
            .values()
            .map(|row| discovery_resource(row))
            .collect();
        doc!({ "version": (&version.name), "resources": resources, "freshness": "Current" })
    };
    let versions: Vec<Doc> = group.versions.iter().map(version).collect();
    let metadata = match group.name.as_str() {
        "" => Doc::empty_object(),
        name => doc!({ "name": name }),
    };
    doc!({ "metadata": metadata, "versions": versions })
}

fn discovery_resource(resource: &Resource) -> Doc {
    let scope = if resource.is_namespaced() {
        "Namespaced"
    } else {
        "Cluster"
    };
    let mut fields = vec![
        ("resource".into(), Doc::from(&*resource.plural)),
        ("responseKind".into(), kind(&resource.gvk, resource)),
        ("scope".into(), scope.into()),
        ("singularResource".into(), Doc::from(&*resource.singular)),
        ("verbs".into(), verbs(&resource.verbs)),
    ];
    if !resource.short_names.is_empty() {
        fields.push(("shortNames".into(), texts(&resource.short_names)));
    }
    if !resource.categories.is_empty() {
        fields.push(("categories".into(), texts(&resource.categories)));
    }
    let parts = parts(resource);
    if !parts.is_empty() {
        let part = |sub: &Part| {
            doc!({
                "subresource": (sub.name), "responseKind": (kind(&sub.gvk, resource)),
                "verbs": (verbs(sub.verbs))
            })
        };
        let parts: Vec<Doc> = parts.iter().map(part).collect();
        fields.push(("subresources".into(), parts.into()));
    }
    Object::new(fields).into()
}

/// A kind as discovery names it: group and version only where they are not those of the list.
fn kind(gvk: &Gvk, resource: &Resource) -> Doc {
    let is_own = gvk.group_version() == resource.gvk.group_version();
    let (group, version) = if is_own {
        ("", "")
    } else {
        (gvk.group(), gvk.version())
    };
    doc!({ "group": group, "version": version, "kind": (gvk.kind()) })
}

fn verbs(verbs: &[Verb]) -> Doc {
    verbs
        .iter()
        .map(|verb| Doc::from(verb.as_str()))
        .collect::<Vec<_>>()
        .into()
}

fn texts(texts: &[std::borrow::Cow<'static, str>]) -> Doc {
    texts
        .iter()
        .map(|text| Doc::from(&**text))
        .collect::<Vec<_>>()
        .into()
}

/// What changes when the stored version of a kind does.
fn version_hash(resource: &Resource) -> String {
    let stored = resource.stored_version();
    let stored = match stored.contains('/') {
        true => stored,
        false => format!("/{stored}"),
    };
    let text = format!("{stored}/{}", resource.gvk.kind());
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    BASE64.encode(&digest.as_ref()[..8])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}
