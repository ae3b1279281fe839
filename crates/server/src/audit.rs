//! The audit log: who asked for what, and what came of it, as lines of `audit.k8s.io/v1` events.
//!
//! An [`AuditPolicy`] says how much of which request is logged; without one, every request is
//! logged at the level `Metadata`: without bodies. The stages are upstream's:
//! `RequestReceived` once the user is known, `ResponseComplete` with the answer, for a watch and
//! other long-running requests `ResponseStarted` before it, and `Panic`. A request whose credentials are no good has one event,
//! of the stage `ResponseStarted`.

mod backups;
mod policy;
mod record;
mod sink;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::request::Parts;
use http::{HeaderValue, Response};
use parking_lot::Mutex;
use windlass_core::Env;

use crate::body::Body;
use crate::query::Query;
use crate::request::{Target, Verb};
use windlass_access::User;
use windlass_core::Doc;

pub use policy::{AuditPolicy, AuditPolicyError};

use policy::Level;
use record::{Record, Stage};
use sink::Sink;

/// Where the audit log goes, and how much of it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditOptions {
    /// The file; `-` is the standard output.
    pub path: PathBuf,
    /// Megabytes after which a file is put aside and a new one begun; zero for never.
    pub max_size_mb: u64,
    /// Files that were put aside and are kept; zero for all.
    pub max_backups: usize,
    /// Days after which such a file is removed; zero for never.
    pub max_age_days: u64,
    /// The requests that are logged, and how much of them.
    pub policy: AuditPolicy,
}

impl AuditOptions {
    /// A log with the limits that upstream has.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            max_size_mb: 100,
            max_backups: 100,
            max_age_days: 366,
            policy: AuditPolicy::default(),
        }
    }
}

/// The audit log of a server, if it has one.
#[derive(Debug, Default)]
pub(crate) struct Audit(Option<Arc<Log>>);

/// What all requests share.
#[derive(Debug)]
struct Log {
    sink: Sink,
    env: Env,
    policy: AuditPolicy,
    counts: Arc<Counts>,
}

/// What is counted, under upstream's names.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// `apiserver_audit_event_total`: events that were made.
    pub(crate) events: AtomicU64,
    /// `apiserver_audit_error_total`: events that were not written.
    pub(crate) errors: AtomicU64,
    /// `apiserver_audit_level_total`: requests by the level that the policy gave them.
    levels: [AtomicU64; Level::ALL.len()],
}

impl Counts {
    /// Requests by their level.
    pub(crate) fn by_level(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = Level::ALL.into_iter().zip(&self.levels);
        counts.map(|(level, count)| (level.as_str(), count.load(Ordering::Relaxed)))
    }
}

/// One request on its way. Without an audit log it does nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuditRequest(Option<Arc<Request>>);

#[derive(Debug)]
struct Request {
    log: Arc<Log>,
    record: Mutex<Record>,
}

/// The end of an answer that is sent over a long time. Dropping it says that it has ended.
#[derive(Debug)]
struct Ending(AuditRequest);

impl Audit {
    /// Opens the log.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub(crate) fn open(options: Option<&AuditOptions>, env: &Env) -> std::io::Result<Self> {
        let Some(options) = options else {
            return Ok(Self(None));
        };
        let counts = Arc::new(Counts::default());
        let sink = Sink::open(options, env, &counts)?;
        Ok(Self(Some(Arc::new(Log {
            sink,
            env: env.clone(),
            policy: options.policy.clone(),
            counts,
        }))))
    }

    /// A request has arrived. What is learned of it on its way is noted by the functions of this
    /// module, which find it in its parts.
    pub(crate) fn begin(&self, parts: &mut Parts, id: Option<&HeaderValue>) -> AuditRequest {
        let Some(log) = &self.0 else {
            return AuditRequest(None);
        };
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let target = query.and_then(|query| Target::read(&parts.method, parts.uri.path(), &query));
        // As upstream has it: what cannot be routed is no request of anything.
        let Ok(target) = target else {
            return AuditRequest(None);
        };
        let id = id.and_then(|id| id.to_str().ok()).unwrap_or_default();
        let record = Record::new(parts, &target, id, log.env.now_micro());
        let request = AuditRequest(Some(Arc::new(Request {
            log: Arc::clone(log),
            record: Mutex::new(record),
        })));
        parts.extensions.insert(request.clone());
        request
    }

    /// The counters, if there is a log.
    pub(crate) fn counts(&self) -> Option<&Counts> {
        self.0.as_ref().map(|log| &*log.counts)
    }

    /// Waits for a moment until everything so far is written.
    pub(crate) fn flush(&self) {
        if let Some(log) = &self.0 {
            log.sink.flush();
        }
    }
}

/// The user of a request is known.
pub(crate) fn received(parts: &Parts, user: &User) {
    if let Some(request) = parts.extensions.get::<AuditRequest>() {
        request.set_user(user);
        request.emit(Stage::RequestReceived);
    }
}

/// The user in whose name a request acts is known.
pub(crate) fn acts_as(parts: &Parts, user: &User) {
    if let Some(request) = parts.extensions.get::<AuditRequest>() {
        request.note(|record| record.set_effective_user(user));
    }
}

/// The authorizer has decided.
pub(crate) fn decided(parts: &Parts, user: &User, is_allowed: bool) {
    if let Some(request) = parts.extensions.get::<AuditRequest>() {
        request.note(|record| record.set_decision(user, is_allowed));
    }
}

/// The body of a patch, or of a deletion, has been read. Objects are noted when they are decoded.
pub(crate) fn read_body(parts: &Parts, target: &Target, bytes: &[u8]) {
    let Some(request) = parts.extensions.get::<AuditRequest>() else {
        return;
    };
    let Target::Resource(path) = target else {
        return;
    };
    if bytes.is_empty() || !request.logs_bodies() {
        return;
    }
    let parse = || {
        let text = std::str::from_utf8(bytes).ok()?;
        let parsed = Doc::parse(bytes).ok();
        parsed.or_else(|| Doc::parse_yaml(text).ok()?.into_iter().next())
    };
    let body = match path.verb {
        Some(Verb::Patch) => parse(),
        // Upstream tells options in its internal version.
        Some(Verb::Delete | Verb::DeleteCollection) => parse().and_then(|options| {
            let options = options.with("/kind", "DeleteOptions").ok()?;
            options.with("/apiVersion", "meta.k8s.io/__internal").ok()
        }),
        _ => None,
    };
    if let Some(body) = body {
        request.note(|record| record.set_request_body(&body));
    }
}

impl AuditRequest {
    /// Adds what admission has to say. The first value of a key stays.
    pub(crate) fn annotate(&self, annotations: Vec<(String, String)>) {
        if !annotations.is_empty() {
            self.note(|record| record.annotate(annotations));
        }
    }

    /// The object of the request is decoded; `defaulted` makes it whole for the log.
    pub(crate) fn decoded(&self, object: &Doc, defaulted: impl FnOnce(Doc) -> Doc) {
        if self.0.is_none() {
            return;
        }
        match self.logs_bodies() {
            true => {
                let whole = defaulted(object.clone());
                self.note(|record| record.set_request_object(&whole));
            }
            false => self.note(|record| record.set_request_object(object)),
        }
    }

    fn logs_bodies(&self) -> bool {
        let level = |request: &Arc<Request>| request.record.lock().level();
        self.0.as_ref().map(level) >= Some(Level::Request)
    }

    fn set_user(&self, user: &User) {
        let Some(request) = &self.0 else { return };
        let level = {
            let mut record = request.record.lock();
            record.set_user(user, &request.log.policy);
            record.level()
        };
        request.log.counts.levels[level as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The handler of the request has panicked.
    pub(crate) fn panicked(&self) {
        self.note(Record::set_panic);
        self.emit(Stage::Panic);
    }

    /// The request is answered. A watch goes on until its body is dropped.
    pub(crate) fn completed(&self, response: &mut Response<Body>) {
        let Some(request) = &self.0 else { return };
        let (code, is_watch) = (response.status().as_u16(), response.body().is_watch());
        let stage = {
            let mut record = request.record.lock();
            if record.has_ended() {
                return;
            }
            record.set_answer(code, response.body().as_doc());
            record.config(&request.log.policy);
            let is_logged = record.level() == Level::RequestResponse && record.is_of_resource();
            if let Some(body) = is_logged.then(|| response.body().to_doc()).flatten() {
                record.set_response_object(&body);
            }
            record.answer_stage(is_watch)
        };
        if stage == Stage::ResponseComplete && request.record.lock().is_long_running() {
            self.emit(Stage::ResponseStarted);
        }
        self.emit(stage);
        if stage == Stage::ResponseStarted && is_watch {
            response.body_mut().hold(Box::new(Ending(self.clone())));
        }
    }

    fn note(&self, change: impl FnOnce(&mut Record)) {
        if let Some(request) = &self.0 {
            change(&mut request.record.lock());
        }
    }

    fn emit(&self, stage: Stage) {
        let Some(request) = &self.0 else { return };
        let log = &request.log;
        let line = {
            let mut record = request.record.lock();
            let config = record.config(&log.policy);
            if config.level == Level::None || config.omit_stages.contains(stage) {
                return;
            }
            record.line(stage, log.env.now_micro())
        };
        log.counts.events.fetch_add(1, Ordering::Relaxed);
        log.sink.send(line);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.emit(Stage::ResponseComplete);
    }
}
