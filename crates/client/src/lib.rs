//! The Kubernetes clients of windlass.
//!
//! Four clients share one way to the server:
//! - [`RestClient`]: methods, paths, bytes;
//! - [`Clientset`] and [`Api`]: typed verbs for built-in kinds and derived ones;
//! - [`DynamicClient`]: any resource, as [`Doc`](windlass_core::Doc);
//! - [`DiscoveryClient`]: what a server serves, and by which names.
//!
//! [`Config`] finds the server and the credentials. Lists and watches are decoded while they
//! arrive ([`ListStream`], [`WatchStream`]). A [`Transport`] is the seam below all of it: the
//! network, or any [`tower::Service`] in this process.
//!
//! There is no cache here, no retry of a write that may have been carried out, and no reading of
//! compressed answers.
//!
//! ```no_run
//! use windlass_client::{Config, DynamicClient, ListOptions, RestClient};
//! use windlass_core::Gvr;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let rest = RestClient::connect(&Config::load().await?).await?;
//! let pods = Gvr::constant("", "v1", "pods");
//! let mut list = rest.list(&pods, None, &ListOptions::default()).await?;
//! while let Some(pod) = list.next().await {
//!     println!("{}", pod?.str_at("/metadata/name"));
//! }
//! # Ok(())
//! # }
//! ```

mod clientset;
mod config;
mod config_error;
mod conflict;
mod decode;
mod discovery;
mod dynamic;
mod encoding;
mod error;
mod list;
mod metrics;
mod options;
mod patch;
mod path;
mod reader;
mod rest;
mod rest_options;
mod throttle;
mod transport;
mod watch;

pub use clientset::{Api, Clientset, Typed, TypedList, TypedWatch};
pub use config::{Config, ConfigSource, Lookup};
pub use config_error::ConfigError;
pub use conflict::{CONFLICT_ATTEMPTS, retry_on_conflict};
pub use decode::{
    DecodeError, ITEM_BYTES_LIMIT, ListDecoder, ListHead, ObjectError, Undecodable, WatchDecoder,
    WatchError, WatchEvent,
};
pub use discovery::{ApiGroup, ApiResource, Discovery, DiscoveryClient, DiscoveryError};
pub use dynamic::{Deletion, DynamicApi, DynamicClient};
pub use encoding::{Encoding, UnknownEncoding};
pub use error::{Cause, Error, RequestOutcome};
pub use list::{List, ListError, ListStream};
pub use metrics::Metrics;
pub use options::{
    DeleteOptions, FieldValidation, ListOptions, Propagation, VersionMatch, WatchOptions,
    WriteOptions,
};
pub use patch::Patch;
pub use path::RequestTarget;
pub use rest::{Request, RestClient, RestResponse};
pub use rest_options::{BODY_BYTES_LIMIT, RETRIES_LIMIT, RestOptions, TIMEOUT};
pub use throttle::RateLimit;
pub use transport::{
    Body, BoxError, Content, DocList, Events, MetadataOnly, Payload, Transport, TransportError,
    Watching,
};
pub use watch::WatchStream;
pub use windlass_wire::{Status, StatusCause, StatusDetails};
