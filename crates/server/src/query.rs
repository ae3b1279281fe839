//! The query of a request and the options in it.

use std::time::Duration;

use windlass_core::{AtRevision, Doc};

use windlass_access::percent_decode;
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::status::Status;

/// A query has at most so many parameters; what comes after is refused.
const PARAMETERS_LIMIT: usize = 256;

/// The parameters of a request in the order given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

/// How fields that are unknown or come twice are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// Which revision a list or an initial watch state may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    NotOlderThan,
    Exact,
}

/// The options of list, watch and deletecollection.
#[derive(Clone, Debug)]
pub(crate) struct ListOptions {
    pub(crate) labels: String,
    pub(crate) fields: String,
    /// Zero means all.
    pub(crate) limit: usize,
    pub(crate) next: String,
    pub(crate) revision: AtRevision,
    /// The revision as it was written.
    pub(crate) revision_text: String,
    pub(crate) revision_match: Option<Match>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) bookmarks: bool,
    pub(crate) initial_events: Option<bool>,
}

/// The options of create, update and patch.
#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) validation: FieldValidation,
    pub(crate) force: Option<bool>,
    /// Who writes, in the client's own words; empty if it does not say.
    pub(crate) manager: String,
}

impl Query {
    /// The parameters in the order given.
    pub(crate) fn parameters(&self) -> &[(String, String)] {
        &self.0
    }

    /// Reads the part of a URI after the question mark.
    pub(crate) fn parse(text: &str) -> Result<Self, Status> {
        let mut parameters = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (key, value) = (percent_decode(key, true), percent_decode(value, true));
            let (Some(key), Some(value)) = (key, value) else {
                return Err(Status::bad_request("invalid URL escape in the query"));
            };
            if parameters.len() == PARAMETERS_LIMIT {
                return Err(Status::bad_request("too many query parameters"));
            }
            parameters.push((key, value));
        }
        Ok(Self(parameters))
    }

    /// The first value of a parameter; empty if it is absent.
    pub(crate) fn get(&self, key: &str) -> &str {
        self.find(key).unwrap_or_default()
    }

    /// The first value of a parameter.
    pub(crate) fn find(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// Every value of a parameter.
    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// A truth value; `None` if it is absent.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        self.find(key).map(parse_flag)
    }

    /// The time that the client waits for an answer; `None` if it sets no limit, by a zero or a
    /// negative one too.
    pub(crate) fn timeout(&self) -> Result<Option<Duration>, Status> {
        match self.get("timeout") {
            "" => Ok(None),
            text => parse_duration(text).map_err(|why| {
                Status::bad_request(format!(
                    "invalid timeout specified in the request URL - time: {why} {text:?}"
                ))
            }),
        }
    }

    /// Whether a read is a watch. Any value but a clear no counts as yes.
    pub(crate) fn asks_to_watch(&self) -> bool {
        self.find("watch")
            .is_some_and(|value| !matches!(value, "0" | "f" | "F" | "false" | "False" | "FALSE"))
    }

    /// The name that a field selector narrows a list to.
    pub(crate) fn single_name(&self) -> Option<String> {
        self.get("fieldSelector").split(',').find_map(|term| {
            let name = term.strip_prefix("metadata.name=")?;
            Some(name.strip_prefix('=').unwrap_or(name).to_owned())
        })
    }

    /// The options of a list or watch.
    pub(crate) fn list_options(&self) -> Result<ListOptions, Status> {
        let text = self.get("resourceVersion");
        let refuse = |why: String| Status::bad_request(format!("invalid resource version: {why}"));
        let revision = self.revision().map_err(refuse)?;
        Ok(ListOptions {
            labels: self.get("labelSelector").to_owned(),
            fields: self.get("fieldSelector").to_owned(),
            limit: self
                .number("limit")?
                .unwrap_or(0)
                .max(0)
                .try_into()
                .unwrap_or(usize::MAX),
            next: self.get("continue").to_owned(),
            revision,
            revision_text: text.to_owned(),
            revision_match: self.revision_match()?,
            timeout: self
                .number("timeoutSeconds")?
                .and_then(|seconds| u64::try_from(seconds).ok())
                .filter(|seconds| *seconds > 0)
                .map(Duration::from_secs),
            bookmarks: self.flag("allowWatchBookmarks").unwrap_or(false),
            initial_events: self.flag("sendInitialEvents"),
        })
    }

    /// The revision that is asked for, or what is wrong with it.
    pub(crate) fn revision(&self) -> Result<AtRevision, String> {
        let text = self.get("resourceVersion");
        // Go reads a number whatever zeros stand before it, and no more than 64 bits of it.
        let digits = text.trim_start_matches('0');
        let is_zero = digits.is_empty() && !text.is_empty();
        let parsed = if is_zero { "0" } else { digits }.parse();
        let why = match &parsed {
            Ok(AtRevision::Given(revision)) if revision.as_u64().is_none() => "value out of range",
            Ok(_) => return parsed.map_err(|error| error.to_string()),
            Err(_) => "invalid syntax",
        };
        Err(format!(
            "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {why}"
        ))
    }

    fn revision_match(&self) -> Result<Option<Match>, Status> {
        match self.get("resourceVersionMatch") {
            "" => Ok(None),
            "NotOlderThan" => Ok(Some(Match::NotOlderThan)),
            "Exact" => Ok(Some(Match::Exact)),
            other => {
                let mut errors = FieldErrors::default();
                let field = FieldPath::new("resourceVersionMatch");
                errors.not_supported(&field, other, &["Exact", "NotOlderThan", ""]);
                Err(list_options_invalid(&errors))
            }
        }
    }

    /// The options of create (`CreateOptions`), update or patch, which `kind` names in errors.
    pub(crate) fn write_options(&self, kind: &'static str) -> Result<WriteOptions, Status> {
        let mut errors = FieldErrors::default();
        let validation = match self.get("fieldValidation") {
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            "" | "Warn" => FieldValidation::Warn,
            other => {
                let field = FieldPath::new("fieldValidation");
                errors.not_supported(&field, other, &["", "Ignore", "Strict", "Warn"]);
                FieldValidation::Warn
            }
        };
        let dry_run = self.dry_run(&mut errors);
        check_manager(self.get("fieldManager"), &mut errors);
        let force = self.flag("force");
        if errors.is_empty() {
            return Ok(WriteOptions {
                dry_run,
                validation,
                force,
                manager: self.get("fieldManager").to_owned(),
            });
        }
        Err(options_invalid(kind, &errors))
    }

    /// Whether nothing is to be stored.
    pub(crate) fn dry_run(&self, errors: &mut FieldErrors) -> bool {
        let values: Vec<Doc> = self.all("dryRun").map(Doc::from).collect();
        let is_dry_run = !values.is_empty();
        check_dry_run(values, errors);
        is_dry_run
    }

    /// A number; `None` if it is absent.
    pub(crate) fn number(&self, key: &str) -> Result<Option<i64>, Status> {
        let parse = |text: &str| {
            text.parse().map_err(|_| {
                Status::bad_request(format!(
                    "strconv.ParseInt: parsing {text:?}: invalid syntax"
                ))
            })
        };
        self.find(key)
            .filter(|text| !text.is_empty())
            .map(parse)
            .transpose()
    }
}

/// Finds what is neither nothing nor everything.
pub(crate) fn check_dry_run(values: Vec<Doc>, errors: &mut FieldErrors) {
    if values.iter().any(|value| *value != "All") {
        errors.not_supported_shown(&FieldPath::new("dryRun"), &values.into(), &["All"]);
    }
}

/// 422 about the options of a list.
pub(crate) fn list_options_invalid(errors: &FieldErrors) -> Status {
    let kind = windlass_core::GroupKind::new("meta.k8s.io", "ListOptions");
    Status::invalid(&kind, "", errors)
}

/// 422 about the options of a write.
pub(crate) fn options_invalid(kind: &'static str, errors: &FieldErrors) -> Status {
    Status::invalid(
        &windlass_core::GroupKind::new("meta.k8s.io", kind),
        "",
        errors,
    )
}

/// A parameter counts as set unless its value says no, as in `?watch`.
fn parse_flag(text: &str) -> bool {
    text != "0" && !text.eq_ignore_ascii_case("false")
}

/// A duration as Go writes it: numbers with units, such as `1m30s`, or a zero; `None` unless it is
/// positive. The error is Go's.
fn parse_duration(text: &str) -> Result<Option<Duration>, &'static str> {
    const INVALID: &str = "invalid duration";
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return Ok(None);
    }
    let mut rest = unsigned;
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return Err(INVALID);
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, after) = rest.split_at(digits.unwrap_or(rest.len()));
        let number: f64 = number.parse().map_err(|_| INVALID)?;
        let letters = after.find(|c: char| c.is_ascii_digit() || c == '.');
        let (unit, after) = after.split_at(letters.unwrap_or(after.len()));
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            "" => return Err("missing unit in duration"),
            _ => return Err(INVALID),
        };
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| INVALID)?;
        total = total.checked_add(part).ok_or(INVALID)?;
        rest = after;
    }
    let is_positive = !total.is_zero() && !text.starts_with('-');
    Ok(is_positive.then_some(total))
}

fn check_manager(manager: &str, errors: &mut FieldErrors) {
    let field = FieldPath::new("fieldManager");
    if manager.len() > 128 {
        errors.too_long(&field, 128);
    }
    if let Some(at) = manager.chars().position(char::is_control) {
        let code = manager.chars().nth(at).map_or(0, u32::from);
        let detail = format!("invalid character U+{code:04X} (at position {at})");
        errors.invalid(&field, manager, detail);
    }
}
