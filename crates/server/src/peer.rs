//! The connection that a request came over.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use windlass_access::User;

/// A connection as the rest of the server sees it.
pub(crate) trait Connection: fmt::Debug + Send + Sync {
    /// The address of the client.
    fn ip(&self) -> IpAddr;

    /// Notes that a request on the connection, or its certificate, proved who sends it.
    fn authenticated(&self, user: &User);
}

/// The connection that a request came over, among its extensions.
#[derive(Clone, Debug)]
pub(crate) struct Peer(pub(crate) Arc<dyn Connection>);
