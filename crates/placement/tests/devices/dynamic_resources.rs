//! Pods that wait for devices: the plug-in in the scheduler, with the claim controller, a pretend
//! driver and pretend nodes, on the embedded server under a paused clock.

mod binding;
mod failures;
mod held;
mod stage;
mod stories;
mod waiting;
