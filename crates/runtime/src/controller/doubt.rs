//! Writes whose answers were lost.
//!
//! Such a write may have been carried out, and the cache may not show it yet. The server is asked
//! how far it has come; a cache that has come as far shows the write, or there was none. What is
//! left is a request that is still on its way when the server is asked.

use std::{sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};
use windlass_client::{DynamicClient, Error, ListOptions};
use windlass_core::{GroupResource, Key, Revision};

use super::run::Parts;
use crate::{
    ResourceKind,
    writes::{Doubt, Doubts, WriteScope},
};

/// The most objects that are looked at to find the newest; beyond, the list's revision counts.
const LOOK_LIMIT: u32 = 500;

/// The wait before a server that did not answer is asked again.
const AGAIN_WAIT: Duration = Duration::from_secs(1);

impl Parts {
    /// Waits until the writes are answered that tasks of the last reconcile have sent. One that is
    /// not answered within the client's own limit is in doubt.
    pub(super) async fn settle(self: Arc<Self>, scope: Arc<WriteScope>, key: Key) {
        let limit = self.shared.client.options().timeout;
        if timeout(limit, scope.landed()).await.is_err() {
            self.own_writes.doubt(&key, scope.in_flight());
            self.own_writes.release(&scope);
        }
    }

    /// Finds out which revisions the caches must reach, and remembers them as written.
    pub(super) async fn clear_up_all(self: Arc<Self>, key: Key, doubts: Doubts) {
        for doubt in doubts {
            let Some(kind) = self.kind_of(&doubt.resource) else {
                continue;
            };
            let newest = loop {
                match self.newest(kind, &doubt).await {
                    Ok(newest) => break newest,
                    Err(error) => tracing::warn!(%key, %error, "cannot clear up a write"),
                }
                sleep(AGAIN_WAIT).await;
            };
            if let Some(revision) = newest {
                self.own_writes.settled(&key, doubt.resource, revision);
            }
        }
    }

    fn kind_of(&self, resource: &GroupResource) -> Option<&ResourceKind> {
        let mut kinds = self.shared.kinds.iter().map(|(kind, _)| kind);
        kinds.find(|kind| kind.gvr().group_resource() == *resource)
    }

    /// The revision of the newest object. A cache moves with its objects, while the revision of a
    /// list moves with those of every resource: a quiet cache would take minutes to reach that.
    /// After a deletion there is nothing else to wait for.
    async fn newest(&self, kind: &ResourceKind, doubt: &Doubt) -> Result<Option<Revision>, Error> {
        let client = DynamicClient::new(self.shared.client.clone());
        let mut api = client.resource(kind.gvr().clone());
        if let Some(namespace) = &doubt.namespace {
            api = api.namespaced(namespace);
        }
        let limit = if doubt.is_deletion { 1 } else { LOOK_LIMIT };
        let list = api.list(&ListOptions::default().limit(limit)).await?;
        if !doubt.is_deletion && list.head.continue_token().is_empty() {
            return Ok(list
                .items
                .iter()
                .filter_map(|object| object.meta().revision())
                .max());
        }
        Ok(list.head.resource_version().parse().ok())
    }
}
