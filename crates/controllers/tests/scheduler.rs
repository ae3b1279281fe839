//! The scheduler, seen by the owner of pods, and by plug-ins.

#[path = "scheduler/corners.rs"]
mod corners;
#[path = "scheduler/filters.rs"]
mod filters;
#[path = "scheduler/plugins.rs"]
mod plugins;
#[path = "scheduler/pods.rs"]
mod pods;
#[path = "scheduler/scores.rs"]
mod scores;
#[path = "scheduler/support.rs"]
mod support;
#[path = "scheduler/wakes.rs"]
mod wakes;
