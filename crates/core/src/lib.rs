//! The object model of windlass: what every other crate speaks in.
//!
//! [`Doc`] is the immutable, shared JSON tree that caches and the server store. Around it stand
//! the plain values of the field: keys, resource versions, selectors, quantities, times, names,
//! patches. [`Env`] is where product code takes time, randomness and ids from.
//!
//! Nothing here waits, spawns or opens anything.
//!
//! ```
//! use windlass_core::{Key, Selector, doc};
//!
//! let pod = doc!({
//!     "metadata": { "name": "web", "namespace": "shop", "labels": { "app": "web" } },
//!     "spec": { "priority": 1 },
//! });
//! assert_eq!(pod.meta().key(), Key::new("shop", "web"));
//! let selector: Selector = "app in (web, db)".parse()?;
//! assert!(selector.matches(&pod.meta().labels()));
//!
//! // A new version shares what did not change, and equal documents are one.
//! let changed = pod.with("/spec/priority", 2)?;
//! assert_eq!(changed.diff(&pod).len(), 1);
//! assert_eq!(changed.with("/spec/priority", 1)?, pod);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod doc;
mod env;
mod gvk;
mod int_or_string;
mod key;
mod memo;
mod meta;
pub mod names;
mod patch;
mod quantity;
mod quote;
mod resource;
mod revision;
mod selector;
mod time;

pub use doc::{
    Array, BYTES_LIMIT, Change, Checker, DEPTH_LIMIT, DecodeError, Difference, Doc, Duplicates,
    EditError, EncodeError, Encoder, Footprint, InternerUsage, Kind, NewPart, Object, Packer,
    ParseError, ParseErrorKind, ParseOptions, Parsed, Parser, Path, Prune, PruneNode, Segment, Str,
    UnpackError, Unpacker, Usage, YamlDuplicate, YamlError, expect_more_nodes, interner_usage,
    part_numbers,
};
pub use env::{Clock, Env, ManualClock};
pub use gvk::{GroupKind, GroupResource, GroupVersion, GroupVersionError, Gvk, Gvr};
pub use int_or_string::{IntOrString, ScaleError};
pub use key::{Key, KeyError, Uid};
pub use memo::Memo;
pub use meta::{Condition, Labels, Meta, OwnerRef, condition, with_condition};
pub use patch::{
    COPIED_BYTES_LIMIT, JsonPatch, OPERATIONS_LIMIT, PatchError, PatchErrorKind, merge_patch,
    merge_patch_between,
};
pub use quantity::{Quantity, QuantityError, QuantityFormat};
pub use quote::quote;
pub use resource::ResourceName;
pub use revision::{AtRevision, Revision, RevisionError};
pub use selector::{
    FieldRequirement, FieldSelector, FieldSelectorError, LabelLookup, LabelSelector,
    LabelSelectorError, LabelSelectorRequirement, Operator, Requirement, RequirementError,
    Selector, SelectorError,
};
pub use time::{MicroTime, Time, TimeError};
