//! Servers that say what a test wants them to say.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::Full;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::service_fn;
use windlass_client::{
    BoxError, Config, Content, Payload, RestClient, RestOptions, Transport, TransportError,
};

/// Answers every connection with a script, after the head of a request has been read.
pub(crate) async fn tcp<F, R>(script: F) -> Config
where
    F: Fn(TcpStream) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            if read_head(&mut stream).await.is_some() {
                tokio::spawn(script(stream));
            }
        }
    });
    Config::from_url(&url).unwrap()
}

async fn read_head(stream: &mut TcpStream) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(())
}

/// Writes until the client hangs up.
pub(crate) async fn endless(mut stream: TcpStream, start: &str, filler: &[u8]) {
    let mut sent = stream.write_all(start.as_bytes()).await;
    while sent.is_ok() {
        sent = stream.write_all(filler).await;
    }
}

/// Writes once and hangs up.
pub(crate) async fn once(mut stream: TcpStream, bytes: &str) {
    drop(stream.write_all(bytes.as_bytes()).await);
}

/// A client with small limits, over the network.
pub(crate) async fn small(config: &Config) -> RestClient {
    let options = RestOptions {
        item_bytes_limit: 64 << 10,
        body_bytes_limit: 64 << 10,
        retries_limit: 0,
        ..config.rest_options()
    };
    RestClient::new(config.transport().await.unwrap(), options)
}

/// One answer of a scripted service.
#[derive(Clone, Copy)]
pub(crate) enum Say {
    Answer(u16, Option<u64>, &'static str),
    Broken { may_have_arrived: bool },
}

/// A client whose server gives these answers in turn, and what it was asked.
pub(crate) fn scripted(answers: Vec<Say>) -> (RestClient, Arc<Mutex<Vec<String>>>) {
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let transport = Transport::new(service_fn(move |request: http::Request<Payload>| {
        log.lock()
            .unwrap()
            .push(format!("{} {}", request.method(), request.uri()));
        let say = answers
            .lock()
            .unwrap()
            .pop_front()
            .expect("no more answers in the script");
        async move { answer(say) }
    }));
    (RestClient::new(transport, RestOptions::default()), asked)
}

fn answer(say: Say) -> Result<http::Response<Content>, BoxError> {
    match say {
        Say::Answer(code, retry_after, body) => {
            let mut response = http::Response::builder()
                .status(code)
                .header("content-type", "application/json");
            if let Some(seconds) = retry_after {
                response = response.header("retry-after", seconds.to_string());
            }
            Ok(response
                .body(Content::Body(Bytes::from(body).into()))
                .unwrap())
        }
        Say::Broken { may_have_arrived } => {
            let source = std::io::Error::from(std::io::ErrorKind::ConnectionReset).into();
            Err(TransportError {
                may_have_arrived,
                source,
            }
            .into())
        }
    }
}

/// A client of a plain HTTP service in this process.
pub(crate) fn plain<F, R, B>(options: RestOptions, answer: F) -> RestClient
where
    F: Fn(http::Request<Full<Bytes>>) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = http::Response<B>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let service = service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    RestClient::new(Transport::http(service), options)
}
