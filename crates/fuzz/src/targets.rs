//! The targets, and the table of them.

mod apply;
mod cel;
pub(crate) mod kubeconfig;
mod objects;
mod patches;
mod served;
mod store;
mod streams;
mod text;
mod values;
mod wire;

pub use self::apply::{canonical_form, field_set, server_side_apply};
pub use self::cel::{cel, cel_device};
pub use self::kubeconfig::kubeconfig;
pub use self::objects::{crd_schema, rbac_rules};
pub use self::patches::{json_patch, merge_patch, strategic_merge_patch};
pub use self::served::{continue_token, request_body, request_headers, request_target};
pub use self::store::store_recovery;
pub use self::streams::{list_stream, watch_stream};
pub use self::text::{json, yaml};
pub use self::values::{field_selector, label_selector, quantity, time};
pub use self::wire::{packed, protobuf};

use crate::{Outcome, seeds};

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name, which is that of its function.
    pub name: &'static str,
    /// The function.
    pub run: fn(&[u8]) -> Outcome,
    /// The inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words that mean something to it.
    pub words: &'static [&'static str],
    /// Inputs that a plain test runs.
    pub iterations: u64,
}

macro_rules! targets {
    ($($name:ident $seeds:ident $words:ident $iterations:literal;)*) => {
        /// All targets.
        pub const TARGETS: &[Target] = &[$(Target {
            name: stringify!($name),
            run: $name,
            seeds: seeds::$seeds,
            words: seeds::$words,
            iterations: $iterations,
        }),*];
    };
}

targets! {
    json json POD_WORDS 4000;
    yaml yaml YAML_WORDS 3000;
    protobuf protobuf POD_WORDS 20000;
    packed packed POD_WORDS 6000;
    merge_patch merge_patch POD_WORDS 10000;
    json_patch json_patch POINTER_WORDS 10000;
    strategic_merge_patch strategic_merge_patch POD_WORDS 5000;
    server_side_apply server_side_apply POD_WORDS 2000;
    field_set field_set FIELD_WORDS 7000;
    canonical_form json POD_WORDS 6000;
    label_selector label_selector SELECTOR_WORDS 20000;
    field_selector field_selector SELECTOR_WORDS 20000;
    quantity quantity QUANTITY_WORDS 20000;
    time time TIME_WORDS 20000;
    cel cel CEL_WORDS 10000;
    cel_device cel_device CEL_WORDS 10000;
    kubeconfig kubeconfig KUBECONFIG_WORDS 1000;
    list_stream list_stream POD_WORDS 5000;
    watch_stream watch_stream POD_WORDS 5000;
    crd_schema crd_schema SCHEMA_WORDS 300;
    rbac_rules rbac_rules RBAC_WORDS 300;
    continue_token continue_token TOKEN_WORDS 1000;
    store_recovery store_recovery NO_WORDS 40;
    request_target request_target TARGET_WORDS 1000;
    request_headers request_headers HEADER_WORDS 1000;
    request_body request_body BODY_WORDS 300;
}
