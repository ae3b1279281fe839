//! Which form of an answer a client wants, and which form its body has.

use http::{HeaderMap, header};

use windlass_rules::status::Status;

pub(crate) const JSON: &str = "application/json";
pub(crate) const YAML: &str = "application/yaml";
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

const PRODUCED: &[&str] = &[JSON, YAML, PROTOBUF];
/// The media types that a watch can be sent in.
const STREAMED: &[&str] = &[
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
/// No client lists more.
const CLAUSES_LIMIT: usize = 64;
const CONSUMED: &[&str] = &[JSON, YAML, PROTOBUF];

/// The encoding of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

/// What is sent of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// The object itself.
    Whole,
    /// Rows and columns for people.
    Table,
    /// Only type and metadata.
    Metadata,
    /// A list of which only metadata is sent.
    MetadataList,
}

/// The answer a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) encoding: Encoding,
    pub(crate) form: Form,
}

/// The answers that an endpoint can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Its objects can be rows of a table.
    pub(crate) has_table: bool,
    /// Its objects have a form in protobuf. Those of custom resources have not, but their metadata
    /// has.
    pub(crate) has_protobuf: bool,
}

/// The sorts of routes, by what they produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// One document.
    Plain,
    /// One document, or a stream of events.
    Stream,
}

/// The form of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Json,
    Yaml,
    Protobuf,
}

/// One clause of an `Accept` header.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clause {
    pub(crate) media_type: String,
    parameters: Vec<(String, String)>,
    quality: f64,
}

impl Clause {
    /// The value of a parameter such as `as`; empty if it is absent.
    pub(crate) fn parameter(&self, key: &str) -> &str {
        self.find(key).unwrap_or_default()
    }

    /// The value of a parameter. Of several the last one counts.
    fn find(&self, key: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter().rev();
        let found = parameters.find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }

    /// Reads a clause as upstream's `goautoneg` does: letters keep their case, and a parameter
    /// that is no pair is passed over.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';');
        let media_type = match parts.next()?.trim() {
            "*" => "*/*",
            media_type if media_type.split('/').count() == 2 => media_type,
            _ => return None,
        };
        let mut clause = Self {
            media_type: media_type.to_owned(),
            parameters: Vec::new(),
            quality: 1.0,
        };
        for part in parts {
            let Some((key, value)) = part.split_once('=').filter(|(_, it)| !it.contains('='))
            else {
                continue;
            };
            match key.trim() {
                "q" => clause.quality = value.parse().unwrap_or(0.0),
                key => clause
                    .parameters
                    .push((key.to_owned(), value.trim().to_owned())),
            }
        }
        Some(clause)
    }

    /// Returns true if a clause comes before another one: by quality, and exact types before
    /// wildcards.
    fn is_before(&self, other: &Self) -> bool {
        let is_any = |clause: &Self| clause.media_type.starts_with("*/");
        let is_range = |clause: &Self| clause.media_type.ends_with("/*");
        self.quality > other.quality
            || !is_any(self) && is_any(other)
            || !is_range(self) && is_range(other)
    }

    /// The encodings that match the media type, in the order of the server.
    pub(crate) fn encodings(&self) -> &'static [Encoding] {
        match self.media_type.as_str() {
            JSON => &[Encoding::Json],
            YAML => &[Encoding::Yaml],
            PROTOBUF => &[Encoding::Protobuf],
            "*/*" | "application/*" => &[Encoding::Json, Encoding::Yaml, Encoding::Protobuf],
            _ => &[],
        }
    }

    /// Returns true if the clause asks for another form than the object itself.
    pub(crate) fn transforms(&self) -> bool {
        let keys = ["as", "g", "v"];
        keys.iter().any(|key| self.find(key).is_some())
    }

    /// Returns true if the clause can be sent in an encoding as the stream that it asks for.
    fn allows_stream(&self, encoding: Encoding) -> bool {
        match self.parameter("stream") {
            "" => true,
            "watch" => encoding != Encoding::Yaml,
            _ => false,
        }
    }

    /// The form that the clause asks for, if the endpoint has it in that encoding.
    fn form(&self, encoding: Encoding, offer: Offer) -> Option<Form> {
        let is_protobuf = encoding == Encoding::Protobuf;
        if !self.transforms() {
            return (!is_protobuf || offer.has_protobuf).then_some(Form::Whole);
        }
        let version_is_known = matches!(self.parameter("v"), "v1" | "v1beta1");
        match self.parameter("as") {
            _ if self.parameter("g") != "meta.k8s.io" || !version_is_known => None,
            "Table" => (offer.has_table && !is_protobuf).then_some(Form::Table),
            "PartialObjectMetadata" => Some(Form::Metadata),
            "PartialObjectMetadataList" => Some(Form::MetadataList),
            _ => None,
        }
    }
}

/// The clauses of the first `Accept` header, best first. No header accepts everything.
pub(crate) fn clauses(headers: &HeaderMap) -> Vec<Clause> {
    let accept = headers.get(header::ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    let accept = accept.filter(|accept| !accept.is_empty()).unwrap_or("*/*");
    let mut sorted: Vec<Clause> = Vec::new();
    for clause in accept.split(',').take(CLAUSES_LIMIT) {
        let Some(clause) = Clause::parse(clause) else {
            continue;
        };
        // Upstream's order is not transitive, so the result depends on how it is sorted: by
        // insertion from the end, as Go does it for few items.
        let at = sorted.iter().rposition(|other| !clause.is_before(other));
        sorted.insert(at.map_or(0, |at| at + 1), clause);
    }
    sorted
}

/// Refuses a request whose route produces nothing that the client accepts. Upstream's router looks
/// only at the types, and knows no ranges but `*/*`; what it lets through is negotiated.
pub(crate) fn check_route(headers: &HeaderMap, route: Route) -> Result<(), Status> {
    let accept = headers.get(header::ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    let Some(accept) = accept.filter(|accept| !accept.is_empty()) else {
        return Ok(());
    };
    let produced = match route {
        Route::Plain => PRODUCED.to_vec(),
        Route::Stream => [PRODUCED, STREAMED].concat(),
    };
    let is_produced = |clause: &str| {
        let media_type = clause.split(';').next().unwrap_or_default().trim();
        media_type == "*/*" || produced.contains(&media_type)
    };
    match accept.split(',').any(is_produced) {
        true => Ok(()),
        false => Err(Status::no_route(&produced)),
    }
}

/// The answer a client asked for, among those that the endpoint can give.
pub(crate) fn wanted(headers: &HeaderMap, offer: Offer) -> Result<Wanted, Status> {
    find(headers, offer).ok_or_else(|| Status::not_acceptable(PRODUCED))
}

/// As [`wanted`], for a watch, which YAML has no form for.
pub(crate) fn wanted_watch(headers: &HeaderMap, offer: Offer) -> Result<Wanted, Status> {
    let wanted = find(headers, offer);
    let wanted = wanted.filter(|wanted| wanted.encoding != Encoding::Yaml);
    wanted.ok_or_else(|| Status::not_acceptable(STREAMED))
}

fn find(headers: &HeaderMap, offer: Offer) -> Option<Wanted> {
    clauses(headers).iter().find_map(|clause| {
        clause.encodings().iter().find_map(|&encoding| {
            let form = clause.form(encoding, offer)?;
            let is_allowed = clause.allows_stream(encoding);
            is_allowed.then_some(Wanted { encoding, form })
        })
    })
}

/// The encoding of a document that has one form only, such as those of discovery.
pub(crate) fn plain(headers: &HeaderMap) -> Result<Encoding, Status> {
    plain_if_any(headers).ok_or_else(|| Status::not_acceptable(PRODUCED))
}

/// As [`plain`], for a refusal, which is sent in some encoding in any case.
pub(crate) fn plain_if_any(headers: &HeaderMap) -> Option<Encoding> {
    let clauses = clauses(headers);
    let mut plain = clauses.iter().filter(|clause| !clause.transforms());
    plain.find_map(|clause| {
        let mut encodings = clause.encodings().iter().copied();
        encodings.find(|encoding| clause.allows_stream(*encoding))
    })
}

/// The form of the body of a create or update.
pub(crate) fn content(headers: &HeaderMap) -> Result<Content, Status> {
    match media_type(headers).as_str() {
        "" | JSON => Ok(Content::Json),
        YAML => Ok(Content::Yaml),
        PROTOBUF => Ok(Content::Protobuf),
        _ => Err(Status::unsupported_media_type(CONSUMED)),
    }
}

/// The media type of the body without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let value = value.unwrap_or_default();
    value
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(accept: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        headers
    }

    const BUILT_IN: Offer = Offer {
        has_table: true,
        has_protobuf: true,
    };
    const CUSTOM: Offer = Offer {
        has_table: true,
        has_protobuf: false,
    };
    const REVIEW: Offer = Offer {
        has_table: false,
        has_protobuf: true,
    };

    #[test]
    fn the_first_clause_that_can_be_served_wins() {
        let check = |accept: &str, offer: Offer, expected| {
            let wanted = wanted(&headers(accept), offer).ok();
            assert_eq!(
                wanted.map(|wanted| (wanted.encoding, wanted.form)),
                expected,
                "{accept}"
            );
        };
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        check(table, BUILT_IN, Some((Encoding::Json, Form::Table)));
        check(table, REVIEW, Some((Encoding::Json, Form::Whole)));
        let either = "application/vnd.kubernetes.protobuf,application/json";
        check(either, BUILT_IN, Some((Encoding::Protobuf, Form::Whole)));
        check(either, CUSTOM, Some((Encoding::Json, Form::Whole)));
        let yaml = "application/yaml, */*;q=0.1";
        check(yaml, BUILT_IN, Some((Encoding::Yaml, Form::Whole)));
        check("text/html", BUILT_IN, None);
        check("application/json;as=Table;v=v1;g=meta.k8s.io", REVIEW, None);
        let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;\
                        g=meta.k8s.io;v=v1";
        check(metadata, CUSTOM, Some((Encoding::Protobuf, Form::Metadata)));
        let quality = "application/vnd.kubernetes.protobuf;q=0.5, application/json";
        check(quality, BUILT_IN, Some((Encoding::Json, Form::Whole)));
    }

    #[test]
    fn clauses_are_sorted_as_upstream_sorts_them() {
        let check = |accept: &str, expected: &[&str]| {
            let clauses = clauses(&headers(accept));
            let types: Vec<&str> = clauses.iter().map(|it| it.media_type.as_str()).collect();
            assert_eq!(types, expected, "{accept}");
        };
        check("a/b, c/d", &["a/b", "c/d"]);
        check("a/b;q=0.1, c/d", &["c/d", "a/b"]);
        check("*/*, a/b;q=0.1", &["a/b", "*/*"]);
        check("a/b;q=0.1, */*", &["*/*", "a/b"]);
        check("*, a/*, a/b", &["a/b", "a/*", "*/*"]);
        check("a/b;q=x, c/d;q=0.1, nothing, a/b/c", &["c/d", "a/b"]);
    }
}
