//! Commands that are a client of a cluster, whichever it is, and those for its data directory.

mod apply;
mod connect;
mod data;
mod delete;
mod describe;
mod events;
mod get;
mod manifest;
mod output;
mod scale;
mod table;
mod target;
mod version;
mod why;

pub(crate) use apply::Arguments as Apply;
pub(crate) use connect::explain_config;
pub(crate) use data::{Backup, CheckArguments as Check, Restore, read_keys};
pub(crate) use delete::Arguments as Delete;
pub(crate) use describe::Arguments as Describe;
pub(crate) use events::Arguments as Events;
pub(crate) use get::Arguments as Get;
pub(crate) use manifest::{Manifest, read as read_manifests};
pub(crate) use output::print;
pub(crate) use scale::Arguments as Scale;
pub(crate) use version::Arguments as Version;
pub(crate) use why::Arguments as Why;
