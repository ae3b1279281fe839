//! The bodies of requests and answers, for clients and servers alike.
//!
//! A client and a server in one process do not see each other; both see this crate. A request
//! carries a [`Payload`], an answer [`Content`]: bytes, or documents that were never written out. A
//! refusal is a [`Status`], and a watch is a stream of [`WatchEvent`]s.
//!
//! Nothing here sends, waits or parses.
//!
//! ```
//! use windlass_core::doc;
//! use windlass_wire::{Content, Payload, Status};
//!
//! let map = doc!({ "kind": "ConfigMap", "metadata": { "name": "a" } });
//! // Between processes a document becomes bytes; within one it stays what it is.
//! assert_eq!(Payload::Doc(map.clone()).into_bytes(), map.to_json());
//! assert!(matches!(Content::Doc(map), Content::Doc(_)));
//! assert!(Status::failure(404, "NotFound", "no such object").is_not_found());
//! ```

mod body;
mod content;
mod error;
mod status;
mod watch;

pub use body::Body;
pub use content::{Content, DocList, Events, Payload};
pub use error::{DecodeError, ObjectError, Undecodable};
pub use status::{Status, StatusCause, StatusDetails};
pub use watch::{WatchError, WatchEvent};

/// Any error, sent between threads.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
