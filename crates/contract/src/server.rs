//! The two servers, each started by the first case that needs it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::OnceLock;

use tokio::runtime::Runtime;
use tokio::sync::OnceCell;
use windlass_core::Env;
use windlass_server::{Admission, Certificates, Identity, ServerOptions, serve};

use crate::history::{Compacted, History};
use crate::http::Client;

/// A server under test, and who may ask it.
#[derive(Debug)]
pub struct Server {
    /// Asks as the administrator, by certificate.
    pub(crate) admin: Client,
    /// Asks as nobody.
    pub(crate) nobody: Client,
    /// Where the past is kept.
    pub(crate) history: History,
    /// A past that the server has forgotten, once a case asked for one.
    pub(crate) compacted: OnceCell<Compacted>,
    /// How programs reach the server as the administrator.
    kubeconfig: String,
}

/// What a client needs to reach a server: its address, its authority and the administrator, the
/// latter two in PEM.
struct Access {
    host: String,
    authority: String,
    admin: Identity,
    history: History,
    kubeconfig: String,
}

/// The runtime of all cases: connections and the embedded server outlive the case that made them.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().expect("the runtime starts"))
}

/// The embedded server of this process.
pub(crate) fn embedded() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::new(runtime().block_on(start_embedded())))
}

/// The real server of this process, or `None` with a line on stderr where it is not installed.
pub(crate) fn real() -> Option<&'static Server> {
    static SERVER: OnceLock<Server> = OnceLock::new();
    let real = windlass_envtest::real_server()?;
    Some(SERVER.get_or_init(|| Server::new(access_to(real))))
}

async fn start_embedded() -> Access {
    let env = Env::real();
    let certificates = Certificates::in_memory(&[], &env).expect("certificates are made");
    let mut options = ServerOptions::memory(env);
    // The real server runs without the controller that makes service accounts.
    options.admission = Admission {
        service_accounts: false,
        node_taints: true,
        storage_protection: true,
        ..Admission::default()
    };
    let server = windlass_server::Server::open(options).await;
    let server = server.expect("the server opens");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listening = serve(server.clone(), address, &certificates, &[]).await;
    let listening = listening.expect("the server listens");
    let host = listening.address().to_string();
    let url = format!("https://{host}");
    let kubeconfig = windlass_server::kubeconfig(&url, &certificates, server.admin_token());
    tokio::spawn(listening.run(std::future::pending()));
    Access {
        host,
        authority: certificates.authority,
        admin: certificates.admin,
        history: History::Embedded(server),
        kubeconfig,
    }
}

fn access_to(real: &windlass_envtest::ControlPlane) -> Access {
    let read = |name| std::fs::read_to_string(real.directory().join(name)).expect("a PEM file");
    Access {
        host: real.url().replace("https://", ""),
        authority: read("ca.crt"),
        admin: Identity {
            certificate: read("admin.crt"),
            key: read("admin.key"),
        },
        history: History::Real(real.directory().join("etcd.sock")),
        kubeconfig: std::fs::read_to_string(real.kubeconfig()).expect("a kubeconfig"),
    }
}

impl Server {
    fn new(access: Access) -> Self {
        Self {
            admin: Client::new(&access.host, &access.authority, Some(&access.admin)),
            nobody: Client::new(&access.host, &access.authority, None),
            history: access.history,
            compacted: OnceCell::new(),
            kubeconfig: access.kubeconfig,
        }
    }
}

/// A kubeconfig for the administrator of the embedded server.
#[must_use]
pub fn embedded_kubeconfig() -> &'static str {
    &embedded().kubeconfig
}

/// A kubeconfig for the administrator of the real server, if it is installed.
#[must_use]
pub fn real_kubeconfig() -> Option<&'static str> {
    real().map(|server| server.kubeconfig.as_str())
}
