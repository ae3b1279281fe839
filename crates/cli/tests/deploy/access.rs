//! Metrics and debug pages of the controllers: the API server says who may read them.

use windlass_core::Doc;
use windlass_testing::Cluster;

use crate::process::Process;

fn words(more: &[&str]) -> Vec<String> {
    let words = [
        "controllers",
        "--controllers=replicaset-controller",
        "--leader-elect=false",
        "--metrics-bind-address=127.0.0.1:0",
        "--health-probe-bind-address=127.0.0.1:0",
        "--logging-format=json",
    ];
    let words = words.iter().chain(more);
    words.map(|word| (*word).to_owned()).collect()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_and_debug_pages_are_closed_to_strangers_and_health_is_open() {
    let cluster = Cluster::start().await;
    let kubeconfig = cluster.kubeconfig().await.unwrap();
    let text = std::fs::read_to_string(&kubeconfig).unwrap();
    let config = &Doc::parse_yaml(&text).unwrap()[0];
    let token = config.str_at("/users/0/user/token");
    let mut process = Process::start(&words(&[]), &kubeconfig);

    for path in [
        "/metrics",
        "/debug/windlass/queues",
        "/debug/windlass/why?key=a%2Fb",
    ] {
        let answer = process.get("metrics", path).await;
        assert_eq!(status(&answer), "403", "{path}: {answer}");
        let answer = process.get_as("no-such-token", "metrics", path).await;
        assert_eq!(status(&answer), "401", "{path}: {answer}");
        let answer = process.get_as(token, "metrics", path).await;
        assert_eq!(status(&answer), "200", "{path}: {answer}");
    }
    let answer = process.get("metrics", "/metrics").await;
    let text = "forbidden: User \"system:anonymous\" cannot get path \"/metrics\"";
    assert!(answer.contains(text), "{answer}");
    for path in ["/healthz", "/livez", "/readyz?verbose"] {
        let answer = process.get("health probes", path).await;
        assert_eq!(status(&answer), "200", "{path}: {answer}");
    }
    let log = process.terminate();
    assert!(!log.contains(token), "a token is in the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_open_to_everybody_when_a_flag_says_so() {
    let cluster = Cluster::start().await;
    let kubeconfig = cluster.kubeconfig().await.unwrap();
    let open = "--authorization-always-allow-paths=/metrics,/debug/*";
    let mut process = Process::start(&words(&[open]), &kubeconfig);
    for (path, expected) in [
        ("/metrics", "200"),
        ("/debug/windlass/queues", "200"),
        ("/other", "403"),
    ] {
        let answer = process.get("metrics", path).await;
        assert_eq!(status(&answer), expected, "{path}: {answer}");
    }
    process.terminate();
}
