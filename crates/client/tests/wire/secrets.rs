//! Credentials and the data of Secrets are in no log and in no error.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use windlass_client::{
    Config, DynamicClient, ListOptions, Lookup, Patch, RestClient, WatchOptions, WriteOptions,
};
use windlass_core::{Gvr, doc};

use crate::log::everything;
use crate::script::{once, tcp};

const CANARY: &str = "canary-3e1f9a";
const SECRETS: Gvr = Gvr::constant("", "v1", "secrets");

/// All answers hold the canary: as data, in something that is no JSON, in something too large.
fn answers() -> Vec<String> {
    let object =
        format!(r#"{{"kind":"Secret","metadata":{{"name":"s"}},"data":{{"k":"{CANARY}"}}}}"#);
    [
        object.clone(),
        format!(r#"{{"data":{{"k":"{CANARY}"}} nonsense"#),
        format!(r#"{{"items":[{object},{{"metadata":{{"name":"b"}},"data":"{CANARY}","n":01}}]}}"#),
        format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n{CANARY}\n"),
    ]
    .into_iter()
    .map(|body| {
        let length = body.len();
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    })
    .collect()
}

#[tokio::test]
async fn no_log_at_any_level_holds_a_credential_or_secret_data() {
    let (log, _guard) = everything();
    let mut said = String::new();
    for answer in answers() {
        let config = tcp(move |stream| {
            let answer = answer.clone();
            async move { once(stream, &answer).await }
        });
        let config = config.await.bearer_token(CANARY);
        said += &format!("{config:?}");
        let rest = RestClient::connect(&config).await.unwrap();
        let secrets = DynamicClient::new(rest).resource(SECRETS).namespaced("x");
        let object = doc!({ "metadata": { "name": "s" }, "data": { "k": CANARY } });
        let options = WriteOptions::manager("test");
        said += &failed(secrets.get("s").await);
        said += &failed(secrets.create(&object, &options).await);
        said += &failed(secrets.patch("s", &Patch::Apply(object), &options).await);
        said += &failed(secrets.list(&ListOptions::default()).await);
        if let Ok(mut watch) = secrets.watch(&WatchOptions::default()).await {
            while let Some(event) = watch.next().await {
                said += &failed(event);
            }
        }
    }
    let log = log.text();
    assert!(
        log.contains("request{verb=GET path=/api/v1/namespaces/x/secrets/s"),
        "no log"
    );
    assert!(!log.contains(CANARY), "in the log");
    assert!(!said.contains(CANARY), "{said}");
}

fn failed<T, E: std::error::Error>(outcome: Result<T, E>) -> String {
    outcome
        .err()
        .map(|error| format!("{error} {error:?}\n"))
        .unwrap_or_default()
}

#[tokio::test]
async fn what_a_plug_in_prints_is_not_repeated() {
    let directory = std::env::temp_dir().join(format!("windlass-{}-plug-in", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let plug_in = directory.join("plug-in");
    let mut file = std::fs::OpenOptions::new();
    let mut file = file
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o755)
        .open(&plug_in)
        .unwrap();
    write!(file, "#!/bin/sh\necho {CANARY}\nexit 3\n").unwrap();
    drop(file);
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
         clusters: [{{name: a, cluster: {{server: 'http://a.example'}}}}]\n\
         users: [{{name: a, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, \
         command: {}, env: [{{name: X, value: {CANARY}}}]}}}}}}]\n",
        plug_in.display()
    );
    let path = directory.join("config");
    std::fs::write(&path, text).unwrap();
    let (log, _guard) = everything();
    let config = Config::find(&Lookup::default().flag(Some(path)))
        .await
        .unwrap();
    let error = RestClient::connect(&config).await.unwrap_err();
    std::fs::remove_dir_all(&directory).unwrap();
    let said = format!("{error} {error:?} {config:?}");
    assert!(said.contains("failed with exit status: 3"), "{said}");
    assert!(
        !said.contains(CANARY) && !log.text().contains(CANARY),
        "{said}"
    );
}
