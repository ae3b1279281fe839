//! Priority and fairness: which requests run, and which wait.
//!
//! Upstream's model. A flow schema puts a request into a priority level; the level has seats, and
//! queues for the requests that find none. Flow schemas and levels are the stored objects, and
//! changing them acts at once. Exempt requests (`system:masters`, health checks) never wait. A user
//! who floods waits in the queues of their own flow, and the others are served in between.

mod config;
mod estimate;
mod level;
mod memo;
mod queue;
mod schema;
mod stats;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{HeaderName, HeaderValue, Response};
use parking_lot::{Mutex, RwLock};
use tokio::time::Instant;

use config::{FlowConfig, FlowObjects};
use level::LevelSeat;
use schema::{Distinguisher, Schema};
use stats::Counted;
pub(crate) use stats::{FlowStats, Rejection, WAIT_BOUNDS, WaitHistogram};

use crate::body::Body;
pub(crate) use crate::overload::overloaded;
use crate::query::Query;
use crate::request::{Target, Verb};
use crate::respond;
use crate::storage::Storage;
use windlass_access::User;
use windlass_rules::status::Status;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const SCHEMA_HEADER: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_HEADER: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// The requests in flight and those that wait.
#[derive(Debug)]
pub(crate) struct Flow {
    config: RwLock<Arc<FlowConfig>>,
    /// Names and resource versions of the objects that the configuration was read from.
    versions: Mutex<Vec<(String, String)>>,
    reads: AtomicUsize,
    writes: AtomicUsize,
}

/// A request that was put into its priority level.
#[derive(Debug)]
pub(crate) struct FlowRequest {
    schema: Arc<Schema>,
    /// The flow: its name among those of the schema.
    flow: String,
    seats: usize,
    sort: RequestSort,
}

/// The sorts of requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestSort {
    ReadOnly,
    Mutating,
    /// Counted elsewhere.
    LongRunning,
}

/// Figures of a priority level.
#[derive(Debug)]
pub(crate) struct LevelReport {
    pub(crate) name: String,
    pub(crate) nominal: usize,
    pub(crate) lower: usize,
    pub(crate) upper: usize,
}

/// Figures of a flow schema in a level.
#[derive(Debug)]
pub(crate) struct SchemaReport {
    pub(crate) level: String,
    pub(crate) name: String,
    pub(crate) stats: Arc<FlowStats>,
}

/// Counts a request in flight as long as it is held.
struct InFlight<'a>(Option<&'a AtomicUsize>);

impl Default for Flow {
    fn default() -> Self {
        let config = FlowConfig::read(FlowObjects::built_in(), None);
        Self {
            config: RwLock::new(Arc::new(config)),
            versions: Mutex::default(),
            reads: AtomicUsize::new(0),
            writes: AtomicUsize::new(0),
        }
    }
}

impl Flow {
    /// Reads flow schemas and priority levels again, if they changed.
    pub(crate) fn reload(&self, storage: &Storage) {
        let docs = |plural: &str| {
            let snapshot = storage.snapshot_of(GROUP, plural);
            snapshot.iter().map(|entry| entry.doc().clone()).collect()
        };
        let objects = FlowObjects {
            schemas: docs("flowschemas"),
            levels: docs("prioritylevelconfigurations"),
        };
        let version = |doc: &windlass_core::Doc| {
            let version = doc.str_at("/metadata/resourceVersion");
            (doc.meta().name().to_owned(), version.to_owned())
        };
        let all = objects.schemas.iter().chain(&objects.levels);
        let versions: Vec<(String, String)> = all.map(version).collect();
        let mut known = self.versions.lock();
        if *known == versions {
            return;
        }
        let before = Arc::clone(&self.config.read());
        let config = Arc::new(FlowConfig::read(objects, Some(&before)));
        *self.config.write() = config;
        *known = versions;
    }

    /// Puts a request into its priority level.
    pub(crate) fn classify(
        &self,
        user: &User,
        target: &Target,
        query: &Query,
        storage: &Storage,
    ) -> FlowRequest {
        let config = Arc::clone(&self.config.read());
        let schema = Arc::clone(config.classify(user, target));
        let (flow, seats) = match schema.level.kind {
            level::LevelKind::Exempt => (String::new(), 1),
            level::LevelKind::Limited(_) => {
                let seats = estimate::seats(target, query, storage, &schema.level);
                (flow_of(schema.distinguisher, user, target), seats)
            }
        };
        FlowRequest {
            schema,
            flow,
            seats,
            sort: sort(target),
        }
    }

    /// Runs a request when it has its seats, or refuses it. The answer names its schema and level.
    pub(crate) async fn run<F>(
        &self,
        request: FlowRequest,
        work: F,
    ) -> Result<Response<Body>, Status>
    where
        F: Future<Output = Result<Response<Body>, Status>>,
    {
        let answer = match request.enter().await {
            Err(_) => Err(overloaded()),
            Ok(_seat) => {
                let stats = &request.schema.stats;
                let _counted =
                    Counted::new(&stats.executing, &stats.executing_seats, request.seats);
                let _in_flight = self.enter_flight(request.sort);
                work.await
            }
        };
        let mut response = answer.unwrap_or_else(|status| respond::status(&status));
        request.mark(&mut response);
        Ok(response)
    }

    /// Requests in flight that only read, and that may write.
    pub(crate) fn in_flight(&self) -> (usize, usize) {
        let load = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        (load(&self.reads), load(&self.writes))
    }

    /// Figures of the priority levels.
    pub(crate) fn levels(&self) -> Vec<LevelReport> {
        let config = Arc::clone(&self.config.read());
        let report = |level: &Arc<level::Level>| {
            let limits = level.limits();
            LevelReport {
                name: level.name.clone(),
                nominal: limits.nominal,
                lower: limits.nominal - limits.lendable,
                upper: (limits.nominal + limits.borrowing).min(config::SEATS_TOTAL),
            }
        };
        config.levels.values().map(report).collect()
    }

    /// Figures of the flow schemas.
    pub(crate) fn schemas(&self) -> Vec<SchemaReport> {
        let config = Arc::clone(&self.config.read());
        let report = |schema: &Arc<Schema>| SchemaReport {
            level: schema.level.name.clone(),
            name: schema.name.clone(),
            stats: Arc::clone(&schema.stats),
        };
        config.schemas.iter().map(report).collect()
    }

    fn enter_flight(&self, sort: RequestSort) -> InFlight<'_> {
        let count = match sort {
            RequestSort::ReadOnly => &self.reads,
            RequestSort::Mutating => &self.writes,
            RequestSort::LongRunning => return InFlight(None),
        };
        count.fetch_add(1, Ordering::Relaxed);
        InFlight(Some(count))
    }
}

impl FlowRequest {
    /// Waits for the seats.
    async fn enter(&self) -> Result<LevelSeat, Rejection> {
        let (schema, stats) = (&self.schema, &self.schema.stats);
        let mut wait = None;
        let hash = || {
            wait = Some(Wait::new(stats, self.seats));
            hash(&schema.name, &self.flow)
        };
        let outcome = schema.level.enter(self.seats, hash).await;
        match &outcome {
            Ok(_) => drop(stats.dispatched.fetch_add(1, Ordering::Relaxed)),
            Err(why) => stats.reject(*why),
        }
        if let Some(wait) = wait {
            wait.end(outcome.is_ok());
        }
        outcome
    }

    /// Names the schema and the level in an answer. Their names are nobody's business.
    fn mark(&self, response: &mut Response<Body>) {
        let headers = response.headers_mut();
        let uid = |uid: &HeaderValue| uid.clone();
        headers.insert(SCHEMA_HEADER, uid(&self.schema.uid));
        headers.insert(LEVEL_HEADER, uid(&self.schema.level.uid));
    }
}

/// A request that waits, counted as long as it does.
struct Wait<'a> {
    stats: &'a FlowStats,
    since: Instant,
    is_over: bool,
    _counted: Counted<'a>,
}

impl<'a> Wait<'a> {
    fn new(stats: &'a FlowStats, seats: usize) -> Self {
        Self {
            stats,
            since: Instant::now(),
            is_over: false,
            _counted: Counted::new(&stats.waiting, &stats.waiting_seats, seats),
        }
    }

    fn end(mut self, is_served: bool) {
        self.is_over = true;
        match is_served {
            true => self.stats.waited(self.since.elapsed()),
            false => self.stats.waited_in_vain(self.since.elapsed()),
        }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.stats.reject(Rejection::Cancelled);
            self.stats.waited_in_vain(self.since.elapsed());
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn flow_of(distinguisher: Distinguisher, user: &User, target: &Target) -> String {
    match (distinguisher, target) {
        (Distinguisher::User, _) => user.name.clone(),
        (Distinguisher::Namespace, Target::Resource(path)) => path.namespace.clone(),
        _ => String::new(),
    }
}

fn sort(target: &Target) -> RequestSort {
    let is_read = match target {
        Target::Resource(path) => match path.verb {
            Some(Verb::Watch) => return RequestSort::LongRunning,
            verb => verb.is_some_and(Verb::is_read),
        },
        Target::Path { verb, .. } => matches!(verb.as_str(), "get" | "head"),
    };
    match is_read {
        true => RequestSort::ReadOnly,
        false => RequestSort::Mutating,
    }
}

/// A hash of a flow that is the same in every process: FNV-1a, its bits mixed once more because
/// hands are dealt from all of them.
fn hash(schema: &str, flow: &str) -> u64 {
    let bytes = schema.bytes().chain([0]).chain(flow.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}
