//! The answers of the metrics and health servers.

use std::{
    fmt::Write as _,
    sync::{Arc, Weak},
};

use http::{HeaderValue, Method, StatusCode, Uri};
use prometheus_client::{encoding::text, registry::Registry};
use windlass_core::Key;

use super::Inner;
use crate::{
    health::{self, Check},
    metrics::register_cache_sizes,
};

pub(super) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// A status, a content type and a text.
type Answer = (StatusCode, HeaderValue, String);

/// The paths of one server.
pub(super) struct Endpoints {
    inner: Weak<Inner>,
    has_health: bool,
    has_metrics: bool,
    live: Vec<Check>,
    ready: Vec<Check>,
}

impl Endpoints {
    pub(super) fn all(inner: &Arc<Inner>) -> Self {
        let added = inner.added.lock();
        let live = [Check::ping()]
            .into_iter()
            .chain(added.live.iter().cloned());
        let ready = [Check::ping(), inner.caches_check()]
            .into_iter()
            .chain(added.ready.iter().cloned());
        Self {
            inner: Arc::downgrade(inner),
            has_health: true,
            has_metrics: true,
            live: live.collect(),
            ready: ready.collect(),
        }
    }

    pub(super) fn health(inner: &Arc<Inner>) -> Self {
        Self {
            has_metrics: false,
            ..Self::all(inner)
        }
    }

    pub(super) fn metrics(inner: &Arc<Inner>) -> Self {
        Self {
            has_health: false,
            ..Self::all(inner)
        }
    }

    pub(super) fn describe(&self) -> &'static str {
        match (self.has_health, self.has_metrics) {
            (true, false) => "health probes",
            (false, true) => "metrics",
            _ => "health probes and metrics",
        }
    }

    pub(super) fn answer(&self, method: &Method, uri: &Uri) -> Answer {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return (
                StatusCode::METHOD_NOT_ALLOWED,
                TEXT,
                "method not allowed\n".to_owned(),
            );
        }
        let (path, query) = (uri.path().trim_end_matches('/'), uri.query().unwrap_or(""));
        let mut parts = path.trim_start_matches('/').split('/');
        match (parts.next().unwrap_or(""), parts.next(), parts.next()) {
            (endpoint @ ("healthz" | "livez"), only, None) if self.has_health => {
                health_answer(endpoint, &self.live, only, query)
            }
            ("readyz", only, None) if self.has_health => {
                health_answer("readyz", &self.ready, only, query)
            }
            ("metrics", None, None) if self.has_metrics => self.metrics_answer(),
            ("debug", Some("windlass"), Some(page)) if self.has_metrics => {
                self.debug_answer(page, query)
            }
            _ => not_found(),
        }
    }

    fn metrics_answer(&self) -> Answer {
        match self.inner.upgrade() {
            Some(inner) => (StatusCode::OK, OPEN_METRICS, inner.metrics_text()),
            None => not_found(),
        }
    }

    fn debug_answer(&self, page: &str, query: &str) -> Answer {
        let Some(inner) = self.inner.upgrade() else {
            return not_found();
        };
        let text = match page {
            "informers" => inner.informers_text(),
            "queues" => inner.queues_text(),
            "why" => {
                let key = parameter(query, "key");
                let Some(key) = key.and_then(|key| key.parse::<Key>().ok()) else {
                    let text = "name a key: ?key=namespace/name\n".to_owned();
                    return (StatusCode::BAD_REQUEST, TEXT, text);
                };
                inner.why(&key, parameter(query, "controller").as_deref())
            }
            _ => return not_found(),
        };
        (StatusCode::OK, TEXT, text)
    }
}

impl Inner {
    pub(super) fn metrics_text(&self) -> String {
        let mut registry = Registry::default();
        self.metrics.register(&mut registry);
        self.cache_metrics.register(&mut registry);
        self.client.options().metrics.register(&mut registry);
        registry.register_collector(Box::new(self.queues.clone()));
        let added = self.added.lock();
        let sizes = added.controllers.iter();
        register_cache_sizes(&mut registry, sizes.map(|it| (it.name(), it.cache_sizes())));
        for register in &added.metrics {
            register(&mut registry);
        }
        drop(added);
        let mut text = String::new();
        if text::encode(&mut text, &registry).is_err() {
            tracing::error!("the metrics cannot be written");
        }
        text
    }

    fn informers_text(&self) -> String {
        let mut text = String::new();
        for (spec, informer) in self.factory.informers() {
            let state = informer.state();
            let revision = informer
                .revision()
                .map_or_else(String::new, |it| it.to_string());
            let _ = writeln!(
                text,
                "{} namespace={} labels={} fields={} synced={} objects={} revision={revision} phase={:?}",
                spec.resource.group_resource(),
                spec.namespace.as_deref().unwrap_or("*"),
                spec.label_selector,
                spec.field_selector,
                informer.has_synced(),
                informer.lister().len(),
                state.phase,
            );
            if let Some(failure) = state.last_failure {
                let _ = writeln!(text, "  last failure: {failure}");
            }
        }
        text
    }

    fn queues_text(&self) -> String {
        let mut text = String::new();
        for (name, now) in self.queues.queues() {
            let _ = writeln!(
                text,
                "{name} depth={} running={} adds={} retries={} longest_running={:?}",
                now.depth, now.running, now.adds, now.retries, now.longest_running,
            );
        }
        text
    }

    /// The story of a key, for each controller that knows it.
    pub(super) fn why(&self, key: &Key, controller: Option<&str>) -> String {
        let controllers = self.added.lock().controllers.clone();
        let chosen = controllers
            .iter()
            .filter(|it| controller.is_none_or(|name| it.name() == name));
        let mut text = String::new();
        for controller in chosen {
            if let Some(story) = controller.why(key) {
                let _ = write!(text, "{} {key}\n{story}", controller.name());
            }
        }
        if text.is_empty() {
            text = format!("nothing is known of {key}\n");
        }
        text
    }
}

fn health_answer(endpoint: &str, checks: &[Check], only: Option<&str>, query: &str) -> Answer {
    let report = health::report(endpoint, checks, only, query);
    let status = StatusCode::from_u16(report.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, TEXT, report.text)
}

fn not_found() -> Answer {
    (
        StatusCode::NOT_FOUND,
        TEXT,
        "404 page not found\n".to_owned(),
    )
}

fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}
