//! One event of the audit log, as it grows with its request.

use std::net::IpAddr;

use http::HeaderMap;
use http::request::Parts;
use windlass_core::{Doc, MicroTime, Object, Str, doc};

use super::policy::{AuditPolicy, Config, Level};
use crate::peer::Peer;
use crate::request::{Target, Verb};
use windlass_access::{Attributes, MASTERS, User};

/// The longest user agent that is told, in bytes, and what follows one that is cut off: upstream's.
const USER_AGENT_BYTES_LIMIT: usize = 1024;
const TRUNCATED: &str = "...TRUNCATED";

/// Addresses that proxies may claim a request came by.
const FORWARDED_LIMIT: usize = 32;

/// A moment in the life of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    RequestReceived,
    ResponseStarted,
    ResponseComplete,
    Panic,
}

impl Stage {
    pub(super) const ALL: [Self; 4] = [
        Self::RequestReceived,
        Self::ResponseStarted,
        Self::ResponseComplete,
        Self::Panic,
    ];

    /// The stage of a name.
    pub(super) fn read(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == name)
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}

/// What is known of a request.
#[derive(Debug)]
pub(super) struct Record {
    id: String,
    uri: String,
    verb: String,
    user: Option<User>,
    impersonated: Option<User>,
    source_ips: Vec<String>,
    user_agent: String,
    /// The methods of authentication that were tried.
    attempted: &'static str,
    /// The object, for a request of a resource.
    object: Option<ObjectReference>,
    /// True for watches and connections.
    is_long_running: bool,
    /// The attributes that the policy decides by.
    attributes: Attributes,
    /// The outcome of the policy; `None` until the user is known.
    config: Option<Config>,
    request_object: Option<Doc>,
    response_object: Option<Doc>,
    status: Option<Doc>,
    received: MicroTime,
    decision: Option<(&'static str, &'static str)>,
    /// Those of admission extensions.
    annotations: Vec<(String, String)>,
    has_ended: bool,
}

#[derive(Debug)]
struct ObjectReference {
    resource: String,
    namespace: String,
    name: String,
    uid: String,
    group: String,
    version: String,
    revision: String,
    subresource: String,
}

impl Record {
    pub(super) fn new(parts: &Parts, target: &Target, id: &str, received: MicroTime) -> Self {
        let uri = parts.uri.path_and_query();
        let (verb, object) = match target {
            Target::Path { verb, .. } => (verb.clone(), None),
            Target::Resource(path) => (
                path.verb.map_or("", Verb::as_str).to_owned(),
                Some(ObjectReference {
                    resource: path.resource.clone(),
                    namespace: path.namespace.clone(),
                    name: path.name.clone(),
                    uid: String::new(),
                    group: path.group.clone(),
                    version: path.version.clone(),
                    revision: String::new(),
                    subresource: path.subresource.clone(),
                }),
            ),
        };
        Self {
            id: id.to_owned(),
            uri: uri.map_or("/", |uri| uri.as_str()).to_owned(),
            verb,
            user: None,
            impersonated: None,
            source_ips: source_ips(parts),
            user_agent: user_agent(&parts.headers),
            attempted: match parts.headers.contains_key(http::header::AUTHORIZATION) {
                true => "bearer",
                false => "",
            },
            object,
            is_long_running: target.is_long_running(),
            attributes: Attributes::from(target),
            config: None,
            request_object: None,
            response_object: None,
            status: None,
            received,
            decision: None,
            annotations: Vec::new(),
            has_ended: false,
        }
    }

    pub(super) fn set_user(&mut self, user: &User, policy: &AuditPolicy) {
        self.config = Some(policy.evaluate(&self.attributes, Some(user)));
        self.user = Some(user.clone());
    }

    /// The outcome of the policy, which is that for nobody if the credentials were no good.
    pub(super) fn config(&mut self, policy: &AuditPolicy) -> Config {
        let decide = || policy.evaluate(&self.attributes, None);
        *self.config.get_or_insert_with(decide)
    }

    /// The level of a request whose user is known.
    pub(super) fn level(&self) -> Level {
        self.config.unwrap_or_default().level
    }

    /// Notes the object of a request: its identity, and all of it if the level says so.
    pub(super) fn set_request_object(&mut self, object: &Doc) {
        let meta = object.meta();
        if let Some(known) = &mut self.object {
            let fill = |text: &mut String, value: &str| {
                if text.is_empty() {
                    value.clone_into(text);
                }
            };
            fill(&mut known.namespace, meta.namespace());
            fill(&mut known.name, meta.name());
            fill(&mut known.uid, object.str_at("/metadata/uid"));
            fill(&mut known.revision, meta.resource_version());
        }
        self.set_request_body(object);
    }

    /// Notes the body of a request that is no object: a patch, or options.
    pub(super) fn set_request_body(&mut self, body: &Doc) {
        if self.level() >= Level::Request {
            self.request_object = Some(self.shown(body));
        }
    }

    /// Notes the body of an answer.
    pub(super) fn set_response_object(&mut self, body: &Doc) {
        self.response_object = Some(self.shown(body));
    }

    /// A body as the policy wants it shown.
    fn shown(&self, body: &Doc) -> Doc {
        match self.config.unwrap_or_default().omits_managed_fields {
            true => without_managed_fields(body),
            false => body.clone(),
        }
    }

    pub(super) fn set_effective_user(&mut self, user: &User) {
        if self.user.as_ref() != Some(user) {
            self.impersonated = Some(user.clone());
        }
    }

    pub(super) fn set_decision(&mut self, user: &User, is_allowed: bool) {
        self.decision = Some(match is_allowed {
            true if user.is_in(MASTERS) => ("allow", ""),
            true => ("allow", "RBAC: allowed by a role"),
            false => ("forbid", ""),
        });
    }

    pub(super) fn annotate(&mut self, annotations: Vec<(String, String)>) {
        self.annotations.extend(annotations);
    }

    fn all_annotations(&self) -> Vec<(Str, Doc)> {
        let own = self.annotations.iter();
        let own = own.map(|(key, value)| (Str::new(key), Doc::from(value)));
        let decision = self.decision.into_iter().flat_map(|(decision, reason)| {
            [
                ("authorization.k8s.io/decision", decision),
                ("authorization.k8s.io/reason", reason),
            ]
        });
        let decision = decision.map(|(key, value)| (Str::new(key), Doc::from(value)));
        decision.chain(own).collect()
    }

    pub(super) fn set_panic(&mut self) {
        self.has_ended = true;
        self.status = Some(doc!({
            "metadata": {}, "status": "Failure", "reason": "InternalError",
            "message": "APIServer panic'd", "code": 500
        }));
    }

    /// Returns true if the request is about a resource: only then bodies are logged.
    pub(super) fn is_of_resource(&self) -> bool {
        self.object.is_some()
    }

    /// Returns true if the request may last, whatever came of it.
    pub(super) fn is_long_running(&self) -> bool {
        self.is_long_running
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Notes the code of an answer and what it says of itself, if it is a `Status`.
    pub(super) fn set_answer(&mut self, code: u16, answer: Option<&Doc>) {
        let mut fields = vec![("metadata".into(), Doc::empty_object())];
        let status = answer.filter(|doc| doc.str_at("/kind") == "Status");
        for key in ["status", "message", "reason", "details"] {
            let value = status.and_then(|status| status.get(key));
            fields.extend(value.map(|value| (key.into(), value.clone())));
        }
        fields.push(("code".into(), Doc::from(u64::from(code))));
        self.status = Some(Object::new(fields).into());
        if self.user.is_none() {
            self.status = Some(doc!({
                "metadata": {}, "status": "Failure", "code": (u64::from(code)),
                "message": (format!("Authentication failed, attempted: {}", self.attempted)),
                "reason": "Unauthorized"
            }));
        }
    }

    /// The stage that an answer is.
    pub(super) fn answer_stage(&self, is_watch: bool) -> Stage {
        match is_watch || self.user.is_none() {
            true => Stage::ResponseStarted,
            false => Stage::ResponseComplete,
        }
    }

    /// The event of a stage, as a line.
    pub(super) fn line(&self, stage: Stage, now: MicroTime) -> Vec<u8> {
        let mut fields = vec![
            ("kind".into(), "Event".into()),
            ("apiVersion".into(), "audit.k8s.io/v1".into()),
            ("level".into(), self.level().as_str().into()),
            ("auditID".into(), Doc::from(&self.id)),
            ("stage".into(), stage.as_str().into()),
            ("requestURI".into(), Doc::from(&self.uri)),
            ("verb".into(), Doc::from(&self.verb)),
            (
                "user".into(),
                self.user.as_ref().map_or_else(Doc::empty_object, user_info),
            ),
        ];
        // Upstream reads the user and writes the first event before it impersonates.
        let impersonated = self.impersonated.as_ref().map(user_info);
        fields.extend(impersonated.map(|user| ("impersonatedUser".into(), user)));
        let ips: Vec<Doc> = self.source_ips.iter().map(Doc::from).collect();
        if !ips.is_empty() {
            fields.push(("sourceIPs".into(), ips.into()));
        }
        if !self.user_agent.is_empty() {
            fields.push(("userAgent".into(), Doc::from(&self.user_agent)));
        }
        let object = self.object.as_ref().map(ObjectReference::to_doc);
        fields.extend(object.map(|object| ("objectRef".into(), object)));
        if stage != Stage::RequestReceived {
            let status = self.status.clone();
            fields.extend(status.map(|status| ("responseStatus".into(), status)));
            let body = self.request_object.clone();
            fields.extend(body.map(|body| ("requestObject".into(), body)));
            let body = self.response_object.clone();
            fields.extend(body.map(|body| ("responseObject".into(), body)));
        }
        fields.push((
            "requestReceivedTimestamp".into(),
            Doc::from(self.received.to_string()),
        ));
        fields.push(("stageTimestamp".into(), Doc::from(now.to_string())));
        let annotations = self.all_annotations();
        if !annotations.is_empty() {
            fields.push(("annotations".into(), Object::new(annotations).into()));
        }
        let mut line = Doc::from(Object::new(fields)).to_json();
        line.push(b'\n');
        line
    }
}

impl ObjectReference {
    fn to_doc(&self) -> Doc {
        let texts = [
            ("resource", &self.resource),
            ("namespace", &self.namespace),
            ("name", &self.name),
            ("uid", &self.uid),
            ("apiGroup", &self.group),
            ("apiVersion", &self.version),
            ("resourceVersion", &self.revision),
            ("subresource", &self.subresource),
        ];
        let fields = texts.into_iter().filter(|(_, text)| !text.is_empty());
        let fields = fields.map(|(key, text)| (key.into(), Doc::from(text)));
        Object::new(fields.collect::<Vec<_>>()).into()
    }
}

/// A body without the managed fields of its object, of its items, or of the objects in its rows.
fn without_managed_fields(body: &Doc) -> Doc {
    const FIELDS: &str = "/metadata/managedFields";
    let without = |object: &Doc| object.without(FIELDS).unwrap_or_else(|_| object.clone());
    let mut fields = match without(body).as_object() {
        Some(fields) => fields.clone(),
        None => return body.clone(),
    };
    if let Some(items) = fields.get("items").map(Doc::items) {
        let items: Vec<Doc> = items.iter().map(without).collect();
        fields = fields.with("items", items.into());
    }
    if let Some(rows) = fields.get("rows").map(Doc::items) {
        let row = |row: &Doc| {
            let bare = row.get("object").map(without);
            let bare = bare.and_then(|object| row.with("/object", object).ok());
            bare.unwrap_or_else(|| row.clone())
        };
        let rows: Vec<Doc> = rows.iter().map(row).collect();
        fields = fields.with("rows", rows.into());
    }
    fields.into()
}

fn user_info(user: &User) -> Doc {
    let texts = |texts: &[String]| Doc::from(texts.iter().map(Doc::from).collect::<Vec<_>>());
    let mut fields = vec![("username".into(), Doc::from(&user.name))];
    if !user.uid.is_empty() {
        fields.push(("uid".into(), Doc::from(&user.uid)));
    }
    if !user.groups.is_empty() {
        fields.push(("groups".into(), texts(&user.groups)));
    }
    if !user.extra.is_empty() {
        let extra = user.extra.iter();
        let extra = extra.map(|(key, values)| (key.as_str().into(), texts(values)));
        let extra = Object::new(extra.collect::<Vec<_>>());
        fields.push(("extra".into(), extra.into()));
    }
    Object::new(fields).into()
}

/// Where a request came from: the addresses that proxies tell, then that of the connection.
fn source_ips(parts: &Parts) -> Vec<String> {
    let text = |name: &str| {
        let value = parts.headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    };
    let forwarded = text("x-forwarded-for").split(',').take(FORWARDED_LIMIT);
    let mut ips: Vec<IpAddr> = forwarded
        .filter_map(|text| text.trim().parse().ok())
        .collect();
    let real: Option<IpAddr> = text("x-real-ip").trim().parse().ok();
    ips.extend(real.filter(|real| !ips.contains(real)));
    let peer = parts.extensions.get::<Peer>().map(|peer| peer.0.ip());
    ips.extend(peer.filter(|peer| ips.last() != Some(peer)));
    ips.iter().map(ToString::to_string).collect()
}

fn user_agent(headers: &HeaderMap) -> String {
    let value = headers.get(http::header::USER_AGENT);
    let text = value.and_then(|value| value.to_str().ok()).unwrap_or("");
    // A header that is text has one byte for each character.
    match text.get(..USER_AGENT_BYTES_LIMIT) {
        Some(start) if text.len() > USER_AGENT_BYTES_LIMIT => format!("{start}{TRUNCATED}"),
        _ => text.to_owned(),
    }
}
