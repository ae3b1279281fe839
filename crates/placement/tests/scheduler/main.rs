//! The scheduler, seen by the owner of pods, and by plug-ins.

mod corners;
mod filters;
mod node;
mod plugins;
mod preemption;
mod pods;
mod real;
mod scores;
mod support;
mod wakes;
