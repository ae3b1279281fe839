//! The contract, by topic. See the crate for how a case runs on both servers.

mod create;
mod delete;
mod delete_collection;
mod list;
mod paging;
mod patch;
mod pods;
mod selectors;
mod update;
mod watch;
mod watch_list;
