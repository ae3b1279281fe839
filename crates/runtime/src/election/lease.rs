//! The Lease behind an election.

use parking_lot::Mutex;
use windlass_client::RestClient;
use windlass_core::{Doc, Key, Object, Str, doc};

use super::{
    machine::{Answer, Request},
    record::LeaseRecord,
};

/// Reads and writes one Lease. It remembers what it read last, because a Lease is only ever
/// written over the version that was read.
#[derive(Debug)]
pub struct LeaseLock {
    client: RestClient,
    lease: Key,
    labels: Vec<(String, String)>,
    last: Mutex<Option<Doc>>,
}

/// The reason why the Lease was not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// A write came before any read.
    #[error("lease not initialized, call get or create first")]
    NotInitialized,
    /// The request failed.
    #[error(transparent)]
    Request(#[from] windlass_client::Error),
}

impl LeaseLock {
    /// A Lease that was not read yet.
    #[must_use]
    pub fn new(client: RestClient, lease: Key, labels: Vec<(String, String)>) -> Self {
        Self {
            client,
            lease,
            labels,
            last: Mutex::new(None),
        }
    }

    /// The name of the Lease.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.lease
    }

    /// The Lease as it was last read or written.
    #[must_use]
    pub fn last(&self) -> Option<Doc> {
        self.last.lock().clone()
    }

    /// Sends a request of the election.
    pub async fn send(&self, request: Request) -> Answer {
        let result = match request {
            Request::Read => self.read().await,
            Request::Create(record) => self.create(&record).await,
            Request::Update(record) => self.update(&record).await,
        };
        match result {
            Ok(lease) => Answer::Lease(lease),
            Err(LeaseError::Request(error)) if error.is_not_found() => Answer::Missing,
            Err(error) => {
                tracing::warn!(lease = %self.lease, %error, "failed to reach the lease");
                Answer::Failed
            }
        }
    }

    /// Reads the Lease.
    ///
    /// # Errors
    /// When the server does not answer with it.
    pub async fn read(&self) -> Result<Doc, LeaseError> {
        let lease = self.client.get(self.path()).into_doc().await?;
        Ok(self.keep(lease))
    }

    /// Creates the Lease.
    ///
    /// # Errors
    /// When it exists, or the server does not answer.
    pub async fn create(&self, record: &LeaseRecord) -> Result<Doc, LeaseError> {
        let lease = doc!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": self.lease.name(), "namespace": self.namespace() },
            "spec": record.to_spec()
        });
        let lease = self
            .client
            .post(self.collection())
            .doc(&self.labelled(lease))
            .into_doc()
            .await?;
        Ok(self.keep(lease))
    }

    /// Writes the Lease over the version that was read last.
    ///
    /// # Errors
    /// When it was never read, has changed since, or the server does not answer.
    pub async fn update(&self, record: &LeaseRecord) -> Result<Doc, LeaseError> {
        let last = self.last().ok_or(LeaseError::NotInitialized)?;
        let lease = last.with("/spec", record.to_spec()).unwrap_or(last);
        let lease = self
            .client
            .put(self.path())
            .doc(&self.labelled(lease))
            .into_doc()
            .await?;
        Ok(self.keep(lease))
    }

    fn labelled(&self, lease: Doc) -> Doc {
        if self.labels.is_empty() {
            return lease;
        }
        let labels = lease.at("/metadata/labels").as_object().cloned();
        let more = self
            .labels
            .iter()
            .map(|(key, value)| (Str::new(key), Doc::from(value)));
        let labels = more.fold(
            labels.unwrap_or_else(Object::empty),
            |labels, (key, value)| labels.with(&key, value),
        );
        lease.with("/metadata/labels", labels).unwrap_or(lease)
    }

    fn keep(&self, lease: Doc) -> Doc {
        *self.last.lock() = Some(lease.clone());
        lease
    }

    fn namespace(&self) -> &str {
        self.lease.namespace().unwrap_or("default")
    }

    fn collection(&self) -> String {
        format!(
            "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
            self.namespace()
        )
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.lease.name())
    }
}
