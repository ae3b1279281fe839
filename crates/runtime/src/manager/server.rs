//! The servers for health, metrics and debugging.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};

use super::{Inner, endpoints::Endpoints, run::RunError};
use crate::shutdown::Shutdown;

/// How long a client may take to send its request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(32);

/// How many clients are served at the same time; others wait.
const CONNECTIONS_LIMIT: usize = 64;

/// The servers that run. Dropping it ends them.
pub(super) struct Servers {
    tasks: JoinSet<()>,
    shutdown: Shutdown,
}

impl Servers {
    /// Binds the addresses and serves. One address for both gets everything.
    pub(super) async fn start(
        inner: &Arc<Inner>,
        health: Option<SocketAddr>,
        metrics: Option<SocketAddr>,
    ) -> Result<Self, RunError> {
        let mut servers = Self {
            tasks: JoinSet::new(),
            shutdown: Shutdown::new(),
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
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = shutdown.requested() => {}
                () = accept(listener, Arc::new(endpoints)) => {}
            }
        });
        Ok(())
    }

    pub(super) async fn stop(mut self) {
        self.shutdown.trigger();
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn accept(listener: TcpListener, endpoints: Arc<Endpoints>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_LIMIT));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let endpoints = endpoints.clone();
                connections.spawn(async move {
                    connection(stream, endpoints).await;
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

async fn connection(stream: TcpStream, endpoints: Arc<Endpoints>) {
    let service = service_fn(move |request: http::Request<Incoming>| {
        let (status, content_type, text) = endpoints.answer(request.method(), request.uri());
        let mut response = http::Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        response
            .headers_mut()
            .insert(http::header::CONTENT_TYPE, content_type);
        async { Ok::<_, Infallible>(response) }
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
