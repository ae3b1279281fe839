//! The stand-in for `etcd`: it is healthy, keeps a data directory, and says where that is.
//!
//! The objects are in that directory too, but the stand-in for kube-apiserver writes them. So they
//! outlive a restart of either, as they do with the originals.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use windlass_core::{Env, doc};

use super::etcd_http::{self, DataPlace};
use super::flags::{CommandLine, Dialect, Flag, GivenFlags, help, parse_bool};

const FLAGS: &str = include_str!("etcd_flags.txt");

/// The exit code of Go's package of flags for a command line that it cannot read.
const USAGE_CODE: u8 = 2;

/// The version of etcd that Kubernetes 1.36 is tested with.
const VERSION: &str = "3.6.8";

const USAGE: &str = "Usage:\n\n  etcd [flags]\n    Start an etcd server.\n";

/// Runs until a signal comes.
pub(super) fn run(words: &[String]) -> ExitCode {
    let table = Flag::table(FLAGS);
    match CommandLine::read("etcd", &table, Dialect::Go, words) {
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            ExitCode::from(USAGE_CODE)
        }
        Ok(CommandLine::Help) => {
            println!("{USAGE}\n{}", help(&table));
            ExitCode::SUCCESS
        }
        Ok(CommandLine::Version) => {
            println!("etcd Version: {VERSION}\nGit SHA: windlass stand-in");
            ExitCode::SUCCESS
        }
        Ok(CommandLine::Run(given)) => match serve(&given) {
            Ok(code) => code,
            Err(error) => {
                log("fatal", &format!("{error:#}"), "");
                ExitCode::FAILURE
            }
        },
    }
}

/// One line of the log, as etcd writes them.
fn log(level: &str, message: &str, data: &str) {
    let now = Env::real().now_micro().to_string();
    let line = doc!({
        "level": level, "ts": now, "caller": "etcdmain/etcd.go", "msg": message, "data-dir": data
    });
    eprintln!("{}", String::from_utf8_lossy(&line.to_json()));
}

fn serve(given: &GivenFlags) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let directory = make_directory(given)?;
        let data = directory.to_string_lossy().into_owned();
        let is_unsynced = given.last("unsafe-no-fsync").and_then(parse_bool);
        let place = DataPlace {
            directory,
            is_unsynced: is_unsynced.unwrap_or(false),
        };
        let mut addresses = Vec::new();
        for name in ["listen-client-urls", "listen-client-http-urls"] {
            for url in given.list(name) {
                addresses.push(address(&url)?);
            }
        }
        if addresses.is_empty() {
            addresses.push(address("http://127.0.0.1:2379")?);
        }
        for address in addresses {
            let listener = TcpListener::bind(address).await;
            let listener = listener.with_context(|| format!("listen tcp {address}: bind"))?;
            log("info", "serving client traffic insecurely", &data);
            tokio::spawn(etcd_http::serve(listener, place.clone()));
        }
        let (name, number) = tokio::select! {
            _ = terminate.recv() => ("terminated", 15_u8),
            _ = interrupt.recv() => ("interrupt", 2),
        };
        log(
            "info",
            &format!("received signal; shutting down: {name}"),
            &data,
        );
        // The original sends the signal to itself in the end, which shells see as this code.
        Ok(ExitCode::from(128 + number))
    })
}

/// Makes the data directory and the `member` directory that etcd keeps in it.
fn make_directory(given: &GivenFlags) -> anyhow::Result<PathBuf> {
    let name = given.last("name").unwrap_or("default");
    let data = match given.last("data-dir") {
        Some(data) => PathBuf::from(data),
        None => Path::new(&format!("{name}.etcd")).to_owned(),
    };
    let data = std::path::absolute(data)?;
    let member = data.join("member");
    windlass_server::make_directory(&member)
        .with_context(|| format!("cannot use data directory {}", data.display()))?;
    Ok(data)
}

/// The address of a client URL.
pub(super) fn address(url: &str) -> anyhow::Result<SocketAddr> {
    let rest = url.strip_prefix("http://").with_context(|| {
        format!(
            "{url:?} is not a URL that the stand-in for etcd serves; it must begin with http://"
        )
    })?;
    let host = rest.split('/').next().unwrap_or(rest);
    let mut found = host
        .to_socket_addrs()
        .with_context(|| format!("cannot find the address of {url}"))?;
    found
        .next()
        .with_context(|| format!("{url} has no address"))
}
