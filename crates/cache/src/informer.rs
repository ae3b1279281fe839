//! One list and watch of a resource, for any number of readers and handlers.

mod builder;
mod memory;
mod run;
mod sync;

use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::sync::watch;
use windlass_core::{Doc, Gvr, Revision, Str};

use crate::{
    fanout::Fanout,
    fifo::DeltaFifo,
    handler::Handler,
    indexer::{IndexConflict, Indexer, functions::IndexFn},
    listener::Listener,
    lister::Lister,
    metrics::InformerMetrics,
    object::Obj,
    reflector::{Reflector, ReflectorState},
};
pub use builder::InformerBuilder;
pub use memory::MemoryReport;
pub use sync::{Registration, SyncError};

/// The number of notifications that wait for a handler, each by itself, before they are merged by
/// object. As many objects that came and went meanwhile are kept beside them.
pub const BUFFER_LIMIT: usize = 1024;

/// A local copy of the objects of one resource, with handlers that hear of every change.
///
/// It is a handle: clones and [`cast`](Self::cast)s share one copy, one list and one watch. The
/// type only says how objects are read.
///
/// Settings that must not change while it runs, such as the transform or the failure handler, are
/// chosen in its [builder](InformerBuilder) and cannot be set here.
///
/// ```compile_fail
/// # use windlass_cache::SharedInformer;
/// fn change(informer: SharedInformer) -> SharedInformer {
///     informer.transform(|doc| Ok(doc))
/// }
/// ```
/// ```
/// # use windlass_cache::InformerBuilder;
/// fn change(informer: InformerBuilder) -> InformerBuilder {
///     informer.transform(|doc| Ok(doc))
/// }
/// ```
pub struct SharedInformer<K = Doc> {
    pub(crate) shared: Arc<Shared>,
    kind: PhantomData<fn() -> K>,
}

/// The state that all handles of an informer share.
pub(crate) struct Shared {
    /// The name of the objects in messages.
    pub(crate) name: String,
    pub(crate) resource: Gvr,
    pub(crate) store: Arc<Indexer>,
    fifo: Arc<DeltaFifo>,
    fanout: Fanout,
    /// Taken by the first run.
    reflector: Mutex<Option<Reflector>>,
    /// Written by the reflector.
    state: watch::Sender<ReflectorState>,
    /// True if the first complete state has been applied. Written by the run.
    has_synced: watch::Sender<bool>,
    /// The revision that the store reflects. Written after each batch.
    revision: watch::Sender<Option<Revision>>,
    /// True if the run has ended.
    is_stopped: watch::Sender<bool>,
    metrics: InformerMetrics,
    buffer_limit: usize,
    /// Above how many bytes a warning is due.
    memory_budget: Option<usize>,
}

/// The informer has stopped, and takes no handlers or indices any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// It has stopped.
    #[error("{what} was not added to shared informer because it has stopped already")]
    Stopped {
        /// The thing that was to be added.
        what: String,
    },
    /// The name of the index is taken.
    #[error(transparent)]
    Conflict(#[from] IndexConflict),
}

/// The options of a handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandlerOptions {
    /// The resync period of the handler: `None` for the informer's, zero for never. At least a
    /// second, and at least the period at which the informer checks (see
    /// [`InformerBuilder::resync`]).
    pub resync: Option<Duration>,
    /// The number of notifications that wait before they are merged by object; `None` for the
    /// informer's limit, or [`BUFFER_LIMIT`].
    pub buffer_limit: Option<usize>,
}

impl<K: 'static> SharedInformer<K> {
    /// The same informer, whose objects are read as another type.
    #[must_use]
    pub fn cast<T>(&self) -> SharedInformer<T> {
        SharedInformer {
            shared: self.shared.clone(),
            kind: PhantomData,
        }
    }

    /// Reads the cache.
    #[must_use]
    pub fn lister(&self) -> Lister<K> {
        Lister::new(self.shared.store.clone())
    }

    /// The resource that is watched.
    #[must_use]
    pub fn resource(&self) -> &Gvr {
        &self.shared.resource
    }

    /// Adds a handler. It is first told of every object that is there, each once, and then of
    /// every change, without a gap and without a repetition; whether it comes before the informer
    /// runs or long after.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn add_handler<H: Handler<K>>(&self, handler: H) -> Result<Registration, AddError> {
        self.add_handler_with(handler, HandlerOptions::default())
    }

    /// Adds a handler with options of its own.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn add_handler_with<H: Handler<K>>(
        &self,
        handler: H,
        options: HandlerOptions,
    ) -> Result<Registration, AddError> {
        let limit = options.buffer_limit.unwrap_or(self.shared.buffer_limit);
        let listener = Arc::new(Listener::new(limit, self.shared.metrics.clone()));
        let delivery = Box::pin(listener.clone().deliver::<K, H>(handler));
        let added = self.shared.fanout.add(&listener, delivery, options.resync);
        added.map_err(|_| AddError::Stopped {
            what: format!("handler {}", std::any::type_name::<H>()),
        })?;
        Ok(Registration::new(listener))
    }

    /// Removes a handler. The call in progress ends, and what it has not been told it never will
    /// be. Returns whether it was a handler of this informer and not removed before.
    #[expect(clippy::must_use_candidate, reason = "removing is what matters")]
    pub fn remove_handler(&self, registration: &Registration) -> bool {
        self.shared.fanout.remove(registration.listener())
    }

    /// The number of handlers.
    #[must_use]
    pub fn handlers(&self) -> usize {
        self.shared.fanout.len()
    }

    /// Adds an index, also while the informer runs; it is complete at once.
    ///
    /// # Errors
    /// When the name is taken or the informer has stopped.
    pub fn add_index(
        &self,
        name: &str,
        values: impl Fn(&Obj) -> Vec<Str> + Send + Sync + 'static,
    ) -> Result<(), AddError> {
        self.add_indices([(name, Arc::new(values) as IndexFn)])
    }

    /// Adds several indices, or none.
    ///
    /// # Errors
    /// When one of the names is taken or the informer has stopped.
    pub fn add_indices<'a>(
        &self,
        indices: impl IntoIterator<Item = (&'a str, IndexFn)>,
    ) -> Result<(), AddError> {
        if self.is_stopped() {
            return Err(AddError::Stopped {
                what: "indexer".to_owned(),
            });
        }
        Ok(self.shared.store.add_indices(indices)?)
    }

    /// The revision that the cache reflects: everything up to it is in, nothing after it.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.shared.revision.borrow().clone()
    }

    /// The state of the reflector, with its last failure.
    #[must_use]
    pub fn state(&self) -> ReflectorState {
        self.shared.state.borrow().clone()
    }

    /// Follows what the reflector is doing.
    #[must_use]
    pub fn watch_state(&self) -> watch::Receiver<ReflectorState> {
        self.shared.state.subscribe()
    }

    /// Returns true if the first complete state is in the cache and on its way to the handlers.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        *self.shared.has_synced.borrow()
    }

    /// Returns true if the informer has run and stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.shared.fanout.is_stopped()
    }
}

impl<K> Clone for SharedInformer<K> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for SharedInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformer")
            .field("name", &self.shared.name)
            .field("store", &self.shared.store)
            .field("state", &*self.shared.state.borrow())
            .finish_non_exhaustive()
    }
}
