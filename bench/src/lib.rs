//! Benchmarks of windlass, and the pod corpus that they and their peers share.
//!
//! The corpus and the meter depend on nothing of ours and on no Kubernetes types, so that the
//! peers under `bench/peers` can use them too.

pub mod contest;
pub mod corpus;
pub mod meter;
