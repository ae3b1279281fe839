//! The embedded Kubernetes API server.
//!
//! [`Server`] is a [`tower::Service`] over HTTP requests. [`serve`] puts it behind TLS on a
//! socket. In process a client calls it as a [`DocService`], in documents instead of bytes, and
//! [`Server::watch_docs`] hands out watch events as shared documents.
//!
//! ```text
//! connection ─▶ request ─▶ authentication, authorization ─▶ rest ─▶ registry row and hooks
//!   listen      dispatch         windlass-access             │    windlass-schema, windlass-rules
//!                                                            ▼
//!                                                windlass-store (objects, watches)
//! ```
//!
//! There is one generic registry. A kind is one row, with optional hooks for its defaults, its
//! validation and the few things that only it does; there is no handler per kind.
//!
//! ```no_run
//! use windlass_core::Env;
//! use windlass_server::{Certificates, Server, ServerOptions, kubeconfig, serve};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let env = Env::real();
//! let server = Server::open(ServerOptions::memory(env.clone())).await?;
//! let certificates = Certificates::in_memory(&[], &env)?;
//! let listening = serve(server.clone(), "127.0.0.1:0".parse()?, &certificates, &[]).await?;
//! let url = format!("https://{}", listening.address());
//! println!("{}", kubeconfig(&url, &certificates, server.admin_token()));
//! listening.run(std::future::pending()).await;
//! # Ok(())
//! # }
//! ```
//!
//! Deliberately absent: proxying, exec, attach and port-forward; nothing here runs containers.

mod admission;
mod allocate;
mod audit;
mod body;
mod bootstrap;
mod callout;
mod certs;
mod compress;
mod crd;
mod credentials;
mod dangling;
mod definitions;
mod discovery;
mod dispatch;
mod extension;
mod first_flow;
mod flow;
mod follow_up;
mod health;
mod in_process;
mod issuer;
mod kubeconfig;
mod listen;
mod metrics;
mod metrics_page;
mod negotiate;
mod object_size;
mod open;
mod openapi;
mod ordered_json;
mod overload;
mod pages;
mod parsers;
mod peer;
mod private_file;
mod query;
mod registry;
mod request;
mod respond;
mod rest;
mod server;
mod storage;
mod tls;
mod version;
mod watch;
mod work;

pub use allocate::{ServiceNetwork, ServiceNetworkError};
pub use audit::{AuditOptions, AuditPolicy, AuditPolicyError};
pub use body::Body;
pub use callout::ServiceResolver;
pub use certs::{CertificateError, Certificates, Identity};
pub use dispatch::InProcess;
pub use in_process::DocService;
pub use kubeconfig::kubeconfig;
pub use listen::{Listening, ServeError, serve};
pub use open::{ServerError, ServerOptions};
pub use private_file::{
    make_directory, read_key as read_key_file, write as write_private_file,
    write_at_start as write_private_file_at_start,
};
pub use server::Server;
pub use watch::{DocWatch, WatchDocs};
pub use windlass_access::admission::{Admission, DisabledPlugins, PluginNameError};
pub use windlass_access::token::{SignerError, TokenOptions};
pub use windlass_access::{
    AuthenticationOptions, StaticToken, TokenFileError, User, read_token_file,
};
pub use windlass_faults::FaultPlan;
pub use windlass_rules::status::Status;
pub use windlass_schema::actors::RunningControllers;
