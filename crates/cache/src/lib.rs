//! Informers: a local, indexed copy of the objects of a kind, kept up to date by a watch.

mod backoff;
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
mod tree;

pub use backoff::BackoffPolicy;
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
    WATCH_TIMEOUT_MIN,
};
pub use resource::ResourceSource;
pub use resync::RESYNC_MIN;
pub use source::{
    BoxFuture, BoxWatch, EventError, ListRequest, ListWatch, Page, Reason, SourceError,
    Undecodable, Watch, WatchRequest,
};
