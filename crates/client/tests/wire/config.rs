//! Sources of configurations, and the texts of errors about them.

use std::path::{Path, PathBuf};

use windlass_client::{Config, ConfigError, ConfigSource, Lookup, RestClient};

/// A directory that goes away with the test.
struct Files(PathBuf);

impl Files {
    fn new(test: &str) -> Self {
        let directory =
            std::env::temp_dir().join(format!("windlass-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn kubeconfig(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: {name}\n\
         contexts: [{{name: {name}, context: {{cluster: {name}, user: {name}, namespace: ns-{name}}}}}]\n\
         clusters: [{{name: {name}, cluster: {{server: 'http://{name}.example:8080'}}}}]\n\
         users: [{{name: {name}, user: {{token: secret}}}}]\n"
    )
}

fn environment(paths: &[&Path]) -> Lookup {
    Lookup {
        environment: Some(std::env::join_paths(paths).unwrap()),
        ..Lookup::default()
    }
}

#[tokio::test]
async fn a_flag_wins_over_the_environment_and_that_over_home() {
    let files = Files::new("order");
    let (flag, env) = (
        files.write("flag", &kubeconfig("f")),
        files.write("env", &kubeconfig("e")),
    );
    files.write(".kube/config", &kubeconfig("h"));
    let home = Lookup {
        home: Some(files.0.clone()),
        ..Lookup::default()
    };
    let both = Lookup {
        environment: environment(&[&env]).environment,
        ..home.clone()
    };
    let all = both.clone().flag(Some(flag));
    for (lookup, server) in [(home, "h"), (both, "e"), (all, "f")] {
        let config = Config::find(&lookup).await.unwrap();
        assert_eq!(config.server(), format!("http://{server}.example:8080/"));
        assert_eq!(config.default_namespace(), format!("ns-{server}"));
    }
}

#[tokio::test]
async fn listed_files_are_merged_and_the_first_wins() {
    let files = Files::new("merge");
    let (one, two) = (
        files.write("one", &kubeconfig("a")),
        files.write("two", &kubeconfig("b")),
    );
    let missing = files.0.join("missing");
    let lookup = environment(&[&missing, &one, &two]);
    let config = Config::find(&lookup).await.unwrap();
    assert_eq!(config.source().context(), "a");
    assert!(matches!(config.source(), ConfigSource::Files { paths, .. } if *paths == [one, two]));
    let other = Config::find(&lookup.context("b")).await.unwrap();
    assert_eq!(other.server(), "http://b.example:8080/");
}

#[tokio::test]
async fn nothing_anywhere_lists_the_places() {
    let lookup = Lookup {
        home: Some("/nowhere".into()),
        ..environment(&[Path::new("/no/file")])
    };
    let error = Config::find(&lookup).await.unwrap_err();
    let text = "no configuration found; looked at: KUBECONFIG=/no/file, \
                the service account of a pod, /nowhere/.kube/config";
    assert_eq!(error.to_string(), text);
}

/// The error for a kubeconfig made from one that is fine, with one piece replaced.
async fn broken(test: &str, from: &str, to: &str) -> ConfigError {
    let files = Files::new(test);
    let text = kubeconfig("a");
    assert!(text.contains(from), "{from}");
    let path = files.write("config", &text.replace(from, to));
    match Config::from_file(&path).await {
        Err(error) => error,
        Ok(config) => RestClient::connect(&config).await.unwrap_err(),
    }
}

#[tokio::test]
async fn errors_name_file_context_and_field() {
    let cases = [
        (
            "current-context: a",
            "current-context: z",
            "contexts has no such entry; there are a",
        ),
        ("current-context: a\n", "", "current-context is not set"),
        (
            "{cluster: a",
            "{cluster: z",
            "cluster \"z\" is not in clusters; there are a",
        ),
        (
            "user: a,",
            "user: z,",
            "user \"z\" is not in users; there are a",
        ),
        (
            "{server: 'http://a.example:8080'}",
            "{}",
            "cluster.server is missing",
        ),
        (
            "'http://a.example:8080'",
            "'not a url'",
            "cluster.server is not a URL",
        ),
        (
            "server: 'http",
            "certificate-authority-data: '%', server: 'https",
            "cluster.certificate-authority is not base64",
        ),
        (
            "server: 'http",
            "certificate-authority: /no/ca, server: 'https",
            "cluster.certificate-authority cannot be read from /no/ca",
        ),
        (
            "token: secret",
            "client-certificate-data: ''",
            "user.client-key is missing",
        ),
        (
            "token: secret",
            "tokenFile: /no/token",
            "user token file /no/token cannot be read",
        ),
        (
            "token: secret",
            "exec: {apiVersion: client.authentication.k8s.io/v1, command: /no/plugin}",
            "user exec plug-in cannot be run",
        ),
        (
            "server: 'http",
            "proxy-url: 'ftp://p', server: 'http",
            "proxy-url \"ftp://p/\" is neither",
        ),
    ];
    for (number, (from, to, expected)) in cases.into_iter().enumerate() {
        let text = broken(&format!("broken-{number}"), from, to)
            .await
            .to_string();
        assert!(text.contains(expected), "{expected}\n{text}");
        assert!(text.contains("config: context"), "{text}");
    }
}

#[tokio::test]
async fn text_that_is_not_a_kubeconfig_is_placed_but_not_repeated() {
    let error = broken("yaml", "kind: Config", "kind: [canary-7f3")
        .await
        .to_string();
    assert!(error.contains("is not a kubeconfig"), "{error}");
    assert!(!error.contains("canary"), "{error}");
}
