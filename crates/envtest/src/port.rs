//! Ports that stay free until a server takes them.

use std::{
    io,
    net::{Ipv4Addr, SocketAddrV4},
};

use socket2::{Domain, Socket, Type};

/// A loopback port that only a server told to share it can listen on.
///
/// The socket is bound but never listens. The kernel gives its port to nobody who asks for just
/// any port, and so neither tests in parallel nor outgoing connections can take it, before the
/// first start or while the server is down. A server with `--permit-port-sharing` can listen.
#[derive(Debug)]
pub(crate) struct ReservedPort {
    number: u16,
    /// Held for the reservation alone.
    _socket: Socket,
}

impl ReservedPort {
    pub(crate) fn new() -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_reuse_port(true)?;
        socket.bind(&SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0).into())?;
        let address = socket.local_addr()?;
        let number = address
            .as_socket_ipv4()
            .map(|address| address.port())
            .ok_or_else(|| io::Error::other("a socket bound to IPv4 has no IPv4 address"))?;
        Ok(Self {
            number,
            _socket: socket,
        })
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.number)
    }
}
