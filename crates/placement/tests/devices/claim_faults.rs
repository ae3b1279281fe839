//! Claims, devices and the pods that wait for them, while requests fail, watches lag and processes
//! crash: no device is given twice, nothing is left behind, and in the end everything is as without
//! faults.

mod counting;
mod history;
mod rules;
mod runs;
mod world;
