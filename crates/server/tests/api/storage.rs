//! The disk as clients see it: quotas, encryption, files that are missing.

use std::path::Path;

use windlass_core::{Env, doc};
use windlass_server::{Server, ServerError, ServerOptions, User};
use windlass_store::{EncryptionKeys, OpenError};

use crate::support::{Api, CONFIG_MAPS};

const KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
const PASSWORD: &str = "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5LXN0YXBsZQ==";

fn admin() -> User {
    User::new("admin", &["system:masters"])
}

async fn open(options: ServerOptions) -> Api {
    Api::of(Server::open(options).await.unwrap(), admin())
}

fn config_map(name: &str, finalizers: &[&str]) -> windlass_core::Doc {
    let finalizers: Vec<windlass_core::Doc> =
        finalizers.iter().map(|text| (*text).into()).collect();
    doc!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "finalizers": finalizers },
        "data": { "text": (name.repeat(20_000)) }
    })
}

#[tokio::test]
async fn beyond_the_quota_objects_are_refused_in_the_words_of_etcd_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = ServerOptions::directory(Env::seeded(1), dir.path());
    options.quota_bytes = Some(3_000_000);
    let api = open(options.clone()).await;
    let kept = config_map("kept-00000", &["example.com/hold"]);
    api.post(CONFIG_MAPS, &kept).await.expect(201);
    let mut made = Vec::new();
    let refused = loop {
        let name = format!("large-{:05}", made.len());
        let answer = api.post(CONFIG_MAPS, &config_map(&name, &[])).await;
        match answer.code.as_u16() {
            201 => made.push(name),
            _ => break answer,
        }
        assert!(made.len() < 100, "the quota does not hold");
    };
    let text = "etcdserver: mvcc: database space exceeded";
    assert_eq!(refused.expect(500).str_at("/message"), text);
    let first = format!("{CONFIG_MAPS}/{}", made[0]);
    let update = api.merge(&first, &doc!({ "data": { "more": "1" } })).await;
    assert_eq!(update.expect(500).str_at("/message"), text);
    api.get("/readyz").await.expect(200);

    // A server that starts like this can be read and deleted from.
    api.server().close();
    drop(api);
    let api = open(options).await;
    let path = format!("{CONFIG_MAPS}/kept-00000");
    api.delete(&path).await.expect(200);
    let released = doc!({ "metadata": { "finalizers": null } });
    api.merge(&path, &released).await.expect(200);
    api.get(&path).await.expect(404);
    for name in &made {
        api.delete(&format!("{CONFIG_MAPS}/{name}"))
            .await
            .expect(200);
    }
}

#[tokio::test]
async fn secrets_are_encrypted_on_the_disk_and_a_wrong_key_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = ServerOptions::directory(Env::seeded(1), dir.path());
    options.encryption = Some(EncryptionKeys::parse(KEY).unwrap());
    let api = open(options.clone()).await;
    let secrets = "/api/v1/namespaces/default/secrets";
    for name in ["a", "b"] {
        let secret = doc!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name },
            "data": { "password": PASSWORD }
        });
        api.post(secrets, &secret).await.expect(201);
    }
    api.delete(&format!("{secrets}/b")).await.expect(200);
    api.server().close();
    drop(api);
    assert!(!holds(dir.path(), PASSWORD));
    let api = open(options.clone()).await;
    let found = api.get(&format!("{secrets}/a")).await.expect(200);
    assert_eq!(found.str_at("/data/password"), PASSWORD);
    api.server().close();
    drop(api);
    options.encryption = None;
    let Err(ServerError::Store(refused)) = Server::open(options).await else {
        panic!("it opens without a key");
    };
    assert!(
        matches!(refused, OpenError::NoEncryptionKey { .. }),
        "{refused}"
    );
}

/// Returns true if a text can be read in any file of a directory.
fn holds(dir: &Path, text: &str) -> bool {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut files = entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    files.any(|bytes| {
        bytes
            .windows(text.len())
            .any(|found| found == text.as_bytes())
    })
}

#[tokio::test]
async fn a_cluster_whose_table_file_is_missing_does_not_start_as_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let options = ServerOptions::directory(Env::seeded(1), dir.path());
    let api = open(options.clone()).await;
    api.post(CONFIG_MAPS, &config_map("a", &[]))
        .await
        .expect(201);
    api.server().close();
    drop(api);
    for name in ["store.redb", "store.state", "store.log.0", "store.log.1"] {
        std::fs::remove_file(dir.path().join(name)).unwrap();
        let Err(ServerError::Store(refused)) = Server::open(options.clone()).await else {
            panic!("it starts without {name}");
        };
        let text = refused.to_string();
        assert!(text.contains("store.redb is missing"), "{text}");
    }
}

/// Collects what is logged on this thread.
#[derive(Clone, Default)]
struct Logged(std::sync::Arc<std::sync::Mutex<String>>);

impl tracing::field::Visit for Logged {
    fn record_debug(&mut self, _: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0.lock().unwrap().push_str(&format!("{value:?}\n"));
    }
}

impl tracing::Subscriber for Logged {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn a_key_is_called_missing_only_where_there_was_a_cluster() {
    let dir = tempfile::tempdir().unwrap();
    let logged = Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    let options = ServerOptions::directory(Env::seeded(1), dir.path());
    open(options.clone()).await.server.close();
    assert_eq!(*logged.0.lock().unwrap(), "");
    std::fs::remove_file(dir.path().join("sa.key")).unwrap();
    open(options).await.server.close();
    let text = logged.0.lock().unwrap().clone();
    assert!(
        text.contains("sa.key was missing and is made anew"),
        "{text}"
    );
}
