//! OpenAPI v2: one document about everything that is served, in JSON and in protobuf.
//!
//! It is put together when it is asked for after something has changed, from parts that are kept
//! encoded: those of the group versions whose rows are the same are not built again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use parking_lot::Mutex;
use windlass_core::{Doc, Time, doc};
use windlass_schema::openapi::Descriptions;
use windlass_schema::openapi::swagger::{
    SwaggerHead, SwaggerPart, common_part, named_path, named_schema, protobuf_document,
    shared_parameters, swagger_part,
};

use super::{Unpacked, is_known, versions};
use crate::body::Body;
use crate::discovery;
use crate::negotiate;
use crate::registry::{Resource, Table};
use crate::respond;

const TITLE: &str = "Kubernetes";
const VERSION: &str = "1.36";
const JSON: &str = "application/json";
/// The protobuf form as clients ask for it, and as it is named since.
const PROTOBUF_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The document of OpenAPI v2 and the parts it is made of.
#[derive(Debug, Default)]
pub(super) struct Swagger(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The parts of group versions, by group and version.
    parts: BTreeMap<(String, String), VersionPart>,
    /// The last document.
    document: Option<Arc<SwaggerDocument>>,
}

/// The part of a group version, and the rows it speaks of.
#[derive(Debug)]
struct VersionPart {
    rows: Vec<Arc<Resource>>,
    part: Arc<EncodedPart>,
}

/// A part of the document, encoded.
#[derive(Debug)]
struct EncodedPart {
    definitions: BTreeMap<String, Encoded>,
    paths: BTreeMap<String, Encoded>,
}

/// One definition or path.
#[derive(Clone, Debug)]
struct Encoded {
    json: Bytes,
    /// With its name.
    protobuf: Bytes,
}

#[derive(Debug)]
struct SwaggerDocument {
    /// What the document was made of.
    parts: Vec<Arc<EncodedPart>>,
    groups: BTreeSet<String>,
    common: Arc<EncodedPart>,
    json: Bytes,
    hash: String,
    modified: Time,
    /// Made when somebody asks for it.
    protobuf: OnceLock<Bytes>,
}

impl Swagger {
    /// The answer to a request for the document.
    pub(super) fn page(&self, table: &Table, headers: &HeaderMap, now: Time) -> Response<Body> {
        let Some(media_type) = media_type(headers) else {
            return respond::whole(StatusCode::NOT_ACCEPTABLE, JSON, Bytes::new());
        };
        let document = self.document(table, now);
        let tag = format!("\"{}\"", document.hash);
        let mut response = match is_known(headers, &tag) {
            true => respond::whole(StatusCode::NOT_MODIFIED, media_type, Bytes::new()),
            false if media_type == JSON => {
                respond::whole(StatusCode::OK, JSON, document.json.clone())
            }
            false => respond::whole(StatusCode::OK, PROTOBUF, document.protobuf()),
        };
        let headers = response.headers_mut();
        for (name, value) in [
            (header::ETAG, tag),
            (header::LAST_MODIFIED, http_date(document.modified)),
        ] {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
        headers.insert(header::VARY, HeaderValue::from_static("Accept"));
        response
    }

    /// The document of everything that is served now.
    fn document(&self, table: &Table, now: Time) -> Arc<SwaggerDocument> {
        let mut state = self.0.lock();
        let unpacked = Unpacked::new();
        let parts = state.refresh(table, &unpacked);
        let groups = table.groups().iter().map(|group| group.name.clone());
        let groups: BTreeSet<String> = groups.filter(|name| !name.is_empty()).collect();
        if let Some(document) = &state.document {
            let pairs = document.parts.iter().zip(&parts);
            let is_same = document.parts.len() == parts.len()
                && document.groups == groups
                && pairs.into_iter().all(|(a, b)| Arc::ptr_eq(a, b));
            if is_same {
                return Arc::clone(document);
            }
        }
        let names: Vec<&str> = groups.iter().map(String::as_str).collect();
        let common = common_part(&names, unpacked.get_or_init(Descriptions::unpacked));
        let document = Arc::new(SwaggerDocument::new(encode(&common), parts, groups, now));
        state.document = Some(Arc::clone(&document));
        document
    }
}

impl State {
    /// The parts of all group versions; those whose rows changed are built.
    fn refresh(&mut self, table: &Table, unpacked: &Unpacked) -> Vec<Arc<EncodedPart>> {
        let mut current = BTreeMap::new();
        for (group, version) in versions(table) {
            let key = (group.name.clone(), version.name.clone());
            let rows: Vec<Arc<Resource>> = version.resources.values().cloned().collect();
            let known = self.parts.remove(&key).filter(|known| {
                let pairs = known.rows.iter().zip(&rows);
                known.rows.len() == rows.len() && pairs.into_iter().all(|(a, b)| Arc::ptr_eq(a, b))
            });
            let part = known.unwrap_or_else(|| {
                let part = swagger_part(&rows, unpacked.get_or_init(Descriptions::unpacked));
                let part = Arc::new(encode(&part));
                VersionPart { rows, part }
            });
            current.insert(key, part);
        }
        self.parts = current;
        let parts = self.parts.values();
        parts.map(|known| Arc::clone(&known.part)).collect()
    }
}

fn encode(part: &SwaggerPart) -> EncodedPart {
    let encoded = |all: &BTreeMap<String, Doc>, protobuf: fn(&str, &Doc) -> Vec<u8>| {
        let all = all.iter().map(|(name, doc)| {
            let encoded = Encoded {
                json: doc.to_json().into(),
                protobuf: protobuf(name, doc).into(),
            };
            (name.clone(), encoded)
        });
        all.collect()
    };
    EncodedPart {
        definitions: encoded(&part.definitions, named_schema),
        paths: encoded(&part.paths, named_path),
    }
}

/// Everything besides the definitions and the paths.
fn head() -> SwaggerHead {
    SwaggerHead {
        title: TITLE,
        version: VERSION,
        parameters: shared_parameters(),
        security_definitions: doc!({ "BearerToken": {
            "type": "apiKey", "name": "authorization", "in": "header",
            "description": "Bearer Token authentication"
        } }),
        security: doc!([{ "BearerToken": [] }]),
    }
}

impl SwaggerDocument {
    fn new(
        common: EncodedPart,
        parts: Vec<Arc<EncodedPart>>,
        groups: BTreeSet<String>,
        now: Time,
    ) -> Self {
        let mut document = Self {
            parts,
            groups,
            common: Arc::new(common),
            json: Bytes::new(),
            hash: String::new(),
            modified: now,
            protobuf: OnceLock::new(),
        };
        let json = document.write_json();
        document.hash = discovery::content_hash(&json);
        document.json = json.into();
        document
    }

    /// All definitions by name, or all paths. What is common comes before what a part says of it.
    fn all(
        &self,
        of: impl Fn(&EncodedPart) -> &BTreeMap<String, Encoded>,
    ) -> BTreeMap<&str, &Encoded> {
        let mut all = BTreeMap::new();
        for part in std::iter::once(&self.common).chain(&self.parts) {
            for (name, encoded) in of(part) {
                all.entry(name.as_str()).or_insert(encoded);
            }
        }
        all
    }

    fn write_json(&self) -> Vec<u8> {
        let head = head();
        let mut out = Vec::new();
        let members = |all: BTreeMap<&str, &Encoded>, out: &mut Vec<u8>| {
            for (at, (name, encoded)) in all.into_iter().enumerate() {
                out.push(if at == 0 { b'{' } else { b',' });
                Doc::from(name).write_json(out);
                out.push(b':');
                out.extend_from_slice(&encoded.json);
            }
            out.push(b'}');
        };
        out.extend_from_slice(b"{\"definitions\":");
        members(self.all(|part| &part.definitions), &mut out);
        let info = doc!({ "title": TITLE, "version": VERSION });
        for (key, value) in [("info", &info), ("parameters", &head.parameters)] {
            out.extend_from_slice(format!(",\"{key}\":").as_bytes());
            value.write_json(&mut out);
        }
        out.extend_from_slice(b",\"paths\":");
        members(self.all(|part| &part.paths), &mut out);
        for (key, value) in [
            ("security", &head.security),
            ("securityDefinitions", &head.security_definitions),
        ] {
            out.extend_from_slice(format!(",\"{key}\":").as_bytes());
            value.write_json(&mut out);
        }
        out.extend_from_slice(b",\"swagger\":\"2.0\"}");
        out
    }

    fn protobuf(&self) -> Bytes {
        let written = self.protobuf.get_or_init(|| {
            let definitions = self.all(|part| &part.definitions);
            let paths = self.all(|part| &part.paths);
            let bytes = protobuf_document(
                &head(),
                definitions.values().map(|it| &*it.protobuf),
                paths.values().map(|it| &*it.protobuf),
            );
            bytes.into()
        });
        written.clone()
    }
}

/// The media type of the answer, if the client accepts one of the two.
fn media_type(headers: &HeaderMap) -> Option<&'static str> {
    let clauses = negotiate::clauses(headers);
    clauses
        .iter()
        .find_map(|clause| match clause.media_type.as_str() {
            JSON | "*/*" | "application/*" => Some(JSON),
            PROTOBUF | PROTOBUF_ASKED => Some(PROTOBUF),
            _ => None,
        })
}

/// A time as HTTP headers say it.
fn http_date(time: Time) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    // `2026-01-02T03:04:05Z`; the first of January 1970 was a Thursday.
    let text = time.to_string();
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let weekday = time.unix().div_euclid(86_400).rem_euclid(7);
    let weekday = usize::try_from(weekday).unwrap_or_default();
    let month = part(5, 7).parse::<usize>().unwrap_or(1);
    let month = MONTHS.get(month.saturating_sub(1)).unwrap_or(&"Jan");
    let (day, year, clock) = (part(8, 10), part(0, 4), part(11, 19));
    format!("{}, {day} {month} {year} {clock} GMT", DAYS[weekday])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_headers_say_them() {
        let check = |text: &str, expected: &str| {
            let time: Time = text.parse().expect("a time");
            assert_eq!(http_date(time), expected);
        };
        check("1994-11-06T08:49:37Z", "Sun, 06 Nov 1994 08:49:37 GMT");
        check("1970-01-01T00:00:00Z", "Thu, 01 Jan 1970 00:00:00 GMT");
        check("2026-11-17T02:32:37Z", "Tue, 17 Nov 2026 02:32:37 GMT");
    }
}
