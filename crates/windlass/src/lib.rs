//! Kubernetes controllers in Rust.
//!
//! A controller watches objects of one kind and makes the world look as they say. This crate is
//! what its author needs: clients, informers, a work queue, a runtime around them, and a cluster
//! in the process to test it all on.
//!
//! ```no_run
//! use windlass::k8s_openapi::api::core::v1::ConfigMap;
//! use windlass::prelude::*;
//!
//! async fn reconcile(map: Obj<ConfigMap>, cx: Context) -> Result<Action> {
//!     cx.event(&map, Normal, "Seen", "a map was seen");
//!     Ok(Action::done())
//! }
//!
//! # async fn example() -> Result<()> {
//! // Kubeconfig, signals, health, metrics and leader election come from flags.
//! let manager = Manager::from_flags("map-watcher").await?;
//! manager.add(Controller::of::<ConfigMap>(reconcile));
//! manager.run().await?;
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `testing` the same controller runs on a cluster in the process of a test:
//!
//! ```
//! # use windlass::k8s_openapi::api::core::v1::{ConfigMap, Event};
//! # use windlass::prelude::*;
//! # async fn reconcile(map: Obj<ConfigMap>, cx: Context) -> Result<Action> {
//! #     cx.event(&map, Normal, "Seen", "a map was seen");
//! #     Ok(Action::done())
//! # }
//! use windlass::testing::Cluster;
//!
//! # let rt = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
//! # rt.unwrap().block_on(async {
//! let cluster = Cluster::start().await;
//! cluster.run(Controller::of::<ConfigMap>(reconcile));
//! cluster.create_yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}").await;
//! cluster.until(async |c| c.list::<Event>("default").await.len() == 1).await;
//! # });
//! ```
//!
//! The lower levels are public under the names that readers of client-go know:
//! [`cache`] has `Reflector`, `DeltaFifo`, `Indexer`, `SharedInformer`, `InformerFactory` and
//! `Lister`; [`queue`] has `WorkQueue` and its rate limiters; [`client`] has the REST, typed,
//! dynamic and discovery clients.

pub use k8s_openapi;
pub use kube_core;
pub use kube_derive::CustomResource;
pub use windlass_cache as cache;
pub use windlass_client as client;
pub use windlass_core as core;
pub use windlass_queue as queue;
pub use windlass_runtime as runtime;
#[cfg(feature = "server")]
pub use windlass_server as server;
#[cfg(feature = "testing")]
pub use windlass_testing as testing;

/// What most controllers name.
pub mod prelude {
    pub use kube_derive::CustomResource;
    pub use serde_json::json;
    pub use windlass_cache::{Lister, Obj};
    pub use windlass_client::{Clientset, Typed};
    pub use windlass_core::{Doc, Key, OwnerRef, doc};
    pub use windlass_runtime::EventType::{self, Normal, Warning};
    pub use windlass_runtime::{
        Action, Context, Controller, Error, Finalize, Manager, ResourceKind, Result, finalizer,
    };
}
