//! The transport over the network: HTTP/2 where the server offers it, TLS, proxies, credentials.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::rt::{Read, Write};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube_client::client::ConfigExt;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt};

use super::ahead::ReadAhead;
use super::batch::WriteBatch;
use super::lanes::{Lane, Lanes};
use super::{BoxError, Transport};
use crate::config_error::{ConfigError, redact};

/// A silent connection is probed after this time and given up after the next, as client-go does:
/// a dead peer is noticed within 45 seconds. The names are those of environment variables that
/// override them.
const READ_IDLE_TIMEOUT: (&str, u64) = ("HTTP2_READ_IDLE_TIMEOUT_SECONDS", 30);
const PING_TIMEOUT: (&str, u64) = ("HTTP2_PING_TIMEOUT_SECONDS", 15);

/// Bytes a server may send on one stream before we have read them. This bounds what a list that is
/// not being read holds in memory.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// Larger frames mean fewer list items that lie in two of them.
const FRAME_BYTES: u32 = 256 << 10;

/// Headers of one answer, all together.
const HEADER_BYTES: u32 = 64 << 10;

/// A transport to the server that a configuration names.
///
/// This runs an exec plug-in, if the configuration has one, and so it may block for a moment.
pub(crate) fn connect(config: &kube_client::Config) -> Result<Transport, ConfigError> {
    // Without this, rustls panics where more than one provider is compiled in.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    let lanes = match config.proxy_url.as_ref() {
        None => lanes(config, tcp)?,
        Some(proxy) => match proxy.scheme_str() {
            Some("socks5") => lanes(config, SocksV5::new(proxy.clone(), tcp))?,
            Some("http") => lanes(config, tunnel(proxy, tcp))?,
            Some("https") => {
                let tls = config.rustls_https_connector_with_connector(tcp);
                lanes(config, tunnel(proxy, tls.map_err(ConfigError::tls)?))?
            }
            _ => return Err(ConfigError::proxy(&redact(proxy))),
        },
    };
    let service = config
        .extra_headers_layer()
        .map_err(ConfigError::headers)?
        .layer(lanes);
    let base = config.base_uri_layer();
    Ok(
        match config.auth_layer().map_err(ConfigError::credentials)? {
            Some(auth) => Transport::http(base.layer(auth.layer(service))),
            None => Transport::http(base.layer(service)),
        },
    )
}

/// Passes the user and password of a proxy's address on to the proxy.
fn tunnel<C>(proxy: &http::Uri, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.clone(), connector);
    let credentials = proxy
        .authority()
        .and_then(|it| it.as_str().rsplit_once('@'));
    match credentials.and_then(|(userinfo, _)| basic(userinfo)) {
        Some(header) => tunnel.with_auth(header),
        None => tunnel,
    }
}

fn basic(userinfo: &str) -> Option<http::HeaderValue> {
    let plain = percent_encoding::percent_decode_str(userinfo).collect::<Vec<u8>>();
    let mut header =
        http::HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(plain))).ok()?;
    header.set_sensitive(true);
    Some(header)
}

fn lanes<H>(config: &kube_client::Config, connector: H) -> Result<Lanes, ConfigError>
where
    H: Service<http::Uri> + Clone + Send + Sync + 'static,
    H::Response: Connection + Read + Write + Send + Unpin + 'static,
    H::Future: Send + 'static,
    H::Error: Into<BoxError>,
{
    let tls = config.rustls_client_config().map_err(ConfigError::tls)?;
    let mut builder = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name
            .clone()
            .try_into()
            .map_err(|_| ConfigError::server_name(name))?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let connector = builder
        .enable_all_versions()
        .wrap_connector(connector.map_response(ReadAhead::new))
        .map_response(WriteBatch::new);
    Ok(Lanes::new(move || lane(connector.clone())))
}

fn lane<C>(connector: C) -> Lane
where
    C: hyper_util::client::legacy::connect::Connect + Clone + Send + Sync + 'static,
{
    let client: Client<C, Full<Bytes>> = Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_initial_stream_window_size(STREAM_WINDOW_BYTES)
        .http2_initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_max_frame_size(FRAME_BYTES)
        .http2_max_header_list_size(HEADER_BYTES)
        .http2_keep_alive_interval(seconds(READ_IDLE_TIMEOUT))
        .http2_keep_alive_timeout(seconds(PING_TIMEOUT))
        .http2_keep_alive_while_idle(true)
        .build(connector);
    BoxCloneSyncService::new(client.map_err(BoxError::from))
}

fn seconds((variable, default): (&str, u64)) -> Duration {
    let chosen = std::env::var(variable)
        .ok()
        .and_then(|text| text.parse().ok());
    Duration::from_secs(chosen.unwrap_or(default))
}
