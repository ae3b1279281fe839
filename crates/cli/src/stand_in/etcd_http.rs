//! The little HTTP that the stand-in for etcd speaks, and the question that the stand-in for
//! kube-apiserver asks it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The path where the stand-in says where its data is. A real etcd does not know it.
const DATA_PATH: &str = "/windlass/data";

/// Bytes of a request or of an answer that are read.
const BYTES_LIMIT: u64 = 16 << 10;

/// Connections that are served at a time; others wait.
const CONNECTIONS_LIMIT: usize = 64;

/// The time in which a client sends its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The place of the data behind an etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DataPlace {
    /// The directory.
    pub(super) directory: PathBuf,
    /// True if writes need not reach the disk.
    pub(super) is_unsynced: bool,
}

/// Answers health checks until the task is dropped.
pub(super) async fn serve(listener: TcpListener, place: DataPlace) {
    let seats = std::sync::Arc::new(Semaphore::new(CONNECTIONS_LIMIT));
    loop {
        let Ok(seat) = std::sync::Arc::clone(&seats).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors: trying at once would only spin.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let place = place.clone();
        tokio::spawn(async move {
            // A client that went away needs no answer.
            let _ = timeout(REQUEST_TIMEOUT, answer(stream, &place)).await;
            drop(seat);
        });
    }
}

async fn answer(mut stream: TcpStream, place: &DataPlace) -> io::Result<()> {
    let head = read_head(&mut stream).await?;
    let mut words = head.split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let path = target.split('?').next().unwrap_or("");
    let data = place.directory.to_string_lossy();
    let (code, body) = match (method, path) {
        ("GET" | "HEAD", "/health") => ("200 OK", "{\"health\":\"true\",\"reason\":\"\"}".into()),
        ("GET" | "HEAD", "/livez" | "/readyz") => ("200 OK", "ok\n".into()),
        ("GET" | "HEAD", "/version") => (
            "200 OK",
            "{\"etcdserver\":\"3.6.8\",\"etcdcluster\":\"3.6.0\",\"storage\":\"3.6.0\"}".into(),
        ),
        ("GET", DATA_PATH) => ("200 OK", format!("{}\n{data}", place.is_unsynced)),
        _ => ("404 Not Found", "404 page not found\n".into()),
    };
    let shown = if method == "HEAD" { "" } else { &body };
    let text = format!(
        "HTTP/1.1 {code}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{shown}",
        body.len()
    );
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}

/// The head of a request.
async fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    let mut limited = stream.take(BYTES_LIMIT);
    loop {
        let read = limited.read_buf(&mut head).await?;
        if read == 0 || head.windows(4).any(|end| end == b"\r\n\r\n") {
            return Ok(String::from_utf8_lossy(&head).into_owned());
        }
    }
}

/// Asks an etcd for the place of its data; nothing if it is a real one.
pub(super) async fn ask(address: SocketAddr) -> io::Result<Option<DataPlace>> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {DATA_PATH} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(BYTES_LIMIT).read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        return Ok(None);
    };
    let is_ok = head.split(' ').nth(1) == Some("200");
    let place = body.split_once('\n').filter(|_| is_ok);
    Ok(place.map(|(is_unsynced, directory)| DataPlace {
        directory: directory.into(),
        is_unsynced: is_unsynced == "true",
    }))
}
