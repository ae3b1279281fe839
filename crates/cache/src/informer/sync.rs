//! Waiting for an informer.

use std::{fmt, sync::Arc};

use windlass_core::Revision;

use super::SharedInformer;
use crate::{listener::Listener, reflector::Failure};

/// The reason why a cache will not sync.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The server refuses: a permission is missing, or it does not have the resource. The informer
    /// goes on trying, and syncs when that has changed.
    #[error("cache of {resource} cannot sync: {failure}")]
    Refused {
        /// The resource.
        resource: String,
        /// The verb that was refused, and why.
        failure: Failure,
    },
    /// The informer has stopped.
    #[error("informer of {resource} has stopped{}", because(.failure))]
    Stopped {
        /// The resource.
        resource: String,
        /// The last failure, if there was one.
        failure: Option<Failure>,
    },
}

fn because(failure: &Option<Failure>) -> String {
    failure
        .as_ref()
        .map_or_else(String::new, |failure| format!(", last {failure}"))
}

impl SyncError {
    /// The resource whose cache is not complete.
    #[must_use]
    pub fn resource(&self) -> &str {
        match self {
            Self::Refused { resource, .. } | Self::Stopped { resource, .. } => resource,
        }
    }
}

impl<K: 'static> SharedInformer<K> {
    /// Waits until the first complete state is in the cache.
    ///
    /// # Errors
    /// When the server refuses it, which waiting does not change, or the informer stops. A server
    /// that does not answer is waited for: [`state`](Self::state) says so.
    pub async fn wait_for_sync(&self) -> Result<(), SyncError> {
        let mut synced = self.shared.has_synced.subscribe();
        let mut state = self.shared.state.subscribe();
        let mut stopped = self.shared.is_stopped.subscribe();
        // The senders live in `shared`, which is held here, so that no wait ends by itself.
        let refused = state.wait_for(|state| {
            state
                .last_failure
                .as_ref()
                .is_some_and(|failure| failure.error.needs_action())
        });
        tokio::select! {
            biased;
            _ = synced.wait_for(|synced| *synced) => Ok(()),
            state = refused => {
                let failure = state.ok().and_then(|state| state.last_failure.clone());
                Err(self.sync_error(failure))
            }
            _ = stopped.wait_for(|stopped| *stopped) => {
                let failure = self.state().last_failure;
                Err(SyncError::Stopped { resource: self.shared.name.clone(), failure })
            }
        }
    }

    fn sync_error(&self, failure: Option<Failure>) -> SyncError {
        let resource = self.shared.name.clone();
        match failure {
            Some(failure) => SyncError::Refused { resource, failure },
            None => SyncError::Stopped { resource, failure },
        }
    }

    /// Waits until the cache reflects a revision of this resource, such as that of a write.
    ///
    /// # Errors
    /// When the informer stops first.
    pub async fn wait_for_revision(&self, revision: &Revision) -> Result<(), SyncError> {
        let mut reached = self.shared.revision.subscribe();
        let mut stopped = self.shared.is_stopped.subscribe();
        tokio::select! {
            biased;
            _ = reached.wait_for(|reached| reached.as_ref() >= Some(revision)) => Ok(()),
            _ = stopped.wait_for(|stopped| *stopped) => {
                let failure = self.state().last_failure;
                Err(SyncError::Stopped { resource: self.shared.name.clone(), failure })
            }
        }
    }
}

/// A handler that was added. Dropping this changes nothing; see
/// [`SharedInformer::remove_handler`].
#[derive(Clone)]
pub struct Registration {
    listener: Arc<Listener>,
}

impl Registration {
    pub(super) fn new(listener: Arc<Listener>) -> Self {
        Self { listener }
    }

    pub(super) fn listener(&self) -> &Arc<Listener> {
        &self.listener
    }

    /// Returns true if the handler has handled every object that existed when it was added.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        *self.listener.has_synced().borrow()
    }

    /// Waits until the handler has handled every object that was there when it came. For ever, if
    /// the handler is removed or the informer stops before.
    pub async fn wait_for_sync(&self) {
        let mut synced = self.listener.has_synced();
        // An error would mean that the listener is gone, but it is held here.
        let _ = synced.wait_for(|synced| *synced).await;
    }

    /// The number of notifications that wait for the handler.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.listener.pending()
    }

    /// Returns true if the handler has handled every notification so far. After
    /// [`SharedInformer::revision`] has reached a revision, this says that the handler has, too.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.listener.is_idle()
    }

    /// The number of notifications that were merged with others because the handler was slow.
    #[must_use]
    pub fn coalesced(&self) -> u64 {
        self.listener.coalesced()
    }

    /// The number of panics of the handler.
    #[must_use]
    pub fn panics(&self) -> u64 {
        self.listener.panics()
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.listener).finish()
    }
}
