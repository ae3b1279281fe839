//! OpenAPI: what objects look like and what can be done to them, for clients that check and
//! explain.
//!
//! Of v3 there is an index and one document per group version. Documents are built when they are first
//! asked for and kept until the kinds they speak of change. Built-in kinds are described from the
//! atlas, which knows names, types and merge rules but no prose, which is added if it was built in;
//! custom resources by their own schemas.
//!
//! OpenAPI v2 is one document about everything, in `swagger.rs`. Deliberately absent: the protobuf
//! form of the documents of v3.

mod swagger;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use parking_lot::Mutex;
use windlass_core::{Doc, Object, Str, Time, doc};

use crate::body::Body;
use crate::discovery;
use crate::query::Query;
use crate::registry::{Group, Resource, Table, Version};
use crate::respond;
use swagger::Swagger;
use windlass_schema::openapi::{Descriptions, build};

const JSON: &str = "application/json";

/// The documents that were asked for.
#[derive(Debug, Default)]
pub(crate) struct OpenApi {
    /// Those of v3, by group version.
    documents: Mutex<BTreeMap<String, Known>>,
    /// That of v2.
    swagger: Swagger,
}

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
        now: Time,
    ) -> Option<Response<Body>> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, version) = match parts[..] {
            ["openapi", "v2"] => return Some(self.swagger.page(table, headers, now)),
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
        self.documents.lock().retain(|key, _| current.contains(key));
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
        if let Some(known) = self.documents.lock().get(&key).filter(is_same) {
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
        self.documents.lock().insert(key, known);
        document
    }
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
    let mut response = match is_known(headers, &tag) {
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

/// Returns true if a client has the document of an entity tag already.
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get(header::IF_NONE_MATCH);
    let known = known.and_then(|value| value.to_str().ok());
    known.is_some_and(|known| known.split(',').any(|one| one.trim() == tag))
}
