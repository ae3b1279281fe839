//! A resource of an API server, as a source.

use std::{fmt, sync::Arc};

use windlass_client::{
    Cause, DecodeError, Error, ListError, ListOptions, RestClient, Status, WatchError, WatchEvent,
    WatchOptions, WatchStream,
};
use windlass_core::{Gvk, Gvr};

use crate::source::{
    BoxFuture, BoxWatch, EventError, ListRequest, ListWatch, Page, Reason, SourceError,
    Undecodable, Watch, WatchRequest,
};

/// Changes a request last of all.
pub(crate) type Tweak<T> = Arc<dyn Fn(&mut T) + Send + Sync>;

/// Lists and watches a resource through a client.
#[derive(Clone)]
pub struct ResourceSource {
    client: RestClient,
    resource: Gvr,
    namespace: Option<String>,
    list: ListOptions,
    watch: WatchOptions,
    tweak_list: Option<Tweak<ListOptions>>,
    tweak_watch: Option<Tweak<WatchOptions>>,
}

impl ResourceSource {
    /// All objects of a resource, in one namespace or in all. What the options say about versions,
    /// pages and time is for the reflector to say.
    #[must_use]
    pub fn new(client: RestClient, resource: Gvr, namespace: Option<String>) -> Self {
        let (list, watch) = (ListOptions::default(), WatchOptions::default());
        Self {
            client,
            resource,
            namespace,
            list,
            watch,
            tweak_list: None,
            tweak_watch: None,
        }
    }

    /// Only objects that match these selectors; empty ones match all.
    #[must_use]
    pub fn select(mut self, labels: &str, fields: &str) -> Self {
        self.list = self.list.labels(labels).fields(fields);
        self.watch.label_selector = labels.to_owned();
        self.watch.field_selector = fields.to_owned();
        self
    }

    /// Only the metadata of the objects.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.list.is_metadata_only = true;
        self.watch.is_metadata_only = true;
        self
    }

    /// Skips these paths while decoding; the default is `metadata.managedFields`.
    #[must_use]
    pub fn prune(mut self, prune: windlass_core::Prune) -> Self {
        self.list.prune = prune.clone();
        self.watch.prune = prune;
        self
    }

    /// Changes every list request last of all, also what the reflector has filled in.
    #[must_use]
    pub fn tweak_list(mut self, tweak: impl Fn(&mut ListOptions) + Send + Sync + 'static) -> Self {
        self.tweak_list = Some(Arc::new(tweak));
        self
    }

    /// Changes every watch request last of all, also what the reflector has filled in.
    #[must_use]
    pub fn tweak_watch(
        mut self,
        tweak: impl Fn(&mut WatchOptions) + Send + Sync + 'static,
    ) -> Self {
        self.tweak_watch = Some(Arc::new(tweak));
        self
    }

    fn list_options(&self, request: ListRequest) -> ListOptions {
        let ListRequest {
            resource_version,
            limit,
            continue_token,
        } = request;
        let mut options = ListOptions {
            resource_version,
            limit,
            continue_token,
            ..self.list.clone()
        };
        if let Some(tweak) = &self.tweak_list {
            tweak(&mut options);
        }
        options
    }

    fn watch_options(&self, request: WatchRequest) -> WatchOptions {
        let mut options = WatchOptions {
            resource_version: request.resource_version,
            version_match: request.version_match,
            send_initial_events: request.send_initial_events,
            bookmarks: request.allow_bookmarks,
            timeout: Some(request.timeout),
            ..self.watch.clone()
        };
        if let Some(tweak) = &self.tweak_watch {
            tweak(&mut options);
        }
        options
    }
}

impl ListWatch for ResourceSource {
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<Page, SourceError>> {
        let options = self.list_options(request);
        Box::pin(async move {
            let namespace = self.namespace.as_deref();
            let list = self
                .client
                .list(&self.resource, namespace, &options)
                .await?
                .collect()
                .await?;
            let undecodable = list
                .undecodable
                .into_iter()
                .map(Undecodable::from)
                .collect();
            Ok(Page {
                resource_version: list.head.resource_version().to_owned(),
                continue_token: list.head.continue_token().to_owned(),
                kind: Gvk::parse(&list.head.api_version, &list.head.kind).ok(),
                items: list.items,
                undecodable,
            })
        })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<BoxWatch, SourceError>> {
        let options = self.watch_options(request);
        Box::pin(async move {
            let namespace = self.namespace.as_deref();
            let stream = self
                .client
                .watch(&self.resource, namespace, &options)
                .await?;
            Ok(Box::new(stream) as BoxWatch)
        })
    }
}

impl Watch for WatchStream {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<WatchEvent, EventError>>> {
        Box::pin(async move { Some(Self::next(self).await?.map_err(EventError::from)) })
    }
}

impl From<windlass_client::Undecodable> for Undecodable {
    fn from(object: windlass_client::Undecodable) -> Self {
        Self {
            message: object.to_string(),
            key: object.key,
        }
    }
}

impl From<Error> for SourceError {
    fn from(error: Error) -> Self {
        let reason = match error.cause() {
            Cause::Status(status) => Reason::of(status),
            Cause::Connection(_) | Cause::Timeout(_) => Reason::Unreachable,
            Cause::Credentials(_) => Reason::Unauthorized,
            _ => Reason::Other,
        };
        Self::new(reason, error.to_string())
    }
}

impl From<ListError> for SourceError {
    fn from(error: ListError) -> Self {
        let reason = match &error {
            ListError::Decode(DecodeError::Status(status)) => Reason::of(status),
            ListError::Connection(_) | ListError::Decode(DecodeError::Cut { .. }) => {
                Reason::Unreachable
            }
            _ => Reason::Other,
        };
        Self::new(reason, error.to_string())
    }
}

impl From<WatchError> for EventError {
    fn from(error: WatchError) -> Self {
        let reason = match &error {
            WatchError::Undecodable(object) => {
                return Self::Undecodable(object.clone().into());
            }
            WatchError::Status(status) => Reason::of(status),
            WatchError::Connection(_) => Reason::Unreachable,
            _ if error.is_cut() => Reason::Unreachable,
            _ => Reason::Other,
        };
        Self::Ended(SourceError::new(reason, error.to_string()))
    }
}

impl Reason {
    /// The sort of failure that a status is.
    fn of(status: &Status) -> Self {
        match status {
            status if status.is_too_large_resource_version() => Self::VersionTooLarge,
            status if status.is_gone() => Self::Expired,
            status if status.is_too_many_requests() => Self::TooManyRequests,
            status if status.is_forbidden() => Self::Forbidden,
            status if status.is_unauthorized() => Self::Unauthorized,
            status if status.is_not_found() => Self::NotFound,
            status if status.is_internal() => Self::Internal,
            _ => Self::Other,
        }
    }
}

impl fmt::Debug for ResourceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceSource")
            .field("resource", &self.resource)
            .field("namespace", &self.namespace)
            .field("labels", &self.list.label_selector)
            .field("fields", &self.list.field_selector)
            .finish_non_exhaustive()
    }
}
