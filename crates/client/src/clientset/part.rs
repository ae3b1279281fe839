//! Parts of objects that have a type of their own.

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::{Binding, Pod, ServiceAccount};
use k8s_openapi::api::policy::v1::Eviction;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Api, Typed};
use crate::{Error, Patch, Status, WriteOptions};

impl<K: Typed> Api<K> {
    /// Reads how far an object is scaled.
    ///
    /// # Errors
    /// When there is no such object, or it cannot be scaled.
    pub async fn get_scale(&self, name: &str) -> Result<Scale, Error> {
        self.decode(&self.inner.get_part(name, "scale").await?)
    }

    /// Scales an object. With a resource version, only if it has not changed since.
    ///
    /// # Errors
    /// When it has changed, is refused, or when nothing is known about it.
    pub async fn update_scale(
        &self,
        name: &str,
        scale: &Scale,
        options: &WriteOptions,
    ) -> Result<Scale, Error> {
        let scale = self.encode(scale)?;
        self.decode(
            &self
                .inner
                .update_part(name, "scale", &scale, options)
                .await?,
        )
    }

    /// Scales an object by a patch.
    ///
    /// # Errors
    /// When it does not exist, the change is refused, or when nothing is known about it.
    pub async fn patch_scale(
        &self,
        name: &str,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Scale, Error> {
        self.decode(&self.inner.patch_part(name, "scale", patch, options).await?)
    }

    async fn post<B: Serialize, T: DeserializeOwned>(
        &self,
        name: &str,
        part: &str,
        body: &B,
        options: &WriteOptions,
    ) -> Result<T, Error> {
        let body = self.encode(body)?;
        self.decode(&self.inner.create_part(name, part, &body, options).await?)
    }
}

impl Api<Pod> {
    /// Gives a pod its node.
    ///
    /// # Errors
    /// When it has one already, or when nothing is known about it.
    pub async fn bind(
        &self,
        name: &str,
        binding: &Binding,
        options: &WriteOptions,
    ) -> Result<Status, Error> {
        self.post(name, "binding", binding, options).await
    }

    /// Deletes a pod if its disruption budgets allow it.
    ///
    /// # Errors
    /// With 429 when they do not; [`Error::retry_after`] says when to ask again.
    pub async fn evict(
        &self,
        name: &str,
        eviction: &Eviction,
        options: &WriteOptions,
    ) -> Result<Status, Error> {
        self.post(name, "eviction", eviction, options).await
    }
}

impl Api<ServiceAccount> {
    /// Asks for a token of a service account.
    ///
    /// # Errors
    /// When it does not exist, or when nothing is known about it.
    pub async fn create_token(
        &self,
        name: &str,
        request: &TokenRequest,
        options: &WriteOptions,
    ) -> Result<TokenRequest, Error> {
        self.post(name, "token", request, options).await
    }
}
