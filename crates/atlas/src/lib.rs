//! Facts about the built-in types of Kubernetes 1.36, and what they drive.
//!
//! One table, made by `cargo xtask atlas` from the Go sources of the types, says for every field
//! its JSON name, protobuf number, shape, list type, merge key, default and more. From it follow:
//!
//! * [`Atlas::kind`] and [`Type::field`]: the facts themselves, for OpenAPI and defaults;
//! * [`decode_protobuf`]: request bodies of typed clients, as the JSON those would have sent;
//! * [`ProtobufDecoder`] and [`protobuf_event`]: watches in protobuf;
//! * [`ProtobufEncoder`]: the other way round, for what our own clients send;
//! * [`ObjectEncoder`]: objects, lists and events as kube-apiserver writes them;
//! * [`canonical`] and [`stored`]: an object with exactly the empty fields that upstream writes;
//! * [`unknown_fields`]: what strict field validation refuses;
//! * [`apply`]: server-side apply and `managedFields`;
//! * [`strategic_merge`][]: `application/strategic-merge-patch+json`.
//!
//! Everything is a pure function on [`Doc`](windlass_core::Doc). Custom resources are not in the
//! table: [`Atlas::kind`] knows none of them.
//!
//! ```
//! use windlass_atlas::{Atlas, strategic_merge, unknown_fields};
//! use windlass_core::{Gvk, doc};
//!
//! let pod = Atlas::kind(&Gvk::constant("", "v1", "Pod")).expect("a built-in kind");
//! let live = doc!({ "spec": { "containers": [{ "name": "web", "image": "web:1" }] } });
//! let patch = doc!({ "spec": { "containers": [{ "name": "log", "image": "log:1" }] } });
//!
//! let merged = strategic_merge(pod, &live, &patch)?;
//! assert_eq!(merged.at("/spec/containers").items().len(), 2);
//! assert_eq!(unknown_fields(pod, &doc!({ "spec": { "foo": 1 } }))[0].to_string(),
//!     r#"unknown field "spec.foo""#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod apply;
mod canonical;
mod protobuf;
mod strategic;
mod table;
mod unknown;
mod zero;

pub use canonical::{canonical, stored};
pub use protobuf::{
    Decoded, EncodeError, MESSAGES_LIMIT, ObjectEncoder, PROTOBUF_PREFIX, ProtobufDecoder,
    ProtobufEncoder, ProtobufError, decode_protobuf, decode_protobuf_as, protobuf_event,
    protobuf_kind, protobuf_list_metadata, write_protobuf_event,
};
pub use strategic::{StrategicError, strategic_merge};
pub use table::{Atlas, EnumRef, Field, ListType, Shape, Strategy, Type, TypeRef};
pub use unknown::{UNKNOWN_LIMIT, UnknownField, unknown_fields};
