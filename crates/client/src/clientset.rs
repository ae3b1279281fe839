//! `Clientset` and `Api<K>`: verbs with types.

mod part;

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;

use kube_core::ClusterResourceScope;
use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_core::{Doc, GroupVersion, Gvr, Key};

use crate::{
    Cause, DeleteOptions, Deletion, DynamicApi, DynamicClient, Error, List, ListHead, ListOptions,
    Patch, RequestOutcome, RestClient, Undecodable, WatchError, WatchEvent, WatchOptions,
    WatchStream, WriteOptions,
};

/// A kind with a type of its own: the built-in ones of `k8s-openapi`, and those that derive
/// `kube::CustomResource`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes kind",
    note = "use a type of `k8s_openapi::api`, or derive `kube::CustomResource` for a spec; for \
            kinds that are known only at run time there is `DynamicClient`"
)]
pub trait Typed:
    kube_core::Resource<DynamicType = ()> + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// The resource that holds objects of this kind.
    #[must_use]
    fn gvr() -> Gvr {
        let group_version = match &*Self::group(&()) {
            "" => Self::version(&()).into_owned(),
            group => format!("{group}/{}", Self::version(&())),
        };
        let group_version: GroupVersion = group_version
            .parse()
            .expect("invariant: groups and versions hold no slash");
        group_version.with_resource(Self::plural(&()).into_owned())
    }

    /// Returns true if objects of this kind live in namespaces.
    #[must_use]
    fn is_namespaced() -> bool {
        TypeId::of::<Self::Scope>() != TypeId::of::<ClusterResourceScope>()
    }
}

impl<K> Typed for K where
    K: kube_core::Resource<DynamicType = ()> + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

/// Typed clients for every kind.
#[derive(Clone, Debug)]
pub struct Clientset {
    rest: RestClient,
}

/// The verbs of one kind.
pub struct Api<K> {
    inner: DynamicApi,
    kind: PhantomData<fn() -> K>,
}

/// A list of one kind.
#[derive(Clone, Debug)]
pub struct TypedList<K> {
    /// Everything besides the items.
    pub head: ListHead,
    /// The objects.
    pub items: Vec<K>,
    /// The objects that could not be decoded.
    pub undecodable: Vec<Undecodable>,
}

/// The events of a watch of one kind.
#[derive(Debug)]
pub struct TypedWatch<K> {
    inner: WatchStream,
    kind: PhantomData<fn() -> K>,
}

impl Clientset {
    /// Typed clients over a REST client.
    #[must_use]
    pub fn new(rest: RestClient) -> Self {
        Self { rest }
    }

    /// The verbs of one kind, in all namespaces or outside of any.
    #[must_use]
    pub fn api<K: Typed>(&self) -> Api<K> {
        Api::from(DynamicClient::new(self.rest.clone()).resource(K::gvr()))
    }

    /// The REST client below.
    #[must_use]
    pub fn rest(&self) -> &RestClient {
        &self.rest
    }
}

impl<K: Typed> Api<K> {
    /// The same kind in one namespace.
    #[must_use]
    pub fn namespaced(self, namespace: impl Into<String>) -> Self {
        Self::from(self.inner.namespaced(namespace))
    }

    /// The same kind in all namespaces, or outside of any.
    #[must_use]
    pub fn all(self) -> Self {
        Self::from(self.inner.all())
    }

    /// The same verbs on documents.
    #[must_use]
    pub fn dynamic(&self) -> &DynamicApi {
        &self.inner
    }

    /// Reads one object.
    ///
    /// # Errors
    /// When there is no such object, no answer, or it does not fit the type.
    pub async fn get(&self, name: &str) -> Result<K, Error> {
        self.decode(&self.inner.get(name).await?)
    }

    /// Reads one object, or finds that there is none.
    ///
    /// # Errors
    /// When there is no answer, or it does not fit the type.
    pub async fn find(&self, name: &str) -> Result<Option<K>, Error> {
        match self.get(name).await {
            Err(error) if error.is_not_found() => Ok(None),
            found => found.map(Some),
        }
    }

    /// Reads one page of objects; all of them if the options set no limit.
    ///
    /// # Errors
    /// When the list does not come completely.
    pub async fn list(&self, options: &ListOptions) -> Result<TypedList<K>, Error> {
        Ok(typed_list(self.inner.list(options).await?))
    }

    /// Reads all pages of objects.
    ///
    /// # Errors
    /// When one of the pages does not come completely.
    pub async fn list_all(&self, options: &ListOptions) -> Result<TypedList<K>, Error> {
        Ok(typed_list(self.inner.list_all(options).await?))
    }

    /// Follows the changes of objects.
    ///
    /// # Errors
    /// When the server does not begin to answer.
    pub async fn watch(&self, options: &WatchOptions) -> Result<TypedWatch<K>, Error> {
        Ok(TypedWatch {
            inner: self.inner.watch(options).await?,
            kind: PhantomData,
        })
    }

    /// Creates an object.
    ///
    /// # Errors
    /// When it exists, is refused, or when nothing is known about it.
    pub async fn create(&self, object: &K, options: &WriteOptions) -> Result<K, Error> {
        self.decode(&self.inner.create(&self.encode(object)?, options).await?)
    }

    /// Replaces an object by its name. With a resource version, only if it has not changed since.
    ///
    /// # Errors
    /// When it has changed, is refused, or when nothing is known about it.
    pub async fn update(&self, object: &K, options: &WriteOptions) -> Result<K, Error> {
        self.decode(&self.inner.update(&self.encode(object)?, options).await?)
    }

    /// Replaces the status of an object, and nothing else.
    ///
    /// # Errors
    /// When it has changed, is refused, or when nothing is known about it.
    pub async fn update_status(&self, object: &K, options: &WriteOptions) -> Result<K, Error> {
        self.decode(
            &self
                .inner
                .update_status(&self.encode(object)?, options)
                .await?,
        )
    }

    /// Changes an object.
    ///
    /// # Errors
    /// When it does not exist, the change is refused, or when nothing is known about it.
    pub async fn patch(
        &self,
        name: &str,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<K, Error> {
        self.decode(&self.inner.patch(name, patch, options).await?)
    }

    /// Changes the status of an object.
    ///
    /// # Errors
    /// When it does not exist, the change is refused, or when nothing is known about it.
    pub async fn patch_status(
        &self,
        name: &str,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<K, Error> {
        self.decode(&self.inner.patch_status(name, patch, options).await?)
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// When it does not exist, is not the one that is meant, or when nothing is known about it.
    pub async fn delete(&self, name: &str, options: &DeleteOptions) -> Result<Deletion, Error> {
        self.inner.delete(name, options).await
    }

    /// Deletes all objects that the options select.
    ///
    /// # Errors
    /// When one of them cannot be deleted; others may be gone by then.
    pub async fn delete_collection(
        &self,
        options: &DeleteOptions,
        which: &ListOptions,
    ) -> Result<(), Error> {
        self.inner.delete_collection(options, which).await
    }

    fn encode(&self, object: &impl Serialize) -> Result<Doc, Error> {
        let failed = |error| Error::new(RequestOutcome::NotSent, self.name(), Cause::Encode(error));
        Doc::encode(object).map_err(|error| failed(Box::new(error)))
    }

    fn decode<T: DeserializeOwned>(&self, doc: &Doc) -> Result<T, Error> {
        let failed = |error| Error::new(RequestOutcome::Unknown, self.name(), Cause::Decode(error));
        doc.decode().map_err(|error| failed(Box::new(error)))
    }

    fn name(&self) -> String {
        self.inner.gvr().group_resource().to_string()
    }
}

impl<K: Typed> TypedWatch<K> {
    /// The next event; `None` when the server has ended the watch, and after any error other than
    /// [`WatchError::Undecodable`]. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<Result<WatchEvent<K>, WatchError>> {
        let event = self.inner.next().await?;
        Some(event.and_then(|event| typed_event(event).map_err(WatchError::Undecodable)))
    }
}

fn typed_event<K: Typed>(event: WatchEvent) -> Result<WatchEvent<K>, Undecodable> {
    Ok(match event {
        WatchEvent::Added(doc) => WatchEvent::Added(typed(&doc)?),
        WatchEvent::Modified(doc) => WatchEvent::Modified(typed(&doc)?),
        WatchEvent::Deleted(doc) => WatchEvent::Deleted(typed(&doc)?),
        WatchEvent::Bookmark(doc) => WatchEvent::Bookmark(doc),
    })
}

fn typed_list<K: Typed>(list: List) -> TypedList<K> {
    let List {
        head,
        items,
        mut undecodable,
    } = list;
    let mut typed_items = Vec::with_capacity(items.len());
    for doc in items {
        match typed(&doc) {
            Ok(item) => typed_items.push(item),
            Err(error) => undecodable.push(error),
        }
    }
    TypedList {
        head,
        items: typed_items,
        undecodable,
    }
}

fn typed<K: Typed>(doc: &Doc) -> Result<K, Undecodable> {
    doc.decode().map_err(|error: windlass_core::DecodeError| {
        let (namespace, name) = (
            doc.str_at("/metadata/namespace"),
            doc.str_at("/metadata/name"),
        );
        let key = (!name.is_empty()).then(|| Key::new(namespace, name));
        Undecodable {
            key,
            error: error.into(),
        }
    })
}

impl<K: Typed> From<DynamicApi> for Api<K> {
    /// Reads and writes the objects of any resource as this type.
    fn from(inner: DynamicApi) -> Self {
        Self {
            inner,
            kind: PhantomData,
        }
    }
}

impl<K> Clone for Api<K> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Api<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Api").field(&self.inner).finish()
    }
}
