//! The errors that a new user meets: each is one line, says what is wrong and what to do, and ends
//! the command with 1.

use redb::{Database, TableDefinition};
use windlass_client::{Config, DynamicClient, RestClient, WriteOptions};
use windlass_core::{Doc, Gvr, doc};

use super::commands::with_input;
use super::common::{Binary, Outcome, command, run};

/// It failed with one line that has these parts.
fn says(outcome: &Outcome, parts: &[&str]) {
    let Outcome { code, stderr, .. } = outcome;
    assert_eq!(*code, 1, "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("windlass: "), "{stderr}");
    for part in parts {
        assert!(stderr.contains(part), "{part:?} is missing in {stderr}");
    }
}

#[test]
fn a_port_that_is_taken() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let data = tempfile::tempdir().unwrap();
    let data = data.path().to_str().unwrap();
    for word in ["up", "server"] {
        let outcome = run(&[word, "--memory", "--listen", &address, "--data", data]);
        says(
            &outcome,
            &[
                "the port is taken; choose another with --listen",
                &address,
                "in use",
            ],
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_that_is_in_use() {
    let server = Binary::start("server").await;
    let data = server.kubeconfig().parent().unwrap().to_str().unwrap();
    let outcome = run(&["up", "--data", data]);
    let hint = "stop it with `windlass down`, or choose another with --data";
    says(
        &outcome,
        &[data, "is in use by process", "serves https://", hint],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_from_a_newer_version() {
    let mut server = Binary::start("server").await;
    server.stop();
    let data = server.kubeconfig().parent().unwrap();
    let database = Database::open(data.join("store.redb")).unwrap();
    let numbers: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
    let transaction = database.begin_write().unwrap();
    let mut table = transaction.open_table(numbers).unwrap();
    table.insert("format", 1_000_000).unwrap();
    drop(table);
    transaction.commit().unwrap();
    drop(database);
    let outcome = run(&["up", "--data", data.to_str().unwrap()]);
    says(
        &outcome,
        &[
            "was written by a newer windlass; use that one, or choose another directory with --data",
            "data has format 1000000",
        ],
    );
}

#[test]
fn a_kubeconfig_that_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let in_nowhere = |words: &[&str]| -> Outcome {
        command(words)
            .current_dir(directory.path())
            .env("HOME", directory.path())
            .output()
            .unwrap()
            .into()
    };
    let hint = "start one with `windlass up`, or name a file with --kubeconfig";
    says(
        &in_nowhere(&["get", "pods"]),
        &["there is no cluster to talk to", hint],
    );
    let outcome = in_nowhere(&["get", "pods", "--kubeconfig", "nowhere"]);
    says(&outcome, &["nowhere"]);
    let outcome = in_nowhere(&["controllers", "--metrics-bind-address=0"]);
    says(&outcome, &["there is no cluster to talk to", hint]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_cannot_be_reached() {
    let mut server = Binary::start("server").await;
    server.stop();
    for words in [&["get", "pods"][..], &["events"], &["delete", "pod", "x"]] {
        let outcome = server.run(words);
        says(
            &outcome,
            &["https://127.0.0.1:", "cannot be reached; is it running?"],
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_may_not() {
    let server = Binary::start("server").await;
    let own = server.kubeconfig();
    let config = Config::from_file(own).await.unwrap();
    let client = DynamicClient::new(RestClient::connect(&config).await.unwrap());
    let accounts = client.resource(Gvr::constant("", "v1", "serviceaccounts"));
    let accounts = accounts.namespaced("default");
    let account = doc!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "guest" },
    });
    let options = WriteOptions::default();
    accounts.create(&account, &options).await.unwrap();
    let request =
        doc!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
    let token = accounts.create_part("guest", "token", &request, &options);
    let token = token.await.unwrap().at("/status/token").clone();
    let text = std::fs::read_to_string(own).unwrap();
    let text = Doc::parse_yaml(&text).unwrap().remove(0);
    let text = text
        .with("/users/0/user", doc!({ "token": token }))
        .unwrap();
    let guest = own.with_file_name("guest");
    std::fs::write(&guest, text.to_yaml().unwrap()).unwrap();
    let outcome = run(&["get", "pods", "--kubeconfig", guest.to_str().unwrap()]);
    says(
        &outcome,
        &[
            "Error from server (Forbidden): pods is forbidden: User \
             \"system:serviceaccount:default:guest\" cannot list resource \"pods\"",
            "use another user with --context or --kubeconfig, or grant the right",
        ],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_not_installed() {
    let server = Binary::start("server").await;
    let text = "{apiVersion: example.com/v1, kind: Foo, metadata: {name: x}}";
    let outcome = with_input(&server, &["apply", "-f", "-"], text);
    assert_eq!(
        outcome.stderr.lines().next(),
        Some(
            "standard input: no matches for kind \"Foo\" in version \"example.com/v1\"; if it is a \
             custom resource, apply its CustomResourceDefinition first"
        )
    );
    assert_eq!(outcome.code, 1);
    let outcome = server.run(&["get", "foos"]);
    says(
        &outcome,
        &["the server doesn't have a resource type \"foos\""],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn yaml_with_a_tab() {
    let server = Binary::start("server").await;
    let text = "kind: A\nmetadata:\n\tname: x\n";
    let outcome = with_input(&server, &["apply", "-f", "-"], text);
    let place = "standard input: line 3 is indented by a tab; use spaces: invalid YAML: ";
    says(&outcome, &[place]);
}

#[test]
fn options_of_access_that_cannot_be_used() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (tokens, authority) = (file("tokens", "t,ann"), file("ca.crt", "nothing"));
    let policy = file("policy", "apiVersion: audit.k8s.io/v1\nkind: Policy\n");
    let data = file("data", "");
    std::fs::remove_file(&data).unwrap();
    for (flag, value, part) in [
        (
            "--token-auth-file",
            &*tokens,
            "must have at least 3 columns",
        ),
        (
            "--client-ca-file",
            &authority,
            "holds no certificate in PEM",
        ),
        (
            "--audit-policy-file",
            &policy,
            "illegal policy with 0 rules",
        ),
        (
            "--disable-admission-plugins",
            "Magic",
            "plugin \"Magic\" is unknown",
        ),
        (
            "--enable-admission-plugins",
            "AlwaysDeny",
            "is not implemented",
        ),
    ] {
        let outcome = run(&["server", "--memory", "--data", &data, flag, value]);
        says(&outcome, &[part]);
    }
    let outcome = run(&["server", "--service-cluster-ip-range", "10.0.0.0"]);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(
        outcome.stderr.contains("is not an IPv4 network"),
        "{outcome:?}"
    );
}
