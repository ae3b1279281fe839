//! Calls to webhooks over HTTPS.
//!
//! A [`ClientConfig`] says where a webhook is: at a URL, or behind a Service, whose endpoints a
//! resolver finds. Clients are kept by configuration, so that connections are used again. Calls run
//! on a thread of their own, which the first of them starts: a webhook that hangs takes no thread
//! that serves requests.

mod connect;
mod resolve;
mod verify;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use windlass_core::Doc;

use crate::storage::Storage;
use connect::{Connector, Fault};
pub use resolve::ServiceResolver;

/// Clients that are kept: upstream's number. The one that was used longest ago goes.
const CLIENTS_LIMIT: usize = 200;
/// The largest answer of a webhook.
const ANSWER_BYTES_LIMIT: usize = 64 << 20;
/// Connections to one webhook that are kept while nobody uses them.
const IDLE_CONNECTIONS: usize = 25;
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// The address of a webhook, and the authorities that its certificate is verified by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientConfig {
    /// Host and port; for a Service the name in its certificate and the port.
    authority: String,
    /// Cleaned: no empty segments.
    path: String,
    service: Option<ServiceRef>,
    /// In PEM; empty for the authorities of the machine.
    bundle: Vec<u8>,
}

/// A reference to a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServiceRef {
    namespace: String,
    name: String,
    port: u16,
}

/// The answer of a webhook, whatever its code.
#[derive(Debug)]
pub(crate) struct CallAnswer {
    pub(crate) code: u16,
    /// True if the body is text for people.
    pub(crate) is_text: bool,
    pub(crate) body: Bytes,
}

/// A call that failed, in the words of upstream's client.
#[derive(Debug)]
pub(crate) struct CallError(pub(crate) String);

/// The clients of all webhooks of a server.
#[derive(Default)]
pub(crate) struct Callouts {
    /// Started by the first call.
    runtime: OnceLock<Runtime>,
    /// The one that was used last comes last.
    clients: Mutex<Vec<(ClientConfig, HookClient)>>,
    /// Set by who runs the server; the stored endpoints count without one.
    resolver: Mutex<Option<Arc<dyn ServiceResolver>>>,
}

type HookClient = Client<Connector, Full<Bytes>>;

impl ClientConfig {
    /// Reads `clientConfig`, or says why that cannot be.
    pub(crate) fn new(config: &Doc) -> Result<Self, String> {
        let bundle = BASE64.decode(config.str_at("/caBundle"));
        let bundle = bundle.map_err(|error| format!("the caBundle is not base64: {error}"))?;
        let service = config.at("/service");
        if !service.is_null() {
            let (namespace, name) = (service.str_at("/namespace"), service.str_at("/name"));
            let port = service.at("/port").as_i64().unwrap_or(443);
            let port = u16::try_from(port).map_err(|_| format!("{port} is not a port"))?;
            return Ok(Self {
                authority: format!("{name}.{namespace}.svc:{port}"),
                path: clean(service.str_at("/path")),
                service: Some(ServiceRef {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                    port,
                }),
                bundle,
            });
        }
        let url = config.str_at("/url");
        let Some(rest) = url.strip_prefix("https://") else {
            return Err("webhook configuration must have either service or URL".to_owned());
        };
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        Ok(Self {
            authority: authority.to_owned(),
            path: clean(path),
            service: None,
            bundle,
        })
    }

    fn url(&self, timeout: Duration) -> String {
        let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
        format!("https://{}{}?timeout={seconds}s", self.authority, self.path)
    }

    /// The name that the certificate must carry.
    fn host(&self) -> &str {
        let authority = &self.authority;
        match authority
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
        {
            Some((address, _)) => address,
            None => authority
                .split_once(':')
                .map_or(authority, |(host, _)| host),
        }
    }

    fn port(&self) -> u16 {
        let port = self
            .authority
            .rsplit_once(':')
            .map(|(_, port)| port.parse());
        match port {
            Some(Ok(port)) => port,
            _ => 443,
        }
    }

    /// Returns true if HTTP/2 may be spoken: one connection to many servers would reach only one.
    fn is_loopback(&self) -> bool {
        let host = self.host();
        let address: Option<std::net::IpAddr> = host.parse().ok();
        self.service.is_none()
            && (host.eq_ignore_ascii_case("localhost")
                || address.is_some_and(|address| address.is_loopback()))
    }
}

/// A path without empty segments, as upstream's client cleans it.
fn clean(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

impl Callouts {
    /// Sets who finds the address of a Service.
    pub(crate) fn set_resolver(&self, resolver: Arc<dyn ServiceResolver>) {
        *self.resolver.lock() = Some(resolver);
    }

    /// Posts a document, and waits for the answer no longer than `timeout`.
    pub(crate) async fn post(
        &self,
        config: &ClientConfig,
        storage: &Storage,
        body: &Doc,
        (agent, timeout): (&'static str, Duration),
    ) -> Result<CallAnswer, CallError> {
        let url = config.url(timeout);
        let failed = |why: String| CallError(format!("Post {url:?}: {why}"));
        let deadline_exceeded = || failed("context deadline exceeded".to_owned());
        if timeout.is_zero() {
            return Err(deadline_exceeded());
        }
        let call = self.call(config, storage, body, (agent, &url));
        let (call, runtime) = call.map_err(failed)?;
        let task = runtime.spawn(async move { tokio::time::timeout(timeout, call).await });
        let _abort = AbortOnDrop(task.abort_handle());
        match task.await {
            Ok(Ok(Ok(answer))) => Ok(answer),
            Ok(Ok(Err(why))) => Err(failed(why)),
            Ok(Err(_)) => Err(deadline_exceeded()),
            Err(_) => Err(failed("the call was ended".to_owned())),
        }
    }

    fn call(
        &self,
        config: &ClientConfig,
        storage: &Storage,
        body: &Doc,
        (agent, url): (&'static str, &str),
    ) -> Result<
        (
            impl Future<Output = Result<CallAnswer, String>> + use<>,
            &Runtime,
        ),
        String,
    > {
        let client = self.client(config, storage)?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(url)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, agent)
            .body(Full::new(Bytes::from(body.to_json())));
        let request = request.map_err(|error| error.to_string())?;
        let call = async move {
            let response = client.request(request).await;
            let response = response.map_err(|error| reason(&error))?;
            let code = response.status().as_u16();
            let media_type = response.headers().get(header::CONTENT_TYPE);
            let media_type = media_type.map_or(&b"text/"[..], |value| value.as_bytes());
            let is_text = media_type.starts_with(b"text/");
            let body = Limited::new(response.into_body(), ANSWER_BYTES_LIMIT);
            let body = body.collect().await.map_err(|error| error.to_string())?;
            let body = body.to_bytes();
            Ok(CallAnswer {
                code,
                is_text,
                body,
            })
        };
        Ok((call, self.runtime()?))
    }

    fn runtime(&self) -> Result<&Runtime, String> {
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime);
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("windlass-hooks")
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        // Another call may have been faster; a runtime must not be dropped where others wait.
        if let Err(late) = self.runtime.set(runtime) {
            late.shutdown_background();
        }
        self.runtime
            .get()
            .ok_or_else(|| "the thread of webhooks did not start".to_owned())
    }

    /// The client of a configuration.
    fn client(&self, config: &ClientConfig, storage: &Storage) -> Result<HookClient, String> {
        let mut clients = self.clients.lock();
        if let Some(at) = clients.iter().position(|(known, _)| known == config) {
            let known = clients.remove(at);
            let client = known.1.clone();
            clients.push(known);
            return Ok(client);
        }
        let resolver = self.resolver.lock().clone();
        let connector = Connector::new(config, storage.clone(), resolver)?;
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .build(connector);
        if clients.len() >= CLIENTS_LIMIT {
            clients.remove(0);
        }
        clients.push((config.clone(), client.clone()));
        Ok(client)
    }
}

/// The reason of a failed call, in the words of upstream's client where it has some.
fn reason(error: &hyper_util::client::legacy::Error) -> String {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut last = error.to_string();
    while let Some(error) = source {
        if let Some(fault) = error.downcast_ref::<Fault>() {
            return fault.to_string();
        }
        if let Some(error) = error.downcast_ref::<hyper::Error>()
            && error.is_incomplete_message()
        {
            return "EOF".to_owned();
        }
        last = error.to_string();
        source = error.source();
    }
    last
}

/// Ends a call that nobody waits for.
struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl fmt::Debug for Callouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callouts").finish_non_exhaustive()
    }
}

impl Drop for Callouts {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Nobody waits for calls any more.
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    #[test]
    fn addresses_are_read_as_upstream_reads_them() {
        for (given, url, host, port) in [
            (
                doc!({ "url": "https://127.0.0.1:9443//validate" }),
                "https://127.0.0.1:9443/validate?timeout=2s",
                "127.0.0.1",
                9443,
            ),
            (
                doc!({ "url": "https://example.com" }),
                "https://example.com/?timeout=2s",
                "example.com",
                443,
            ),
            (
                doc!({ "url": "https://[::1]:8443/a/" }),
                "https://[::1]:8443/a?timeout=2s",
                "::1",
                8443,
            ),
            (
                doc!({ "service": { "name": "a", "namespace": "b", "path": "/c" } }),
                "https://a.b.svc:443/c?timeout=2s",
                "a.b.svc",
                443,
            ),
        ] {
            let config = ClientConfig::new(&given).unwrap();
            assert_eq!(config.url(Duration::from_millis(1500)), url);
            assert_eq!((config.host(), config.port()), (host, port));
        }
    }
}
