//! The stand-ins for kube-apiserver and etcd, started as envtest starts them.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use windlass_client::{Config, DynamicClient, RestClient, WriteOptions};
use windlass_core::{Env, Gvr, doc};
use windlass_server::Certificates;

use crate::common::{Outcome, run};

const CONFIG_MAPS: Gvr = Gvr::constant("", "v1", "configmaps");
const SERVICES: Gvr = Gvr::constant("", "v1", "services");

/// The time in which a stand-in has to be ready, and to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// A directory of assets and one for what the stand-ins write.
pub(crate) struct Bench {
    directory: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let bench = Self { directory };
        let assets = bench.path("assets");
        run(&["assets", assets.to_str().unwrap()]).succeed();
        std::fs::create_dir(bench.path("certs")).unwrap();
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(self.path("assets").join(program));
        command.args(words).env_remove("RUST_LOG");
        command.env_remove("WINDLASS_CONTROLLERS");
        command
    }

    fn run(&self, program: &str, words: &[&str]) -> Outcome {
        self.command(program, words).output().unwrap().into()
    }

    /// Writes the files that envtest writes, and a kubeconfig with its client certificate.
    pub(crate) fn write_files(&self, port: u16) {
        let certificates =
            Certificates::in_memory(&["127.0.0.1".to_owned()], &Env::seeded(7)).unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(self.path("certs").join(name), text).unwrap();
        };
        write("apiserver.crt", &certificates.serving.certificate);
        write("apiserver.key", &certificates.serving.key);
        write("client-cert-auth-ca.crt", &certificates.authority);
        // Any certificate is a key of service accounts.
        write("sa-signer.crt", &certificates.admin.certificate);
        write("sa-signer.key", &certificates.admin.key);
        write("admin.crt", &certificates.admin.certificate);
        write("admin.key", &certificates.admin.key);
        write("ca.crt", &certificates.authority);
        let directory = self.path("certs");
        let directory = directory.display();
        let config = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{port}', \
             certificate-authority: {directory}/ca.crt}}}}]\n\
             users: [{{name: u, user: {{client-certificate: {directory}/admin.crt, \
             client-key: {directory}/admin.key}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
        );
        write("kubeconfig", &config);
        let (head, _) = config.split_once("users:").unwrap();
        let stranger = "users: [{name: u, user: {}}]\n\
                        contexts: [{name: c, context: {cluster: c, user: u}}]\n";
        write("stranger", &format!("{head}{stranger}"));
    }

    pub(crate) fn start_etcd(&self, port: u16) -> Stand {
        let (url, data) = (format!("http://127.0.0.1:{port}"), self.path("etcd-data"));
        let data = format!("--data-dir={}", data.display());
        let (advertise, listen) = (
            format!("--advertise-client-urls={url}"),
            format!("--listen-client-urls={url}"),
        );
        let words = [&*advertise, &data, &listen, "--unsafe-no-fsync=true"];
        let stand = Stand::start(&mut self.command("etcd", &words));
        wait(|| get(port, "/health").contains("\"health\":\"true\""));
        stand
    }

    pub(crate) fn start_api_server(&self, etcd: u16, port: u16) -> Stand {
        self.start_api_server_with(etcd, port, &[])
    }

    /// Starts the API server with variables in its environment.
    pub(crate) fn start_api_server_with(
        &self,
        etcd: u16,
        port: u16,
        variables: &[(&str, &str)],
    ) -> Stand {
        let certs = self.path("certs").display().to_string();
        let words = [
            "--allow-privileged=true".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={certs}"),
            format!("--client-ca-file={certs}/client-cert-auth-ca.crt"),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            format!("--etcd-servers=http://127.0.0.1:{etcd}"),
            "--feature-gates=AllAlpha=false".to_owned(),
            format!("--secure-port={port}"),
            format!("--service-account-issuer=https://127.0.0.1:{port}/"),
            format!("--service-account-key-file={certs}/sa-signer.crt"),
            format!("--service-account-signing-key-file={certs}/sa-signer.key"),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        ];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = self.command("kube-apiserver", &words);
        command.envs(variables.iter().copied());
        let log = std::fs::File::create(self.path("log")).unwrap();
        let stand = Stand::start(command.stderr(log));
        wait(|| self.log().contains("Serving securely on"));
        stand
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    pub(crate) async fn client(&self) -> DynamicClient {
        DynamicClient::new(self.rest_client().await)
    }

    pub(crate) async fn rest_client(&self) -> RestClient {
        self.connect("kubeconfig").await
    }

    /// A client without credentials.
    pub(crate) async fn anonymous_client(&self) -> RestClient {
        self.connect("stranger").await
    }

    async fn connect(&self, kubeconfig: &str) -> RestClient {
        let config = Config::from_file(&self.path("certs").join(kubeconfig)).await;
        RestClient::connect(&config.unwrap()).await.unwrap()
    }
}

/// A stand-in that runs, in a process group of its own, as envtest has it.
pub(crate) struct Stand(Child);

impl Stand {
    fn start(command: &mut Command) -> Self {
        std::os::unix::process::CommandExt::process_group(command, 0);
        Self(command.stdout(Stdio::null()).spawn().unwrap())
    }

    /// Sends SIGTERM to the group, and gives the exit code and the time that it took to end.
    fn terminate(mut self) -> (i32, Duration) {
        let env = Env::real();
        let started = env.elapsed();
        let group = format!("-{}", self.0.id());
        let sent = Command::new("kill").args(["-TERM", "--", &group]).status();
        assert!(sent.unwrap().success());
        let status = self.0.wait().unwrap();
        let took = env.elapsed().saturating_sub(started);
        (status.code().unwrap_or(-1), took)
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait(mut is_ready: impl FnMut() -> bool) {
    let env = Env::real();
    let started = env.elapsed();
    while !is_ready() {
        let waited = env.elapsed().saturating_sub(started);
        assert!(waited < PATIENCE, "it did not get ready");
        std::thread::yield_now();
    }
}

/// A free port, which the stand-in is then told.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The answer to a plain request; empty if nobody listens.
fn get(port: u16, path: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
        return String::new();
    };
    let mut answer = String::new();
    let _ = write!(stream, "GET {path} HTTP/1.0\r\n\r\n");
    let _ = stream.read_to_string(&mut answer);
    answer
}

/// The lines of a help text that name a flag, as envtest looks for it.
fn names_flag(help: &str, flag: &str) -> bool {
    let start = format!("--{flag}");
    let mut lines = help.lines().map(str::trim_start);
    lines.any(|line| {
        let rest = line.strip_prefix(&start);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

#[test]
fn help_and_version_are_those_that_envtest_looks_at() {
    let bench = Bench::new();
    let help = bench.run("kube-apiserver", &["--help"]).succeed();
    assert!(names_flag(&help, "etcd-servers") && !names_flag(&help, "insecure-port"));
    let help = bench.run("etcd", &["--help"]).succeed();
    assert!(names_flag(&help, "unsafe-no-fsync"));
    bench
        .run("kube-apiserver", &["--version"])
        .expect("Kubernetes v1.36.4\n");
    let version = bench.run("etcd", &["--version"]).succeed();
    assert!(version.starts_with("etcd Version: 3.6."), "{version}");
}

#[test]
fn flags_are_refused_in_the_words_of_the_originals() {
    let bench = Bench::new();
    bench
        .run("kube-apiserver", &["--nonsense"])
        .fails("Error: unknown flag: --nonsense\n");
    bench
        .run("kube-apiserver", &["--insecure-port=0"])
        .fails("Error: unknown flag: --insecure-port\n");
    let refused = bench.run("kube-apiserver", &["--secure-port=0"]);
    assert_eq!(refused.code, 1);
    let text = "run.go:72] \"command failed\" err=\"[--etcd-servers must be specified, \
                --secure-port 0 must be between 1 and 65535, inclusive.";
    assert!(refused.stderr.contains(text), "{}", refused.stderr);
    let refused = bench.run("etcd", &["--nonsense"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused
            .stderr
            .starts_with("flag provided but not defined: -nonsense\n")
    );
}

// The client must be able to hear that the server ends while the test waits for that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pair_serves_restarts_with_its_objects_and_ends_at_once() {
    let bench = Bench::new();
    let (etcd_port, port) = (free_port(), free_port());
    bench.write_files(port);
    let etcd = bench.start_etcd(etcd_port);
    assert!(bench.path("etcd-data/member").is_dir());
    let server = bench.start_api_server(etcd_port, port);
    assert!(
        bench.log().contains("the flag --feature-gates is accepted"),
        "{}",
        bench.log()
    );

    let client = bench.client().await;
    let services = client.resource(SERVICES).namespaced("default");
    let own = services.get("kubernetes").await.unwrap();
    assert_eq!(own.str_at("/spec/clusterIP"), "10.0.0.1");
    let maps = client.resource(CONFIG_MAPS).namespaced("default");
    let map = doc!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "kept" } });
    maps.create(&map, &WriteOptions::default()).await.unwrap();
    // A watch is open when it ends.
    let watch = maps
        .watch(&windlass_client::WatchOptions::default())
        .await
        .unwrap();
    let (code, took) = server.terminate();
    assert_eq!(code, 0);
    assert!(took < Duration::from_secs(2), "it took {took:?} to end");
    drop(watch);

    // An occupied port ends the program at once, so that its caller can try again.
    let squatter = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let certs = bench.path("certs").display().to_string();
    let refused = bench.run(
        "kube-apiserver",
        &[
            "--etcd-servers",
            &format!("http://127.0.0.1:{etcd_port}"),
            "--secure-port",
            &port.to_string(),
            "--cert-dir",
            &certs,
            "--service-account-issuer",
            "https://localhost",
            "--service-account-key-file",
            &format!("{certs}/sa-signer.key"),
            "--service-account-signing-key-file",
            &format!("{certs}/sa-signer.key"),
            "--allow-privileged",
        ],
    );
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("bind: address already in use"),
        "{}",
        refused.stderr
    );
    drop(squatter);

    let server = bench.start_api_server(etcd_port, port);
    let again = bench
        .client()
        .await
        .resource(CONFIG_MAPS)
        .namespaced("default");
    assert_eq!(again.get("kept").await.unwrap().meta().name(), "kept");
    assert_eq!(server.terminate().0, 0);
    assert_eq!(etcd.terminate().0, 143);
    std::fs::remove_dir_all(bench.directory.path()).unwrap();
}

#[test]
fn assets_replace_their_own_links_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bin");
    let words = ["assets", path.to_str().unwrap()];
    run(&words).expect(&format!("{}\n", path.display()));
    run(&words).succeed();
    let etcd = path.join("etcd");
    std::fs::remove_file(&etcd).unwrap();
    std::fs::write(&etcd, "somebody else's").unwrap();
    run(&words).fails(&format!(
        "windlass: {} is there and is not a stand-in; remove it or choose another directory\n",
        etcd.display()
    ));
    let layout = run(&["assets", "--setup-envtest", path.to_str().unwrap()]).succeed();
    assert!(layout.contains("/k8s/1.36.4-"), "{layout}");
    assert!(Path::new(layout.trim()).join("kube-apiserver").exists());
}
