//! Jobs, Services, DaemonSets, StatefulSets, budgets, nodes and claims in a cluster with all
//! controllers, as `windlass up` has them.

use std::time::Duration;

use windlass_client::WriteOptions;
use windlass_core::{Doc, Gvr, condition, doc};
use windlass_testing::Cluster;

const JOBS: Gvr = Gvr::constant("batch", "v1", "jobs");
const SLICES: Gvr = Gvr::constant("discovery.k8s.io", "v1", "endpointslices");
const ENDPOINTS: Gvr = Gvr::constant("", "v1", "endpoints");

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const NODES: Gvr = Gvr::constant("", "v1", "nodes");
const BUDGETS: Gvr = Gvr::constant("policy", "v1", "poddisruptionbudgets");
const CLAIMS: Gvr = Gvr::constant("", "v1", "persistentvolumeclaims");

const BUDGET: &str = "
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: web, namespace: default }
spec: { minAvailable: 2, selector: { matchLabels: { app: web } } }
";

const CLAIM: &str = "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: data, namespace: default }
spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } } }
---
apiVersion: v1
kind: Pod
metadata: { name: reader, namespace: default }
spec:
  containers: [{ name: c, image: i }]
  volumes: [{ name: v, persistentVolumeClaim: { claimName: data } }]
";

const OBJECTS: &str = "
apiVersion: batch/v1
kind: Job
metadata: { name: pi, namespace: default }
spec:
  completions: 5
  parallelism: 2
  template:
    spec: { restartPolicy: Never, containers: [{ name: c, image: i }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: default }
spec:
  replicas: 3
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: c, image: i }] }
---
apiVersion: v1
kind: Service
metadata: { name: web, namespace: default }
spec: { selector: { app: web }, ports: [{ port: 80 }] }
";

fn is_complete(job: &Doc) -> bool {
    condition(job, "Complete").is_some_and(|it| it.is_true())
}

#[tokio::test(start_paused = true)]
async fn jobs_complete_and_services_have_endpoints_without_an_annotation() {
    let cluster = Cluster::builder().controllers(["*"]).start().await;
    cluster.create_yaml(OBJECTS).await;
    let job = async |c: &Cluster| c.find(&JOBS, "default/pi").await;
    cluster
        .until(async |c| job(c).await.is_some_and(|job| is_complete(&job)))
        .await;
    let done = job(&cluster).await.expect("the Job is there");
    assert_eq!(*done.at("/status/succeeded"), 5);
    let slices = cluster
        .list_docs(&SLICES, "default", "kubernetes.io/service-name=web")
        .await;
    assert_eq!(slices.len(), 1);
    assert_eq!(slices[0].at("/endpoints").items().len(), 3);
    assert_eq!(*slices[0].at("/endpoints/0/conditions/ready"), true);
    let endpoints = cluster.find(&ENDPOINTS, "default/web").await;
    let endpoints = endpoints.expect("the Service has Endpoints");
    assert_eq!(endpoints.at("/subsets/0/addresses").items().len(), 3);
}

const DAEMON_SETS: Gvr = Gvr::constant("apps", "v1", "daemonsets");
const STATEFUL_SETS: Gvr = Gvr::constant("apps", "v1", "statefulsets");

const SETS: &str = "
apiVersion: apps/v1
kind: DaemonSet
metadata: { name: agent, namespace: default }
spec:
  selector: { matchLabels: { app: agent } }
  template:
    metadata: { labels: { app: agent } }
    spec: { containers: [{ name: c, image: i }] }
---
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: db, namespace: default }
spec:
  serviceName: db
  replicas: 3
  selector: { matchLabels: { app: db } }
  template:
    metadata: { labels: { app: db } }
    spec: { containers: [{ name: c, image: i }] }
";

#[tokio::test(start_paused = true)]
async fn daemon_sets_and_stateful_sets_become_ready_on_pretend_nodes() {
    let cluster = Cluster::builder()
        .controllers(["*"])
        .settings(|settings| settings.node.nodes = 4)
        .start()
        .await;
    cluster.create_yaml(SETS).await;
    let number = async |c: &Cluster, resource: &Gvr, key: &str, at: &str| {
        let set = c.find(resource, key).await;
        set.and_then(|set| set.at(at).as_i64()).unwrap_or(0)
    };
    cluster
        .until(async |c| {
            let agents = number(c, &DAEMON_SETS, "default/agent", "/status/numberReady").await;
            let dbs = number(c, &STATEFUL_SETS, "default/db", "/status/readyReplicas").await;
            (agents, dbs) == (4, 3)
        })
        .await;
    // Each pod of the DaemonSet is on the node that it names.
    let nodes = cluster.list_docs(&NODES, "", "").await;
    assert_eq!(nodes.len(), 4);
    let pods = cluster.list_docs(&PODS, "default", "app=agent").await;
    let mut used: Vec<&str> = pods.iter().map(|it| it.str_at("/spec/nodeName")).collect();
    used.sort_unstable();
    used.dedup();
    assert_eq!(used.len(), 4);
    let pods = cluster.list_docs(&PODS, "default", "app=db").await;
    let mut names: Vec<&str> = pods.iter().map(|it| it.meta().name()).collect();
    names.sort_unstable();
    assert_eq!(names, ["db-0", "db-1", "db-2"]);
}

async fn web_pods(cluster: &Cluster) -> Vec<Doc> {
    let mut pods = cluster.list_docs(&PODS, "default", "app=web").await;
    pods.retain(|pod| !pod.meta().is_deleting());
    pods
}

async fn healthy(cluster: &Cluster) -> Option<i64> {
    let budget = cluster.find(&BUDGETS, "default/web").await?;
    budget.at("/status/currentHealthy").as_i64()
}

/// What `kubectl drain` does: cordon the node, and evict its pods until the budget has let all go.
#[tokio::test(start_paused = true)]
async fn a_node_is_drained_and_the_budget_is_kept() {
    let cluster = Cluster::builder().controllers(["*"]).start().await;
    cluster.create_yaml(OBJECTS).await;
    cluster.create_yaml(BUDGET).await;
    cluster.until(async |c| healthy(c).await == Some(3)).await;
    let node = web_pods(&cluster).await[0]
        .str_at("/spec/nodeName")
        .to_owned();
    let object = cluster
        .find(&NODES, &node)
        .await
        .expect("the node is there");
    let cordon = doc!({ "spec": { "unschedulable": true } });
    cluster.patch(&object, cordon).await;
    let api = cluster.api(&PODS, "default");
    let on_node = async |c: &Cluster| {
        let mut pods = web_pods(c).await;
        pods.retain(|pod| pod.str_at("/spec/nodeName") == node);
        pods
    };
    while let Some(pod) = on_node(&cluster).await.first() {
        let name = pod.meta().name();
        let eviction = doc!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name }
        });
        let evicted = api
            .create_part(name, "eviction", &eviction, &WriteOptions::default())
            .await;
        if let Err(error) = evicted {
            assert!(error.is_too_many_requests(), "{error}");
        }
        assert!(healthy(&cluster).await >= Some(2));
        cluster.pass(Duration::from_secs(5)).await;
    }
    cluster.until(async |c| healthy(c).await == Some(3)).await;
    assert!(on_node(&cluster).await.is_empty());
}

/// Nodes that pretend renew their Leases, so that nobody takes them for dead.
#[tokio::test(start_paused = true)]
async fn pretend_nodes_stay_alive() {
    let cluster = Cluster::builder().controllers(["*"]).start().await;
    cluster.create_yaml(OBJECTS).await;
    cluster.until(async |c| web_pods(c).await.len() == 3).await;
    let before = web_pods(&cluster).await;
    cluster.pass(Duration::from_secs(1800)).await;
    for node in cluster.list_docs(&NODES, "", "").await {
        let is_ready = condition(&node, "Ready").is_some_and(|it| it.is_true());
        assert!(
            is_ready && node.at("/spec/taints").items().is_empty(),
            "{node}"
        );
    }
    let uids = |pods: &[Doc]| -> Vec<_> { pods.iter().map(|pod| pod.meta().uid()).collect() };
    assert_eq!(uids(&web_pods(&cluster).await), uids(&before));
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_a_claim_runs() {
    let cluster = Cluster::builder().controllers(["*"]).start().await;
    cluster.create_yaml(CLAIM).await;
    let is_running = async |c: &Cluster| {
        let pod = c.find(&PODS, "default/reader").await;
        let claim = c.find(&CLAIMS, "default/data").await;
        pod.is_some_and(|it| it.str_at("/status/phase") == "Running")
            && claim.is_some_and(|it| it.str_at("/status/phase") == "Bound")
    };
    cluster.until(is_running).await;
}
