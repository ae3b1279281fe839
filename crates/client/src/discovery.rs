//! `DiscoveryClient`: what a server serves, and by which names.

mod fetch;
mod resolve;

use std::sync::Arc;

use parking_lot::RwLock;
use windlass_core::{Doc, Gvk, Gvr};

use crate::{Error, RestClient};

/// Everything a server serves, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    /// The groups, in the order of the server: the core group first.
    pub groups: Vec<ApiGroup>,
    /// The resources of all groups and versions. Within a group the preferred version comes first.
    pub resources: Vec<ApiResource>,
    /// Group versions that the server could not tell about, and why.
    pub failed: Vec<(String, String)>,
}

/// A group and its versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiGroup {
    /// The name; empty for the core group.
    pub name: String,
    /// The versions, the preferred one first.
    pub versions: Vec<String>,
}

/// One resource in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiResource {
    /// Its group, version and plural name.
    pub gvr: Gvr,
    /// The kind of its objects.
    pub gvk: Gvk,
    /// The name of one of them, such as `deployment`.
    pub singular: String,
    /// Shorter names, such as `deploy`.
    pub short_names: Vec<String>,
    /// Groups of resources that it belongs to, such as `all`.
    pub categories: Vec<String>,
    /// The verbs, such as `get`.
    pub verbs: Vec<String>,
    /// True if its objects live in namespaces.
    pub is_namespaced: bool,
    /// The parts of its objects, such as `status`.
    pub subresources: Vec<String>,
}

/// The reason why a name was not resolved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The server serves nothing of this name.
    #[error("the server doesn't have a resource type {name:?}")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The server could not be asked.
    #[error(transparent)]
    Request(#[from] Error),
}

/// A client that knows what the server serves.
///
/// The answer is kept. A name that is not in it is looked for once more in a fresh one, because
/// a custom resource may have been defined in the meantime. Clones share what they know.
#[derive(Clone, Debug)]
pub struct DiscoveryClient {
    rest: RestClient,
    known: Arc<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The last result. Written by whoever holds `fetching`, read by everybody.
    snapshot: RwLock<Option<Arc<Discovery>>>,
    /// Held while the server is asked, so that many misses at once ask it only once.
    fetching: tokio::sync::Mutex<()>,
}

impl DiscoveryClient {
    /// A discovery client over a REST client.
    #[must_use]
    pub fn new(rest: RestClient) -> Self {
        Self {
            rest,
            known: Arc::default(),
        }
    }

    /// The resources of the server: cached, or asked for.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn discovery(&self) -> Result<Arc<Discovery>, Error> {
        match self.snapshot() {
            Some(known) => Ok(known),
            None => self.fetch_unless_newer_than(None).await,
        }
    }

    /// Asks the server anew.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn refresh(&self) -> Result<Arc<Discovery>, Error> {
        let known = self.snapshot();
        self.fetch_unless_newer_than(known).await
    }

    /// The resource that a user means: `deploy`, `deployment`, `deployments.apps`,
    /// `deployments.v1.apps`.
    ///
    /// # Errors
    /// When the server serves nothing of this name, or does not answer.
    pub async fn resolve(&self, name: &str) -> Result<ApiResource, DiscoveryError> {
        self.find(name, |known| known.resolve(name)).await
    }

    /// The resource that holds objects of a kind.
    ///
    /// # Errors
    /// When the server serves no such kind, or does not answer.
    pub async fn resource_of(&self, kind: &Gvk) -> Result<ApiResource, DiscoveryError> {
        self.find(&kind.to_string(), |known| known.resource_of(kind))
            .await
    }

    /// The kind of the objects of a resource.
    ///
    /// # Errors
    /// When the server serves no such resource, or does not answer.
    pub async fn kind_of(&self, resource: &Gvr) -> Result<Gvk, DiscoveryError> {
        let found = self
            .find(&resource.to_string(), |known| known.resource(resource))
            .await;
        found.map(|resource| resource.gvk)
    }

    /// The version that the server reports about itself, as `/version` has it.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn server_version(&self) -> Result<Doc, Error> {
        self.rest.get("/version").into_doc().await
    }

    async fn find(
        &self,
        name: &str,
        look: impl Fn(&Discovery) -> Option<&ApiResource>,
    ) -> Result<ApiResource, DiscoveryError> {
        let known = self.snapshot();
        if let Some(found) = known.as_deref().and_then(&look) {
            return Ok(found.clone());
        }
        let fresh = self.fetch_unless_newer_than(known).await?;
        let found = look(&fresh).cloned();
        found.ok_or_else(|| DiscoveryError::Unknown {
            name: name.to_owned(),
        })
    }

    fn snapshot(&self) -> Option<Arc<Discovery>> {
        self.known.snapshot.read().clone()
    }

    /// Asks the server, unless another task has done so since the caller looked.
    async fn fetch_unless_newer_than(
        &self,
        seen: Option<Arc<Discovery>>,
    ) -> Result<Arc<Discovery>, Error> {
        let _fetching = self.known.fetching.lock().await;
        match (self.snapshot(), seen) {
            (Some(now), None) => return Ok(now),
            (Some(now), Some(seen)) if !Arc::ptr_eq(&now, &seen) => return Ok(now),
            _ => {}
        }
        let fresh = Arc::new(fetch::fetch(&self.rest).await?);
        *self.known.snapshot.write() = Some(Arc::clone(&fresh));
        Ok(fresh)
    }
}
