//! The definitions of custom resources, as they are served.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Mutex;
use windlass_core::{Doc, Uid};

use crate::registry::Resource;

/// What is served of the definitions, and who may change that.
#[derive(Debug, Default)]
pub(crate) struct Definitions(pub(crate) Mutex<Served>);

/// By the name of the definition.
pub(crate) type Served = BTreeMap<String, Definition>;

/// One definition as it is served.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) uid: Uid,
    /// The state of the definition that the rows are made of.
    pub(crate) revision: String,
    pub(crate) spec: Doc,
    pub(crate) is_terminating: bool,
    pub(crate) rows: Vec<Arc<Resource>>,
}
