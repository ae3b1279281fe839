//! The contract of custom resources, by topic. See the crate for how a case runs on both servers.

mod definitions;
mod kubectl;
mod lifecycle;
mod objects;
mod openapi_v2;
mod protobuf;
mod rules;
mod schemas;
mod serving;
mod support;
mod values;
mod versions;
