//! Connections to webhooks.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::Service;

use super::resolve::{ServiceResolver, find_endpoint};
use super::verify::{self, describe};
use super::{ClientConfig, ServiceRef};
use crate::storage::Storage;

/// A connection that was not made, in the words of upstream's client.
#[derive(Debug)]
pub(super) struct Fault(String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

/// Connects to one webhook.
#[derive(Clone)]
pub(super) struct Connector {
    tls: TlsConnector,
    name: ServerName<'static>,
    host: String,
    port: u16,
    service: Option<ServiceRef>,
    storage: Storage,
    resolver: Option<Arc<dyn ServiceResolver>>,
}

/// A connection to a webhook.
pub(super) struct HookStream(TokioIo<TlsStream<TcpStream>>);

impl Connector {
    pub(super) fn new(
        config: &ClientConfig,
        storage: Storage,
        resolver: Option<Arc<dyn ServiceResolver>>,
    ) -> Result<Self, String> {
        let tls = verify::client_config(&config.bundle, config.is_loopback())?;
        let host = config.host().to_owned();
        let name = ServerName::try_from(host.clone());
        Ok(Self {
            tls: TlsConnector::from(tls),
            name: name.map_err(|error| format!("the host {host:?} is not a name: {error}"))?,
            host,
            port: config.port(),
            service: config.service.clone(),
            storage,
            resolver,
        })
    }

    async fn connect(self) -> Result<HookStream, Fault> {
        let address = match &self.service {
            Some(service) => self.endpoint(service)?,
            None => lookup(&self.host, self.port).await?,
        };
        let stream = TcpStream::connect(address).await;
        let stream = stream.map_err(|error| refused(address, &error))?;
        // A review is one small request.
        let _ = stream.set_nodelay(true);
        let stream = self.tls.connect(self.name, stream).await;
        let stream = stream.map_err(|error| Fault(describe(&error)))?;
        Ok(HookStream(TokioIo::new(stream)))
    }

    fn endpoint(&self, service: &ServiceRef) -> Result<SocketAddr, Fault> {
        let (namespace, name, port) = (&service.namespace, &service.name, service.port);
        if let Some(resolver) = &self.resolver
            && let Some(address) = resolver.resolve(namespace, name, port)
        {
            return Ok(address);
        }
        find_endpoint(&self.storage, namespace, name, port).map_err(Fault)
    }
}

async fn lookup(host: &str, port: u16) -> Result<SocketAddr, Fault> {
    let no_host = || Fault(format!("dial tcp: lookup {host}: no such host"));
    let found = tokio::net::lookup_host((host, port)).await;
    let mut found = found.map_err(|_| no_host())?;
    found.next().ok_or_else(no_host)
}

fn refused(address: SocketAddr, error: &std::io::Error) -> Fault {
    let why = match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        std::io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
        std::io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        _ => error.to_string(),
    };
    Fault(format!("dial tcp {address}: connect: {why}"))
}

impl Service<Uri> for Connector {
    type Response = HookStream;
    type Error = Fault;
    type Future = Pin<Box<dyn Future<Output = Result<HookStream, Fault>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().connect())
    }
}

impl Connection for HookStream {
    fn connected(&self) -> Connected {
        let (_, session) = self.0.inner().get_ref();
        match session.alpn_protocol() {
            Some(b"h2") => Connected::new().negotiated_h2(),
            _ => Connected::new(),
        }
    }
}

impl Read for HookStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl Write for HookStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
