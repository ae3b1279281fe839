//! `RestClient`: requests by method and path, under limits.

mod answer;
mod request;
mod retry;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use parking_lot::Mutex;
use windlass_core::Gvr;

use crate::decode::{FrameDecoder, ListDecoder, ProtobufListDecoder, WatchDecoder};
use crate::encoding::Encoding;
use crate::path::ResourcePath;
use crate::reader::Reader;
use crate::rest_options::RestOptions;
use crate::throttle::{RateLimit, Throttle};
use crate::transport::{Content, Transport};
use crate::watch::{Decoder, Unreadable};
use crate::{Cause, Config, ConfigError, Error, ListOptions, ListStream, RequestOutcome};
use crate::{WatchOptions, WatchStream};

pub use answer::RestResponse;
pub use request::Request;

/// The time after its agreed end for which a server may keep a watch open.
const WATCH_GRACE: Duration = Duration::from_secs(30);

/// Content types of answers that hold only metadata.
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The `Accept` header of a list or watch that may come in protobuf. For custom resources it comes in JSON.
const PROTOBUF_OR_JSON: &str = "application/vnd.kubernetes.protobuf,application/json";

/// A client that speaks in methods, paths and bodies. Clones share its limits.
#[derive(Clone)]
pub struct RestClient {
    shared: Arc<Shared>,
    /// Values that every request carries; `None` for none.
    extensions: Option<Arc<http::Extensions>>,
}

struct Shared {
    transport: Transport,
    options: Arc<RestOptions>,
    throttle: Option<Throttle>,
    /// Resources of which a watch in protobuf could not read an event, as when the server knows
    /// fields that we do not: what is cached must be complete.
    unreadable: Arc<Mutex<HashSet<Gvr>>>,
}

impl RestClient {
    /// A client of the server that a configuration names.
    ///
    /// Nothing is sent yet. An exec plug-in runs now, away from the async threads.
    ///
    /// # Errors
    /// When credentials or certificates cannot be read.
    pub async fn connect(config: &Config) -> Result<Self, ConfigError> {
        let transport = config.transport().await?;
        Ok(Self::new(transport, config.rest_options()))
    }

    /// A client over any transport, such as a server in this process.
    #[must_use]
    pub fn new(transport: Transport, options: RestOptions) -> Self {
        let throttle = options.rate_limit.map(Throttle::new);
        Self {
            shared: Arc::new(Shared {
                transport,
                options: Arc::new(options),
                throttle,
                unreadable: Arc::default(),
            }),
            extensions: None,
        }
    }

    /// The same client, whose requests carry a value in their extensions. A layer of the transport
    /// can tell by it on whose behalf a request is made. The limits are shared.
    #[must_use]
    pub fn with_extension<T: Clone + Send + Sync + 'static>(&self, value: T) -> Self {
        let mut extensions = self.extensions.as_deref().cloned().unwrap_or_default();
        extensions.insert(value);
        Self {
            shared: self.shared.clone(),
            extensions: Some(Arc::new(extensions)),
        }
    }

    /// A client of the same server that may send requests at a rate of its own.
    #[must_use]
    pub fn with_rate_limit(&self, rate_limit: Option<RateLimit>) -> Self {
        let options = RestOptions {
            rate_limit,
            ..self.options().clone()
        };
        Self {
            extensions: self.extensions.clone(),
            ..Self::new(self.shared.transport.clone(), options)
        }
    }

    /// The options it works under.
    #[must_use]
    pub fn options(&self) -> &RestOptions {
        &self.shared.options
    }

    /// The namespace of requests that name none.
    #[must_use]
    pub fn default_namespace(&self) -> &str {
        &self.shared.options.default_namespace
    }

    /// A request by method and path, such as `/api/v1/nodes`.
    pub fn request(&self, method: Method, path: impl Into<String>) -> Request {
        Request::new(self.clone(), method, path.into())
    }

    /// A GET.
    pub fn get(&self, path: impl Into<String>) -> Request {
        self.request(Method::GET, path)
    }

    /// A POST.
    pub fn post(&self, path: impl Into<String>) -> Request {
        self.request(Method::POST, path)
    }

    /// A PUT.
    pub fn put(&self, path: impl Into<String>) -> Request {
        self.request(Method::PUT, path)
    }

    /// A PATCH; the content type says which sort.
    pub fn patch(&self, path: impl Into<String>) -> Request {
        self.request(Method::PATCH, path)
    }

    /// A DELETE.
    pub fn delete(&self, path: impl Into<String>) -> Request {
        self.request(Method::DELETE, path)
    }

    /// The objects of a resource, decoded while they arrive; all namespaces if none is named.
    ///
    /// # Errors
    /// When the server does not answer with a list. What goes wrong later comes out of the stream.
    pub async fn list(
        &self,
        resource: &Gvr,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<ListStream, Error> {
        let path = ResourcePath::new(resource, namespace).collection();
        let mut request = self.get(path?).params(options.params());
        if options.is_metadata_only {
            request = request.accept(PARTIAL_LIST);
        } else if self.reads_protobuf(resource) {
            request = request.accept(PROTOBUF_OR_JSON);
        }
        if let Some(timeout) = options.timeout {
            request = request.timeout(timeout);
        }
        let answer = request.send().await?;
        let encoding = answer.encoding()?;
        let (name, timeout) = (answer.name().to_owned(), answer.timeout());
        match answer.into_content() {
            Content::List(list) => Ok(ListStream::local(list, options.prune.clone())),
            Content::Body(body) => {
                let (limit, prune) = (self.options().item_bytes_limit, options.prune.clone());
                let reader = Reader::within(body, timeout)
                    .measured(self.shared.options.clone(), Method::GET);
                Ok(match encoding {
                    Encoding::Json => {
                        ListStream::wire(ListDecoder::with_limit(prune, limit), reader)
                    }
                    Encoding::Protobuf => ListStream::protobuf(
                        ProtobufListDecoder::with_limit(prune, limit),
                        reader,
                        self.unreadable(resource),
                    ),
                })
            }
            Content::Doc(doc) => {
                let list = crate::list::from_doc(&doc);
                Ok(ListStream::local(list, options.prune.clone()))
            }
            Content::Events(_) => Err(not_json(name)),
        }
    }

    /// The changes of a resource, as they happen; all namespaces if none is named.
    ///
    /// # Errors
    /// When the server does not begin to answer. What goes wrong later comes out of the stream.
    pub async fn watch(
        &self,
        resource: &Gvr,
        namespace: Option<&str>,
        options: &WatchOptions,
    ) -> Result<WatchStream, Error> {
        let form = match options.is_metadata_only {
            true => Some(PARTIAL),
            false => self.reads_protobuf(resource).then_some(PROTOBUF_OR_JSON),
        };
        self.watch_as(resource, namespace, options, form).await
    }

    /// A watch whose objects come in some other form.
    pub(crate) async fn watch_as(
        &self,
        resource: &Gvr,
        namespace: Option<&str>,
        options: &WatchOptions,
        form: Option<&str>,
    ) -> Result<WatchStream, Error> {
        let path = ResourcePath::new(resource, namespace).collection();
        let mut request = self.get(path?).params(options.params()).watching();
        if let Some(form) = form {
            request = request.accept(form);
        }
        let answer = request.send().await?;
        let encoding = answer.encoding()?;
        let name = answer.name().to_owned();
        match answer.into_content() {
            Content::Events(events) => Ok(WatchStream::local(events, options.prune.clone())),
            Content::Body(body) => {
                let RestOptions {
                    item_bytes_limit,
                    timeout,
                    ..
                } = *self.options();
                let prune = options.prune.clone();
                let decoder = match encoding {
                    Encoding::Json => {
                        Decoder::Lines(WatchDecoder::with_limit(prune, item_bytes_limit))
                    }
                    Encoding::Protobuf => Decoder::Frames(
                        FrameDecoder::with_limit(prune, item_bytes_limit),
                        self.unreadable(resource),
                    ),
                };
                let reader = match options.timeout {
                    Some(asked) => Reader::until(body, asked.saturating_add(WATCH_GRACE)),
                    None => Reader::endless(body),
                };
                Ok(WatchStream::wire(decoder, reader, timeout))
            }
            Content::Doc(_) | Content::List(_) => Err(not_json(name)),
        }
    }

    /// Notes that objects of a resource cannot be read in protobuf.
    fn unreadable(&self, resource: &Gvr) -> Unreadable {
        Unreadable {
            resource: resource.clone(),
            resources: self.shared.unreadable.clone(),
        }
    }

    fn reads_protobuf(&self, resource: &Gvr) -> bool {
        self.options().encoding == Encoding::Protobuf
            && !self.shared.unreadable.lock().contains(resource)
    }

    /// The metadata of one object.
    pub(crate) fn partial(&self, path: String) -> Request {
        self.get(path).accept(PARTIAL)
    }
}

fn not_json(request: String) -> Error {
    let found = "documents of another sort".to_owned();
    Error::new(
        RequestOutcome::Unknown,
        request,
        Cause::ContentType { found },
    )
}

impl fmt::Debug for RestClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestClient")
            .field("host", &self.options().host)
            .finish_non_exhaustive()
    }
}
