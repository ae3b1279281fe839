//! The smallest HTTPS client that can ask a server whether it is ready.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto::ring, pki_types::ServerName,
};

use crate::pki::{Authority, Identity};

/// A server that is just starting may accept and then say nothing for a while.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A longer answer is refused.
const RESPONSE_BYTES_LIMIT: u64 = 16 << 20;

/// What the server answered.
#[derive(Debug, Clone)]
pub struct Response {
    /// The HTTP status code.
    pub status: u16,
    /// The body as text.
    pub body: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The connection failed or broke.
    #[error("cannot get {path}")]
    Io {
        /// The path that was asked for.
        path: String,
        /// What went wrong.
        source: io::Error,
    },
    /// The server sent something that is not HTTP, or more than an answer may have.
    #[error("the answer for {path} is not HTTP or longer than {RESPONSE_BYTES_LIMIT} bytes")]
    Malformed {
        /// The path that was asked for.
        path: String,
    },
}

/// Asks servers whose certificates come from one authority, as one user.
#[derive(Debug)]
pub(crate) struct Probe {
    config: Arc<ClientConfig>,
}

impl Probe {
    pub(crate) fn new(authority: &Authority, identity: &Identity) -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add(authority.der())?;
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![identity.certificate_der()], identity.key_der())?;
        Ok(Self {
            config: Arc::new(config),
        })
    }

    pub(crate) fn get(&self, port: u16, path: &str) -> Result<Response, ProbeError> {
        let bytes = self.exchange(port, path).map_err(|source| ProbeError::Io {
            path: path.to_owned(),
            source,
        })?;
        parse(&bytes).ok_or_else(|| ProbeError::Malformed {
            path: path.to_owned(),
        })
    }

    /// Speaks HTTP/1.0, in which a body ends with the connection: nothing has to be decoded.
    fn exchange(&self, port: u16, path: &str) -> io::Result<Vec<u8>> {
        if path.contains(|c: char| c.is_ascii_control() || c == ' ') {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a path"));
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let socket = TcpStream::connect_timeout(&address, TIMEOUT)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        let name = ServerName::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
        let connection =
            ClientConnection::new(Arc::clone(&self.config), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, socket);
        write!(
            stream,
            "GET {path} HTTP/1.0\r\nHost: localhost\r\nAccept: application/json\r\n\r\n"
        )?;
        let mut bytes = Vec::new();
        stream
            .take(RESPONSE_BYTES_LIMIT + 1)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

fn parse(bytes: &[u8]) -> Option<Response> {
    if bytes.len() as u64 > RESPONSE_BYTES_LIMIT {
        return None;
    }
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head
        .strip_prefix("HTTP/1.")?
        .split(' ')
        .nth(1)?
        .parse()
        .ok()?;
    Some(Response {
        status,
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_is_split_into_status_and_body() {
        let response = parse(b"HTTP/1.0 404 Not Found\r\nDate: x\r\n\r\nno\r\n\r\nmore").unwrap();
        assert_eq!(
            (response.status, response.body.as_str()),
            (404, "no\r\n\r\nmore")
        );
    }

    #[test]
    fn what_is_not_http_is_refused() {
        for bytes in [
            "",
            "HTTP/1.1 200 OK",
            "HTTP/2 200 OK\r\n\r\n",
            "HTTP/1.1 x\r\n\r\n",
        ] {
            assert!(parse(bytes.as_bytes()).is_none(), "{bytes:?}");
        }
    }
}
