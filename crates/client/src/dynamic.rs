//! `DynamicClient`: any resource, as documents.

mod table;

mod pager;

use http::Method;
use windlass_core::{Doc, Gvr};

use crate::path::ResourcePath;
use crate::rest::Request;
use crate::{
    Cause, DeleteOptions, Error, List, ListOptions, ListStream, Patch, RequestOutcome, RestClient,
    Status, WatchOptions, WatchStream, WriteOptions,
};

/// A client for resources that are known only while the program runs.
#[derive(Clone, Debug)]
pub struct DynamicClient {
    rest: RestClient,
}

impl DynamicClient {
    /// A dynamic client over a REST client.
    #[must_use]
    pub fn new(rest: RestClient) -> Self {
        Self { rest }
    }

    /// The verbs of one resource, in all namespaces or outside of any.
    #[must_use]
    pub fn resource(&self, resource: Gvr) -> DynamicApi {
        DynamicApi {
            rest: self.rest.clone(),
            resource,
            namespace: None,
        }
    }
}

/// The verbs of one resource.
#[derive(Clone, Debug)]
pub struct DynamicApi {
    rest: RestClient,
    resource: Gvr,
    namespace: Option<String>,
}

/// The result of a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// The object is gone.
    Done(Status),
    /// The object is still there, in this state: it shuts down, or a finalizer holds it.
    Started(Doc),
}

impl DynamicApi {
    /// The same resource in one namespace.
    #[must_use]
    pub fn namespaced(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// The same resource in all namespaces, or outside of any.
    #[must_use]
    pub fn all(mut self) -> Self {
        self.namespace = None;
        self
    }

    /// The resource.
    #[must_use]
    pub fn gvr(&self) -> &Gvr {
        &self.resource
    }

    /// The REST client below.
    #[must_use]
    pub fn rest(&self) -> &RestClient {
        &self.rest
    }

    fn path(&self) -> ResourcePath<'_> {
        ResourcePath::new(&self.resource, self.namespace.as_deref())
    }

    /// Reads one object.
    ///
    /// # Errors
    /// When there is no such object, or no answer.
    pub async fn get(&self, name: &str) -> Result<Doc, Error> {
        self.rest.get(self.path().object(name)?).into_doc().await
    }

    /// Reads the metadata of one object.
    ///
    /// # Errors
    /// When there is no such object, or no answer.
    pub async fn get_metadata(&self, name: &str) -> Result<Doc, Error> {
        self.rest
            .partial(self.path().object(name)?)
            .into_doc()
            .await
    }

    /// Reads one page of objects; all of them if the options set no limit.
    ///
    /// # Errors
    /// When the list does not come completely.
    pub async fn list(&self, options: &ListOptions) -> Result<List, Error> {
        let stream = self.list_stream(options).await?;
        let name = format!("GET {}", self.path().collection()?);
        stream
            .collect()
            .await
            .map_err(|error| error.into_error(&name))
    }

    /// Reads all pages of objects.
    ///
    /// # Errors
    /// When one of the pages does not come completely.
    pub async fn list_all(&self, options: &ListOptions) -> Result<List, Error> {
        pager::list_all(self, options).await
    }

    /// Reads objects one by one, while they arrive.
    ///
    /// # Errors
    /// When the server does not answer with a list.
    pub async fn list_stream(&self, options: &ListOptions) -> Result<ListStream, Error> {
        self.rest
            .list(&self.resource, self.namespace.as_deref(), options)
            .await
    }

    /// Follows the changes of objects.
    ///
    /// # Errors
    /// When the server does not begin to answer.
    pub async fn watch(&self, options: &WatchOptions) -> Result<WatchStream, Error> {
        self.rest
            .watch(&self.resource, self.namespace.as_deref(), options)
            .await
    }

    /// Creates an object.
    ///
    /// # Errors
    /// When it exists, is refused, or when nothing is known about it.
    pub async fn create(&self, object: &Doc, options: &WriteOptions) -> Result<Doc, Error> {
        let request = self.write(Method::POST, None, None)?;
        request.write_options(options).doc(object).into_doc().await
    }

    /// Replaces an object by its name. With a resource version, only if it has not changed since.
    ///
    /// # Errors
    /// When it has changed, is refused, or when nothing is known about it.
    pub async fn update(&self, object: &Doc, options: &WriteOptions) -> Result<Doc, Error> {
        let request = self.write(Method::PUT, Some(name_of(object)), None)?;
        request.write_options(options).doc(object).into_doc().await
    }

    /// Replaces the status of an object, and nothing else.
    ///
    /// # Errors
    /// When it has changed, is refused, or when nothing is known about it.
    pub async fn update_status(&self, object: &Doc, options: &WriteOptions) -> Result<Doc, Error> {
        self.update_part(name_of(object), "status", object, options)
            .await
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
    ) -> Result<Doc, Error> {
        let request = self.write(Method::PATCH, Some(name), None)?;
        send_patch(request, patch, options).await
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
    ) -> Result<Doc, Error> {
        self.patch_part(name, "status", patch, options).await
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// When it does not exist, is not the one that is meant, or when nothing is known about it.
    pub async fn delete(&self, name: &str, options: &DeleteOptions) -> Result<Deletion, Error> {
        let request = self
            .write(Method::DELETE, Some(name), None)?
            .json(&options.body());
        let answer = request.into_doc().await?;
        if answer.str_at("/kind") != "Status" {
            return Ok(Deletion::Started(answer));
        }
        Ok(Deletion::Done(answer.decode().unwrap_or_default()))
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
        let request = self
            .write(Method::DELETE, None, None)?
            .params(which.params());
        // The answer lists what was deleted, which may be long and is of no use here.
        request.json(&options.body()).send().await?.discard().await
    }

    /// Reads a part of an object, such as its `scale`.
    ///
    /// # Errors
    /// When there is no such object or part, or no answer.
    pub async fn get_part(&self, name: &str, part: &str) -> Result<Doc, Error> {
        self.rest
            .get(self.path().subresource(name, part)?)
            .into_doc()
            .await
    }

    /// Posts to a part of an object, such as its `binding` or `eviction`.
    ///
    /// # Errors
    /// When it is refused, or when nothing is known about it.
    pub async fn create_part(
        &self,
        name: &str,
        part: &str,
        content: &Doc,
        options: &WriteOptions,
    ) -> Result<Doc, Error> {
        self.write(Method::POST, Some(name), Some(part))?
            .write_options(options)
            .doc(content)
            .into_doc()
            .await
    }

    /// Replaces a part of an object.
    ///
    /// # Errors
    /// When it has changed, is refused, or when nothing is known about it.
    pub async fn update_part(
        &self,
        name: &str,
        part: &str,
        content: &Doc,
        options: &WriteOptions,
    ) -> Result<Doc, Error> {
        self.write(Method::PUT, Some(name), Some(part))?
            .write_options(options)
            .doc(content)
            .into_doc()
            .await
    }

    /// Changes a part of an object.
    ///
    /// # Errors
    /// When it does not exist, the change is refused, or when nothing is known about it.
    pub async fn patch_part(
        &self,
        name: &str,
        part: &str,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Doc, Error> {
        let request = self.write(Method::PATCH, Some(name), Some(part))?;
        send_patch(request, patch, options).await
    }

    /// A write of all objects, of one, or of a part of one.
    fn write(
        &self,
        method: Method,
        name: Option<&str>,
        part: Option<&str>,
    ) -> Result<Request, Error> {
        let resource = self.path();
        let path = match (name, part) {
            (None, _) => resource.collection(),
            (Some(name), None) => resource.object(name),
            (Some(name), Some(part)) => resource.subresource(name, part),
        };
        let request = self.rest.request(method, path?);
        Ok(request.about(resource.target(name)))
    }
}

fn name_of(object: &Doc) -> &str {
    object.str_at("/metadata/name")
}

async fn send_patch(request: Request, patch: &Patch, options: &WriteOptions) -> Result<Doc, Error> {
    // The server would refuse it with a long text; this one says what to do.
    if matches!(patch, Patch::Apply(_)) && options.field_manager.is_empty() {
        let problem = "apply needs a field manager".to_owned();
        return Err(Error::new(
            RequestOutcome::NotSent,
            "PATCH",
            Cause::Malformed(problem),
        ));
    }
    let request = request.write_options(options);
    request
        .typed_doc(patch.content_type(), patch.doc())
        .into_doc()
        .await
}
