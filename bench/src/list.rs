//! Reading a list of all pods over HTTP, object by object.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use anyhow::{Context, bail};
use windlass_bench::{contest::Numbers, corpus::Corpus, meter};
use windlass_client::{Config, ListOptions, RestClient};
use windlass_core::{Doc, Gvr};

/// Serves the pods as one `PodList` until the process is killed. Prints its port first.
pub(crate) fn serve(corpus: &Corpus) -> anyhow::Result<()> {
    let mut body = Vec::new();
    corpus.write_list(&mut body);
    let listener = TcpListener::bind("127.0.0.1:0").context("no port to be had")?;
    println!("{{\"port\":{}}}", listener.local_addr()?.port());
    for stream in listener.incoming() {
        // A client that hangs up early has its reasons.
        let _ = answer(stream?, &body);
    }
    Ok(())
}

fn answer(mut stream: TcpStream, body: &[u8]) -> std::io::Result<()> {
    use std::io::BufRead;
    let mut request = std::io::BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    while request.read_line(&mut line)? > 2 {
        line.clear();
    }
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    )?;
    stream.write_all(body)
}

/// Reads the list and keeps all pods.
pub(crate) fn read(url: &str) -> anyhow::Result<Numbers> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(read_within(url))
}

async fn read_within(url: &str) -> anyhow::Result<Numbers> {
    let client = RestClient::connect(&Config::from_url(url)?).await?;
    meter::forget_peak()?;
    let (cpu, wall) = (meter::cpu(), meter::wall());
    let pods = list(&client).await?;
    let (cpu, wall) = (meter::cpu() - cpu, meter::wall() - wall);
    let peak_bytes = meter::peak_rss_bytes()?;
    let rss_bytes = meter::rss_bytes()?;
    let above = peak_bytes.saturating_sub(rss_bytes) as f64;
    Ok([
        ("pods", pods.len() as f64),
        ("list_cpu_s", cpu.as_secs_f64()),
        ("list_wall_s", wall.as_secs_f64()),
        ("peak_mb", peak_bytes as f64 / 1e6),
        ("peak_mb_above_result", above / 1e6),
    ]
    .map(|(name, number)| (name.to_owned(), number))
    .into())
}

async fn list(client: &RestClient) -> anyhow::Result<Vec<Doc>> {
    const PODS: Gvr = Gvr::constant("", "v1", "pods");
    let mut pods = Vec::new();
    let mut list = client.list(&PODS, None, &ListOptions::default()).await?;
    while let Some(pod) = list.next().await {
        pods.push(pod?);
    }
    if list.head().resource_version().is_empty() {
        bail!("a list without a resource version");
    }
    Ok(pods)
}
