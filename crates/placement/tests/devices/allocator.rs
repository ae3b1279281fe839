//! The structured allocator, by itself.

mod answers;
mod brute_force;
mod cel;
mod choices;
mod counts;
mod limits;
mod objects;
mod selection;
