//! The smallest client that can put a server under load: one request at a time per connection.

use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use windlass_core::Doc;

/// Bytes that are read at a time.
const READ_BYTES: usize = 64 << 10;

/// A server, and who talks to it.
#[derive(Clone)]
pub(crate) struct Target {
    /// Host and port.
    address: String,
    tls: Arc<ClientConfig>,
    /// `Authorization`, if a token is used, with its line end.
    authorization: String,
}

/// One connection.
pub(crate) struct Wire {
    stream: TlsStream<TcpStream>,
    target: Target,
    /// What was received and not used yet.
    input: Vec<u8>,
    output: Vec<u8>,
}

/// The head of an answer.
struct Head {
    status: u16,
    /// `None` for an answer in chunks.
    length: Option<usize>,
}

impl Target {
    /// The server that `$KUBECONFIG` names.
    pub(crate) fn from_environment() -> anyhow::Result<Self> {
        let path = std::env::var("KUBECONFIG").context("$KUBECONFIG")?;
        Self::from_file(&path)
    }

    /// The server that the first entries of a kubeconfig name.
    pub(crate) fn from_file(path: &str) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.to_owned())?;
        let documents = Doc::parse_yaml(&text)?;
        let config = documents.first().context("an empty kubeconfig")?;
        let (cluster, user) = (config.at("/clusters/0/cluster"), config.at("/users/0/user"));
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&pem(
            cluster,
            "certificate-authority",
        )?)?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let token = user.str_at("/token");
        let has_certificate = ["", "-data"]
            .iter()
            .any(|end| !user.str_at(&format!("/client-certificate{end}")).is_empty());
        let tls = if has_certificate && token.is_empty() {
            let chain = vec![CertificateDer::from_pem_slice(&pem(
                user,
                "client-certificate",
            )?)?];
            let key = PrivateKeyDer::from_pem_slice(&pem(user, "client-key")?)?;
            builder.with_client_auth_cert(chain, key)?
        } else {
            builder.with_no_client_auth()
        };
        let url = cluster.str_at("/server");
        let address = url.strip_prefix("https://").context("a server with TLS")?;
        Ok(Self {
            address: address.trim_end_matches('/').to_owned(),
            tls: Arc::new(tls),
            authorization: if token.is_empty() {
                String::new()
            } else {
                format!("Authorization: Bearer {token}\r\n")
            },
        })
    }

    /// The same server and user, spoken to over HTTP/2.
    pub(crate) fn over_http2(&self) -> Self {
        let mut tls = ClientConfig::clone(&self.tls);
        tls.alpn_protocols = vec![b"h2".to_vec()];
        Self {
            tls: Arc::new(tls),
            ..self.clone()
        }
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The value of `Authorization`; empty if no token is used.
    pub(crate) fn authorization(&self) -> &str {
        let line = self.authorization.strip_prefix("Authorization: ");
        line.map_or("", str::trim_end)
    }

    /// Connects.
    pub(crate) async fn connect(&self) -> anyhow::Result<Wire> {
        let socket = TcpStream::connect(&self.address).await?;
        Ok(Wire {
            stream: self.secure(socket).await?,
            target: self.clone(),
            input: Vec::new(),
            output: Vec::new(),
        })
    }

    /// Makes the TLS handshake on a socket.
    pub(crate) async fn secure(&self, socket: TcpStream) -> anyhow::Result<TlsStream<TcpStream>> {
        socket.set_nodelay(true)?;
        let host = self.address.rsplit_once(':').context("a port")?.0;
        let name = ServerName::try_from(host.to_owned())?;
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        Ok(connector.connect(name, socket).await?)
    }

    /// A GET over HTTP/1.1 of what the client accepts in this media type.
    pub(crate) fn get_as(&self, path: &str, media_type: &str) -> Vec<u8> {
        let (address, authorization) = (&self.address, &self.authorization);
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\n{authorization}Accept: {media_type}\r\n\r\n"
        );
        head.into_bytes()
    }

    /// Appends a request over HTTP/1.1 with a body of this type.
    pub(crate) fn write_request(
        &self,
        out: &mut Vec<u8>,
        [method, path, content]: [&str; 3],
        body: &[u8],
    ) -> std::io::Result<()> {
        std::io::Write::write_fmt(
            out,
            format_args!(
                "{method} {path} HTTP/1.1\r\nHost: {}\r\n{}Accept: application/json\r\n\
                 Content-Type: {content}\r\nContent-Length: {}\r\n\r\n",
                self.address,
                self.authorization,
                body.len()
            ),
        )?;
        out.extend_from_slice(body);
        Ok(())
    }
}

/// What a kubeconfig says under a name: in the file itself, or in one that it names.
fn pem(section: &Doc, name: &str) -> anyhow::Result<Vec<u8>> {
    let data = section.str_at(&format!("/{name}-data"));
    if !data.is_empty() {
        return Ok(BASE64.decode(data)?);
    }
    let path = section.str_at(&format!("/{name}"));
    std::fs::read(path).with_context(|| format!("{name} in {path:?}"))
}

impl Wire {
    /// Sends a request and returns the status and the size of the answer, which is dropped.
    pub(crate) async fn request(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> anyhow::Result<(u16, usize)> {
        self.send(method, path, body).await?;
        self.pass_over_answer().await
    }

    /// Sends a request that [`Target::write_request`] made, as [`Wire::request`] does.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<(u16, usize)> {
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        self.pass_over_answer().await
    }

    async fn pass_over_answer(&mut self) -> anyhow::Result<(u16, usize)> {
        let head = self.head().await?;
        let size = match head.length {
            Some(length) => self.skip(length).await?,
            None => self.skip_chunks().await?,
        };
        Ok((head.status, size))
    }

    /// Sends a request and returns the answer, which must be one of success.
    pub(crate) async fn fetch(&mut self, path: &str) -> anyhow::Result<Vec<u8>> {
        self.call("GET", path, b"").await
    }

    /// Sends a request with a body and returns the answer, which must be one of success.
    pub(crate) async fn call(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> anyhow::Result<Vec<u8>> {
        self.send(method, path, body).await?;
        let (status, body) = self.read_answer().await?;
        ensure!(matches!(status, 200 | 201), "{path}: status {status}");
        Ok(body)
    }

    /// Reads what is at a path: the status and the answer, whichever it is.
    pub(crate) async fn answer(&mut self, path: &str) -> anyhow::Result<(u16, Vec<u8>)> {
        self.send("GET", path, b"").await?;
        self.read_answer().await
    }

    async fn read_answer(&mut self) -> anyhow::Result<(u16, Vec<u8>)> {
        let head = self.head().await?;
        let mut body = Vec::new();
        match head.length {
            Some(length) => {
                self.fill(length).await?;
                body.extend(self.input.drain(..length));
            }
            None => while self.chunk(&mut body).await? {},
        }
        Ok((head.status, body))
    }

    /// Sends a request and expects a stream for an answer.
    pub(crate) async fn open(&mut self, path: &str) -> anyhow::Result<()> {
        self.send("GET", path, b"").await?;
        let head = self.head().await?;
        ensure!(
            head.status == 200 && head.length.is_none(),
            "{path}: status {}",
            head.status
        );
        Ok(())
    }

    /// Returns the next whole lines of the stream; one at least.
    pub(crate) async fn lines(&mut self) -> anyhow::Result<Vec<u8>> {
        let mut text = Vec::new();
        loop {
            ensure!(self.chunk(&mut text).await?, "the stream ended");
            if text.last() == Some(&b'\n') {
                return Ok(text);
            }
        }
    }

    async fn send(&mut self, method: &str, path: &str, body: &[u8]) -> anyhow::Result<()> {
        let content = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        self.output.clear();
        self.target
            .write_request(&mut self.output, [method, path, content], body)?;
        self.stream.write_all(&self.output).await?;
        Ok(self.stream.flush().await?)
    }

    async fn head(&mut self) -> anyhow::Result<Head> {
        let end = loop {
            if let Some(end) = find(&self.input, b"\r\n\r\n") {
                break end;
            }
            self.read().await?;
        };
        let head = parse_head(&self.input[..end])?;
        self.input.drain(..end + 4);
        Ok(head)
    }

    /// Passes over so many bytes.
    async fn skip(&mut self, length: usize) -> anyhow::Result<usize> {
        let mut left = length;
        loop {
            let here = self.input.len().min(left);
            self.input.drain(..here);
            left -= here;
            if left == 0 {
                return Ok(length);
            }
            self.read().await?;
        }
    }

    /// Passes over an answer in chunks and returns its size.
    async fn skip_chunks(&mut self) -> anyhow::Result<usize> {
        let mut size = 0;
        loop {
            let length = self.chunk_length().await?;
            self.skip(length + 2).await?;
            if length == 0 {
                return Ok(size);
            }
            size += length;
        }
    }

    /// Takes the next chunk; `false` at the end.
    async fn chunk(&mut self, out: &mut Vec<u8>) -> anyhow::Result<bool> {
        let length = self.chunk_length().await?;
        self.fill(length + 2).await?;
        out.extend(self.input.drain(..length + 2).take(length));
        Ok(length > 0)
    }

    async fn chunk_length(&mut self) -> anyhow::Result<usize> {
        loop {
            if let Some(end) = find(&self.input, b"\r\n") {
                let text = std::str::from_utf8(&self.input[..end])?.to_owned();
                self.input.drain(..end + 2);
                return usize::from_str_radix(&text, 16).context("the length of a chunk");
            }
            self.read().await?;
        }
    }

    async fn fill(&mut self, length: usize) -> anyhow::Result<()> {
        while self.input.len() < length {
            self.read().await?;
        }
        Ok(())
    }

    async fn read(&mut self) -> anyhow::Result<()> {
        self.input.reserve(READ_BYTES);
        if self.stream.read_buf(&mut self.input).await? == 0 {
            bail!("the connection was closed");
        }
        Ok(())
    }
}

fn parse_head(bytes: &[u8]) -> anyhow::Result<Head> {
    let text = std::str::from_utf8(bytes)?;
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let mut length = Some(0);
    for line in lines {
        let (name, value) = line.split_once(':').context("a header")?;
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.trim().parse()?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            length = None;
        }
    }
    Ok(Head {
        status: status.context("a status")?.parse()?,
        length,
    })
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
