//! The scheduler, seen by the owner of pods, and by plug-ins.

mod corners;
mod filters;
mod kubelet;
mod node;
mod plugins;
mod pods;
mod preemption;
mod real;
mod scores;
mod support;
mod volumes;
mod wakes;
