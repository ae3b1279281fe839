//! The ReplicaSet controller on a cluster: black box, by what is there in the end.

mod claims;
mod deletion;
mod faults;
mod lag;
mod scaling;
mod status;

use crate::{simulated, stage};
