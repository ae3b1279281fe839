//! Keeps a queue supplied with what happens to the objects of one resource.

mod collect;
mod pager;
mod state;
mod watch;
mod watch_list;

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch as channel},
    time::{Instant, sleep},
};
use windlass_core::{Doc, Env, Gvk, Key, Revision};

use crate::{
    backoff::{Backoff, BackoffPolicy, RetryWindow},
    fifo::DeltaFifo,
    metrics::InformerMetrics,
    object::Obj,
    source::{BoxWatch, ListRequest, ListWatch, Reason, SourceError, Undecodable},
};
use pager::Listed;
pub use state::{Failure, Phase, ReflectorState};

/// The shortest time after which a server is asked to end a watch. The longest is twice that.
pub const WATCH_TIMEOUT_MIN: Duration = Duration::from_secs(300);

/// The number of objects on a page of a list.
pub const PAGE_LIMIT: u32 = 500;

/// The number of complete states that the reflectors of one factory read at the same time. A
/// process that starts, or whose server was restarted, would otherwise ask for everything at once,
/// and hold all of it in memory twice.
pub const STARTS_LIMIT: usize = 10;

/// The number of unreadable objects that a reflector knows by name.
const UNREADABLE_LIMIT: usize = 64;

/// The options of a reflector.
#[derive(Clone)]
pub struct ReflectorOptions {
    /// The name of the objects in messages, such as `pods`.
    pub name: String,
    /// The kind that objects must have; others are skipped. `None` takes any.
    pub kind: Option<Gvk>,
    /// Objects per page; zero leaves the choice to the reflector, which is [`PAGE_LIMIT`] or, where
    /// the server can answer from memory, everything at once.
    pub page_limit: u32,
    /// The shortest time until a watch ends; less than [`WATCH_TIMEOUT_MIN`] counts as that.
    pub watch_timeout_min: Duration,
    /// True to start with a streaming list (WatchList) where the source supports it.
    pub use_watch_list: bool,
    /// The back-off after failures.
    pub backoff: BackoffPolicy,
    /// For how long a row of internal errors of the server leads to a new watch at once rather
    /// than to a new list; zero for never.
    pub internal_error_retry: Duration,
    /// Called with every failure.
    pub on_failure: Option<OnFailure>,
    /// Permits to read a complete state, shared with other reflectors; `None` to ask nobody. One
    /// that waits after a failure gives its permit back.
    pub starts: Option<Arc<Semaphore>>,
}

/// A function that is called with each failure of a reflector.
pub type OnFailure = Arc<dyn Fn(&Failure) + Send + Sync>;

impl fmt::Debug for ReflectorOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReflectorOptions")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("use_watch_list", &self.use_watch_list)
            .finish_non_exhaustive()
    }
}

impl Default for ReflectorOptions {
    fn default() -> Self {
        Self {
            name: "objects".to_owned(),
            kind: None,
            page_limit: 0,
            watch_timeout_min: WATCH_TIMEOUT_MIN,
            use_watch_list: true,
            backoff: BackoffPolicy::default(),
            internal_error_retry: Duration::ZERO,
            on_failure: None,
            starts: None,
        }
    }
}

/// Keeps a [`DeltaFifo`] supplied with what happens to the objects of one resource.
///
/// A reflector takes a consistent start, by a watch that begins with the objects that exist or by
/// a list, and then follows the watch for as long as the server lets it. Whatever goes wrong it
/// starts again, as far back as it has to and no further: a watch that ends is resumed, a version
/// that is too old is listed anew, a server that is away is waited for.
pub struct Reflector {
    source: Arc<dyn ListWatch>,
    fifo: Arc<DeltaFifo>,
    env: Env,
    options: ReflectorOptions,
    metrics: InformerMetrics,
    state: channel::Sender<ReflectorState>,
    backoff: Backoff,
    internal_errors: RetryWindow,
    /// The version up to which everything is queued, as the server wrote it; empty before the
    /// first list. A watch is resumed from here.
    version: String,
    /// The verb of the last request, for messages.
    verb: &'static str,
    /// The server no longer or not yet has `version`: ask for the latest state instead.
    is_version_unavailable: bool,
    /// A list at any version came in pages: the server does not answer lists from memory.
    is_paginated: bool,
    /// Until when a failed attempt keeps the reflector from starting by a watch.
    lists_until: Option<Instant>,
    /// The permit to read a complete state, while one is read.
    permit: Option<OwnedSemaphorePermit>,
    /// Objects whose last event or list item could not be read, by key. Bounded.
    unreadable: BTreeSet<String>,
}

impl Reflector {
    /// A reflector that has not started.
    #[must_use]
    pub fn new(
        source: Arc<dyn ListWatch>,
        fifo: Arc<DeltaFifo>,
        env: Env,
        options: ReflectorOptions,
    ) -> Self {
        Self {
            source,
            fifo,
            env,
            metrics: InformerMetrics::default(),
            state: channel::Sender::new(ReflectorState::default()),
            backoff: Backoff::new(options.backoff),
            internal_errors: RetryWindow::new(options.internal_error_retry),
            options,
            version: String::new(),
            verb: "list",
            is_version_unavailable: false,
            is_paginated: false,
            lists_until: None,
            permit: None,
            unreadable: BTreeSet::new(),
        }
    }

    /// Counts into these metrics.
    #[must_use]
    pub(crate) fn with_metrics(mut self, metrics: InformerMetrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// The state of the reflector, now and in the future.
    #[must_use]
    pub fn state(&self) -> channel::Receiver<ReflectorState> {
        self.state.subscribe()
    }

    pub(crate) fn publish_to(&mut self, state: channel::Sender<ReflectorState>) {
        self.state = state;
    }

    /// Works until `stop` is there. Then the watch is closed and a request on its way abandoned.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = stop => {}
            () = self.work() => {}
        }
        self.state.send_modify(|state| state.phase = Phase::Stopped);
    }

    async fn work(&mut self) {
        loop {
            let error = self.list_and_watch().await;
            self.pause(error).await;
        }
    }

    /// One round: a start and everything after it. Returns why the round had to end.
    async fn list_and_watch(&mut self) -> SourceError {
        let open = match self.start().await {
            Ok(open) => open,
            Err(error) => return error,
        };
        self.watch(open).await
    }

    /// Queues a complete state. Returns the watch that it came from, if it came from one.
    async fn start(&mut self) -> Result<Option<BoxWatch>, SourceError> {
        let now = Instant::now();
        let may_stream = self.options.use_watch_list
            && self.source.supports_watch_list()
            && self.lists_until.is_none_or(|until| until <= now);
        if may_stream {
            match self.watch_list().await {
                Ok(open) => return Ok(Some(open)),
                // A list would fail for the same reason, and its answer says no more.
                Err(error) if error.needs_action() => return Err(error),
                Err(error) => self.note_fallback(&error),
            }
        }
        self.list().await.map(|()| None)
    }

    /// Waits until this reflector may read a complete state.
    async fn admit(&mut self) {
        let Some(starts) = self.options.starts.clone() else {
            return;
        };
        if self.permit.is_some() {
            return;
        }
        self.permit = match Arc::clone(&starts).try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => {
                self.enter(Phase::InLine);
                // Nobody closes the semaphore; if somebody did there would be nothing to limit.
                starts.acquire_owned().await.ok()
            }
        };
    }

    async fn list(&mut self) -> Result<(), SourceError> {
        self.admit().await;
        self.enter(Phase::Listing);
        self.verb = "list";
        let started = Instant::now();
        let mut outcome = self.list_pages().await;
        if matches!(&outcome, Err(error) if error.is_version_unavailable()) {
            self.is_version_unavailable = true;
            outcome = self.list_pages().await;
        }
        let listed = outcome?;
        self.is_version_unavailable = false;
        self.metrics.listed(started.elapsed(), listed.items.len());
        self.forget_unreadable();
        let kept: Vec<Key> = listed
            .undecodable
            .into_iter()
            .filter_map(|it| self.skip(it))
            .collect();
        let objects = listed
            .items
            .into_iter()
            .filter_map(|doc| self.object(doc))
            .collect();
        self.replace(objects, &kept, listed.resource_version);
        Ok(())
    }

    async fn list_pages(&mut self) -> Result<Listed, SourceError> {
        let resource_version = match (self.is_version_unavailable, &*self.version) {
            (true, _) => String::new(),
            (false, "") => "0".to_owned(),
            (false, version) => version.to_owned(),
        };
        let is_any = resource_version == "0";
        let limit = match self.options.page_limit {
            0 if !self.is_paginated && !is_any && !resource_version.is_empty() => 0,
            0 => PAGE_LIMIT,
            limit => limit,
        };
        let request = ListRequest {
            resource_version,
            limit,
            continue_token: String::new(),
        };
        let listed = pager::list_all(&*self.source, request).await?;
        self.is_paginated |= is_any && listed.is_paginated;
        Ok(listed)
    }

    /// Queues a complete state, which the cache is then brought to in one step. Objects that are
    /// there but could not be read are kept as they were.
    fn replace(&mut self, objects: Vec<Obj>, kept: &[Key], version: String) {
        for (key, error) in self
            .fifo
            .replace_keeping(objects, kept, version.parse().ok())
        {
            tracing::error!(resource = %self.options.name, %key, %error, "object kept as it was");
            self.note_unreadable(Some(&key));
        }
        self.permit = None;
        self.version = version;
        self.metrics
            .reached(self.version.parse::<Revision>().ok().as_ref());
        self.state.send_modify(|state| {
            state.last_failure = None;
            state.has_listed = true;
        });
    }

    /// The object of a document, if it is one that the cache can hold.
    fn object(&mut self, doc: Doc) -> Option<Obj> {
        if let Some(expected) = &self.options.kind
            && doc.gvk().is_some_and(|kind| kind != *expected)
        {
            tracing::error!(resource = %self.options.name, %expected, kind = doc.str_at("/kind"), "object of another kind skipped");
            self.note_unreadable(None);
            return None;
        }
        match Obj::new(doc) {
            Ok(object) => Some(object),
            Err(error) => {
                tracing::error!(resource = %self.options.name, %error, "object skipped");
                self.note_unreadable(None);
                None
            }
        }
    }

    /// Notes an object that could not be decoded; gives its key, if that is known.
    fn skip(&mut self, object: Undecodable) -> Option<Key> {
        tracing::error!(resource = %self.options.name, error = %object, "object kept as it was");
        self.note_unreadable(object.key.as_ref());
        object.key
    }

    /// Remembers that an object could not be read; says whether that is news.
    fn note_unreadable(&mut self, key: Option<&Key>) -> bool {
        self.metrics.unreadable();
        let is_news = self.unreadable.len() < UNREADABLE_LIMIT
            && self
                .unreadable
                .insert(key.map_or_else(String::new, Key::to_string));
        let unreadable = self.unreadable.len();
        self.state
            .send_modify(|state| state.unreadable = unreadable);
        is_news
    }

    fn forget_unreadable(&mut self) {
        self.unreadable.clear();
        self.state.send_modify(|state| state.unreadable = 0);
    }

    fn note_fallback(&mut self, error: &SourceError) {
        tracing::debug!(resource = %self.options.name, %error, "the watch did not begin with a complete state, listing");
    }

    /// Waits after a failure, and says why.
    async fn pause(&mut self, error: SourceError) {
        self.permit = None;
        let now = Instant::now();
        let delay = self.backoff.delay(now, &self.env);
        self.metrics.failed(error.reason);
        let failure = Failure {
            verb: self.verb,
            resource: self.options.name.clone(),
            error,
        };
        match failure.error.reason {
            Reason::Expired => tracing::debug!(%failure, "starting anew"),
            reason => tracing::warn!(%failure, reason = reason.as_str(), ?delay, "trying again"),
        }
        if let Some(on_failure) = &self.options.on_failure {
            on_failure(&failure);
        }
        self.state.send_modify(|state| {
            state.phase = Phase::Waiting { until: now + delay };
            state.failures += 1;
            state.last_failure = Some(failure);
        });
        sleep(delay).await;
    }

    fn enter(&self, phase: Phase) {
        self.state.send_modify(|state| state.phase = phase);
    }

    /// A time to end a watch at, drawn anew each time so that watches do not end together.
    fn watch_timeout(&self) -> Duration {
        let min = self.options.watch_timeout_min.max(WATCH_TIMEOUT_MIN);
        Duration::from_secs(self.env.jitter(min, 1.0).as_secs())
    }
}

impl fmt::Debug for Reflector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflector")
            .field("name", &self.options.name)
            .field("version", &self.version)
            .field("state", &*self.state.borrow())
            .finish_non_exhaustive()
    }
}
