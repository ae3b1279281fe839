//! Informers: a local, indexed copy of the objects of a resource, kept up to date by a watch.
//!
//! ```text
//! ListWatch ──▶ Reflector ──▶ DeltaFifo ──▶ SharedInformer ─┬─▶ Indexer ◀── Lister
//!                                                            └─▶ handlers
//! ```
//!
//! - A [`Reflector`] takes a consistent start and follows the watch, through whatever happens to
//!   connections and servers. It says what it is doing ([`ReflectorState`]).
//! - A [`DeltaFifo`] holds what has changed, in the order of the watch.
//! - A [`SharedInformer`] applies it in batches to an [`Indexer`] and tells its [`Handler`]s: one
//!   list and one watch for any number of them, whenever they come.
//! - A [`Lister`] reads the indexer. Readers never wait, and a [`Snapshot`] never changes.
//! - An [`InformerFactory`] keeps one informer per resource, and starts and stops them.
//!
//! Three promises hold throughout:
//!
//! - **The cache is a state that the server had.** A batch becomes visible at once, with the
//!   revision that it ends at ([`SharedInformer::revision`]), and a list replaces everything in
//!   one step.
//! - **A handler misses nothing that matters.** For each object it hears of an addition, of
//!   updates that each start where the call before ended, and of a deletion. A handler that is too
//!   slow skips states in between, which is counted, and never the last one.
//! - **Nothing grows without a bound**, and nothing is dropped without a counter.
//!
//! Objects are [`Obj`]s: shared, immutable, decoded when and as far as somebody wants them to be.
//!
//! Deliberately absent: a way to change a cached object, informers that a read starts implicitly,
//! and one cache per Rust type; the type of an informer only says how its objects are read.
//!
//! ```no_run
//! use windlass_cache::{InformerFactory, Obj, on_any};
//! use windlass_client::{Config, RestClient};
//! use windlass_core::Gvr;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = RestClient::connect(&Config::load().await?).await?;
//! let factory = InformerFactory::new(client);
//! let pods = factory.dynamic(Gvr::constant("", "v1", "pods"));
//! pods.add_handler(on_any(|pod: Obj| println!("{}", pod.key())))?;
//! factory.start();
//! factory.wait_for_sync().await?;
//! println!("{} pods at revision {:?}", pods.lister().len(), pods.revision());
//! factory.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod backoff;
mod derived;
mod factory;
mod fanout;
mod fifo;
mod handler;
mod indexer;
mod informer;
mod listener;
mod lister;
mod metrics;
mod object;
mod process;
mod reflector;
mod resource;
mod resync;
mod source;
mod tracker;
mod tree;
mod ttl;

pub use backoff::BackoffPolicy;
pub use derived::{Lazy, Undelta};
pub use factory::{ClientFactoryBuilder, FactoryBuilder, InformerFactory, InformerSpec};
pub use fifo::{
    BATCH_LIMIT, Batch, ByKey, Delta, DeltaFifo, DeltaQueue, Deltas, FIFO_LIMIT, InOrder, Listing,
    Popped, Transform, TransformError,
};
pub use handler::{Filtered, Handler, HandlerFns, on_any};
pub use indexer::{
    IndexConflict, Indexer, Replacement, Snapshot, Transaction, UnknownIndex, functions,
};
pub use informer::{
    AddError, BUFFER_LIMIT, HandlerOptions, InformerBuilder, MemoryReport, Registration,
    SharedInformer, SyncError,
};
pub use lister::Lister;
pub use metrics::Metrics;
pub use object::{Deleted, Obj, UnnamedObject};
pub use reflector::{
    Failure, OnFailure, PAGE_LIMIT, Phase, Reflector, ReflectorOptions, ReflectorState,
    STARTS_LIMIT, WATCH_TIMEOUT_MIN,
};
pub use resource::ResourceSource;
pub use resync::RESYNC_MIN;
pub use source::{
    BoxFuture, BoxWatch, EventError, ListRequest, ListWatch, Page, Reason, SourceError,
    Undecodable, Watch, WatchRequest,
};
pub use tracker::SyncTracker;
pub use ttl::TtlStore;
