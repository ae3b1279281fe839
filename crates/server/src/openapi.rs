//! OpenAPI v3: what objects look like and what can be done to them, for clients that check and
//! explain.
//!
//! There is an index and one document per group version. Documents are built when they are first
//! asked for and kept until the kinds they speak of change. Built-in kinds are described from the
//! atlas, which knows names, types and merge rules but no prose, which is added if it was built in;
//! custom resources by their own schemas.
//!
//! OpenAPI v2 is a document without schemas: clients that ask for it find that the server knows
//! nothing about a kind, and leave its validation to the server. Deliberately absent: more of it,
//! and the protobuf form of the documents.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use parking_lot::Mutex;
use windlass_core::{Doc, Object, Str, doc};

use crate::body::Body;
use crate::discovery;
use crate::query::Query;
use crate::registry::{Group, Resource, Table, Version};
use crate::respond;
use windlass_schema::openapi::{Descriptions, build};

const JSON: &str = "application/json";

/// The documents that were asked for.
#[derive(Debug, Default)]
pub(crate) struct OpenApi(Mutex<BTreeMap<String, Known>>);

/// A document, and the rows it speaks of.
#[derive(Debug)]
struct Known {
    rows: Vec<Arc<Resource>>,
    document: Arc<Document>,
}

/// A document as it is sent.
#[derive(Debug)]
struct Document {
    bytes: Bytes,
    hash: String,
}

/// Descriptions, unpacked by the first document that has to be built.
type Unpacked = OnceCell<Descriptions>;

impl OpenApi {
    /// The page at a path, if it is one of these.
    pub(crate) fn page(
        &self,
        table: &Table,
        path: &str,
        query: &Query,
        headers: &HeaderMap,
    ) -> Option<Response<Body>> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, version) = match parts[..] {
            ["openapi", "v2"] => return Some(second_version(headers)),
            ["openapi", "v3"] => {
                return Some(respond::json(StatusCode::OK, &self.index(table), false));
            }
            ["openapi", "v3", "api", version] => ("", version),
            ["openapi", "v3", "apis", group, version] => (group, version),
            _ => return None,
        };
        let unpacked = Unpacked::new();
        let document = self.document(group, table.version(group, version)?, &unpacked);
        Some(answer(path, query, headers, &document))
    }

    /// Where each document is, with what changes when the document does.
    fn index(&self, table: &Table) -> Doc {
        let mut paths = Vec::new();
        let mut current = Vec::new();
        let unpacked = Unpacked::new();
        for (group, version) in versions(table) {
            let key = key(&group.name, &version.name);
            let document = self.document(&group.name, version, &unpacked);
            let url = format!("/openapi/v3/{key}?hash={}", document.hash);
            paths.push((Str::new(&key), doc!({ "serverRelativeURL": url })));
            current.push(key);
        }
        // Group versions that are no more are forgotten.
        self.0.lock().retain(|key, _| current.contains(key));
        doc!({ "paths": (Object::new(paths)) })
    }

    /// The document of a group version, built unless it is known.
    fn document(&self, group: &str, version: &Version, unpacked: &Unpacked) -> Arc<Document> {
        let key = key(group, &version.name);
        let rows: Vec<Arc<Resource>> = version.resources.values().cloned().collect();
        let is_same = |known: &&Known| {
            let pairs = known.rows.iter().zip(&rows);
            known.rows.len() == rows.len() && pairs.into_iter().all(|(a, b)| Arc::ptr_eq(a, b))
        };
        if let Some(known) = self.0.lock().get(&key).filter(is_same) {
            return Arc::clone(&known.document);
        }
        let bytes = build(&rows, unpacked.get_or_init(Descriptions::unpacked)).to_json();
        let document = Arc::new(Document {
            hash: discovery::content_hash(&bytes),
            bytes: bytes.into(),
        });
        let known = Known {
            rows,
            document: Arc::clone(&document),
        };
        self.0.lock().insert(key, known);
        document
    }
}

/// The title and the version of all documents.
const TITLE: &str = "Kubernetes";
const VERSION: &str = "v1.36.4";
/// How clients name the protobuf form of OpenAPI v2, and how it is sent.
const PROTOBUF_ASKED: &str = "proto-openapi.spec.v2";
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The document of OpenAPI v2, in JSON or in protobuf.
fn second_version(headers: &HeaderMap) -> Response<Body> {
    let accept = headers.get(header::ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    if accept.is_some_and(|accept| accept.contains(PROTOBUF_ASKED)) {
        return respond::whole(StatusCode::OK, PROTOBUF, second_version_protobuf().into());
    }
    let document = doc!({
        "swagger": "2.0", "info": { "title": TITLE, "version": VERSION }, "paths": {}
    });
    respond::json(StatusCode::OK, &document, false)
}

/// The message `Document` of OpenAPI v2: its version is field 1, its description field 2, with a
/// title and a version, and its paths are field 8.
fn second_version_protobuf() -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| {
        let length = u8::try_from(bytes.len()).unwrap_or_default();
        [&[number << 3 | 2, length], bytes].concat()
    };
    let info = [field(1, TITLE.as_bytes()), field(2, VERSION.as_bytes())].concat();
    [field(1, b"2.0"), field(2, &info), field(8, &[])].concat()
}

fn versions(table: &Table) -> impl Iterator<Item = (&Group, &Version)> {
    let groups = table.groups().iter();
    groups.flat_map(|group| group.versions.iter().map(move |version| (group, version)))
}

fn key(group: &str, version: &str) -> String {
    match group {
        "" => format!("api/{version}"),
        group => format!("apis/{group}/{version}"),
    }
}

/// A document, or only that it is still the same, or where it is now.
fn answer(path: &str, query: &Query, headers: &HeaderMap, document: &Document) -> Response<Body> {
    let asked = query.get("hash");
    if !asked.is_empty() && asked != document.hash {
        let mut response = respond::whole(StatusCode::MOVED_PERMANENTLY, JSON, Bytes::new());
        let location = format!("{path}?hash={}", document.hash);
        if let Ok(location) = HeaderValue::from_str(&location) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        return response;
    }
    let tag = format!("\"{}\"", document.hash);
    let known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok());
    let is_known = known.is_some_and(|known| known.split(',').any(|one| one.trim() == tag));
    let mut response = match is_known {
        true => respond::whole(StatusCode::NOT_MODIFIED, JSON, Bytes::new()),
        false => respond::whole(StatusCode::OK, JSON, document.bytes.clone()),
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    let caching = if asked.is_empty() {
        "no-cache, private"
    } else {
        "public, immutable"
    };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    response
}
