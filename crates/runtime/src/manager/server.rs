//! The servers for health, metrics and debugging.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::Method;
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};

use super::{
    Inner,
    access::Access,
    endpoints::{Endpoints, TEXT},
    run::RunError,
};
use crate::shutdown::Shutdown;

/// The time that a client may take to send its request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(32);

/// The most clients that are served at the same time; others wait.
const CONNECTIONS_LIMIT: usize = 64;

/// The servers that run. Dropping it ends them.
pub(super) struct Servers {
    tasks: JoinSet<()>,
    shutdown: Shutdown,
    access: Arc<Access>,
}

impl Servers {
    /// Binds the addresses and serves. One address for both gets everything.
    pub(super) async fn start(
        inner: &Arc<Inner>,
        access: Access,
        health: Option<SocketAddr>,
        metrics: Option<SocketAddr>,
    ) -> Result<Self, RunError> {
        let mut servers = Self {
            tasks: JoinSet::new(),
            shutdown: Shutdown::new(),
            access: Arc::new(access),
        };
        match (health, metrics) {
            (Some(health), Some(metrics)) if health == metrics && health.port() != 0 => {
                servers.serve(health, Endpoints::all(inner)).await?;
            }
            (health, metrics) => {
                if let Some(address) = health {
                    servers.serve(address, Endpoints::health(inner)).await?;
                }
                if let Some(address) = metrics {
                    servers.serve(address, Endpoints::metrics(inner)).await?;
                }
            }
        }
        Ok(servers)
    }

    async fn serve(&mut self, address: SocketAddr, endpoints: Endpoints) -> Result<(), RunError> {
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|source| RunError::Listen { address, source })?;
        let address = listener.local_addr().unwrap_or(address);
        tracing::info!(%address, "Serving {}", endpoints.describe());
        let shutdown = self.shutdown.clone();
        let pages = Arc::new(Pages {
            endpoints,
            access: self.access.clone(),
        });
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = shutdown.requested() => {}
                () = accept(listener, pages) => {}
            }
        });
        Ok(())
    }

    pub(super) async fn stop(mut self) {
        self.shutdown.trigger();
        while self.tasks.join_next().await.is_some() {}
    }
}

/// The pages of one server.
struct Pages {
    endpoints: Endpoints,
    access: Arc<Access>,
}

impl Pages {
    async fn answer(&self, request: &http::Request<Incoming>) -> http::Response<Full<Bytes>> {
        let (method, uri) = (request.method(), request.uri());
        let checked = self
            .access
            .check(verb(method), uri.path(), request.headers());
        let (status, content_type, text) = match checked.await {
            Ok(()) => self.endpoints.answer(method, uri),
            Err(refusal) => (refusal.status, TEXT, refusal.text),
        };
        let mut response = http::Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(http::header::CONTENT_TYPE, content_type);
        response
    }
}

/// The verb of an access review.
fn verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::HEAD => "head",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    }
}

async fn accept(listener: TcpListener, pages: Arc<Pages>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_LIMIT));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let pages = pages.clone();
                connections.spawn(async move {
                    connection(stream, pages).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, pages: Arc<Pages>) {
    let service = service_fn(move |request: http::Request<Incoming>| {
        let pages = pages.clone();
        async move { Ok::<_, Infallible>(pages.answer(&request).await) }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT);
    if let Err(error) = builder
        .serve_connection(TokioIo::new(stream), service)
        .await
    {
        tracing::debug!(%error, "a connection broke");
    }
}
