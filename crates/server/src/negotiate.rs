//! Which form of an answer a client wants, and which form its body has.

use http::{HeaderMap, header};

use windlass_rules::status::Status;

pub(crate) const JSON: &str = "application/json";
pub(crate) const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

const PRODUCED: &[&str] = &[JSON, YAML];
const CONSUMED: &[&str] = &[JSON, YAML, PROTOBUF];

/// The text form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
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
    /// In thousandths.
    quality: u32,
}

impl Clause {
    /// The value of a parameter such as `as`; empty if it is absent.
    pub(crate) fn parameter(&self, key: &str) -> &str {
        let found = self.parameters.iter().find(|(name, _)| name == key);
        found.map_or("", |(_, value)| value)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts
            .next()
            .filter(|part| !part.is_empty())?
            .to_ascii_lowercase();
        let mut clause = Self {
            media_type,
            quality: 1000,
            ..Self::default()
        };
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            if key == "q" {
                clause.quality = quality(value)?;
            } else {
                let value = value.trim_matches('"');
                clause
                    .parameters
                    .push((key.to_ascii_lowercase(), value.to_owned()));
            }
        }
        Some(clause)
    }

    fn encoding(&self) -> Option<Encoding> {
        match self.media_type.as_str() {
            JSON | "*/*" | "application/*" => Some(Encoding::Json),
            YAML => Some(Encoding::Yaml),
            _ => None,
        }
    }

    fn form(&self) -> Option<Form> {
        let (kind, group) = (self.parameter("as"), self.parameter("g"));
        let version_is_known = matches!(self.parameter("v"), "v1" | "v1beta1");
        match kind {
            "" => Some(Form::Whole),
            _ if group != "meta.k8s.io" || !version_is_known => None,
            "Table" => Some(Form::Table),
            "PartialObjectMetadata" => Some(Form::Metadata),
            "PartialObjectMetadataList" => Some(Form::MetadataList),
            _ => None,
        }
    }
}

/// The clauses of the `Accept` header, best first. No header accepts everything.
pub(crate) fn clauses(headers: &HeaderMap) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(Clause::parse)
        .filter(|clause| clause.quality > 0)
        .collect();
    if clauses.is_empty() {
        clauses.extend(Clause::parse("*/*"));
    }
    // Stable: equal clauses keep the order of the client.
    clauses.sort_by_key(|clause| std::cmp::Reverse(clause.quality));
    clauses
}

/// The answer a client asked for, among the forms that make sense for the request.
pub(crate) fn wanted(headers: &HeaderMap, possible: &[Form]) -> Result<Wanted, Status> {
    let choose = |clause: &Clause| {
        let (encoding, form) = (clause.encoding()?, clause.form()?);
        possible
            .contains(&form)
            .then_some(Wanted { encoding, form })
    };
    clauses(headers)
        .iter()
        .find_map(choose)
        .ok_or_else(|| Status::not_acceptable(PRODUCED))
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

fn quality(text: &str) -> Option<u32> {
    let value: f64 = text.trim().parse().ok()?;
    // At most 1000, so the conversion keeps the value.
    (0.0..=1.0)
        .contains(&value)
        .then_some((value * 1000.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(accept: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        headers
    }

    #[test]
    fn the_first_clause_that_can_be_served_wins() {
        let check = |accept: &str, possible: &[Form], expected| {
            let wanted = wanted(&headers(accept), possible).ok();
            assert_eq!(
                wanted.map(|wanted| (wanted.encoding, wanted.form)),
                expected,
                "{accept}"
            );
        };
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        check(
            table,
            &[Form::Whole, Form::Table],
            Some((Encoding::Json, Form::Table)),
        );
        check(table, &[Form::Whole], Some((Encoding::Json, Form::Whole)));
        check(
            "application/vnd.kubernetes.protobuf,application/json",
            &[Form::Whole],
            Some((Encoding::Json, Form::Whole)),
        );
        check(
            "application/yaml, */*;q=0.1",
            &[Form::Whole],
            Some((Encoding::Yaml, Form::Whole)),
        );
        check("text/html", &[Form::Whole], None);
        check(
            "application/json;as=Table;v=v1;g=meta.k8s.io",
            &[Form::Whole],
            None,
        );
    }
}
