//! The CPU time of hostile bodies: none costs more than a small multiple of creating a plain object
//! of as many bytes, whatever its content type and its shape.
//!
//! The tests run one after the other, so that the CPU time of the process is that of one request,
//! whichever thread of the server does the work.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod apply;
mod create;
mod json_patch;
mod kinds;
mod merge;
mod pods;
mod protobuf;
mod shapes;
mod strategic;
mod support;
mod update;
mod yaml;

use parking_lot::Mutex;
use support::{Case, Meter};

/// How much more than creating the same bytes a body may cost.
const RATIO_LIMIT: f64 = 20.0;

/// Measures all cases of a content type; on failure the table is in the message.
fn assert_cheap(cases: &[Case]) {
    static ONE_BY_ONE: Mutex<()> = Mutex::new(());
    let _alone = ONE_BY_ONE.lock();
    let meter = Meter::new();
    let (mut table, mut worst) = (String::new(), 0.0_f64);
    for case in cases {
        let ratio = meter.ratio(case);
        worst = worst.max(ratio.value);
        let line = format!("{:>8.1}  {}  {}", ratio.value, ratio.code, case.name);
        println!("{line}");
        table.push_str(&line);
        table.push('\n');
    }
    assert!(
        worst <= RATIO_LIMIT,
        "CPU of each body as a multiple of creating the same bytes, at most {RATIO_LIMIT}:\n{table}"
    );
}

#[test]
fn json_bodies_cost_no_more_than_their_bytes() {
    assert_cheap(&create::cases());
}

#[test]
fn pods_of_many_parts_cost_no_more_than_their_bytes() {
    assert_cheap(&pods::cases());
}

#[test]
fn other_kinds_of_many_parts_cost_no_more_than_their_bytes() {
    assert_cheap(&kinds::cases());
}

#[test]
fn updates_cost_no_more_than_their_bytes() {
    assert_cheap(&update::cases());
}

#[test]
fn yaml_bodies_cost_no_more_than_their_bytes() {
    assert_cheap(&yaml::cases());
}

#[test]
fn protobuf_bodies_cost_no_more_than_their_bytes() {
    assert_cheap(&protobuf::cases());
}

#[test]
fn merge_patches_cost_no_more_than_their_bytes() {
    assert_cheap(&merge::cases());
}

#[test]
fn json_patches_cost_no_more_than_their_bytes() {
    assert_cheap(&json_patch::cases());
}

#[test]
fn strategic_merge_patches_cost_no_more_than_their_bytes() {
    assert_cheap(&strategic::cases());
}

#[test]
fn applied_configurations_cost_no_more_than_their_bytes() {
    assert_cheap(&apply::cases());
}
