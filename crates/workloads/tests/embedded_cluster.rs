//! Jobs and Services in a cluster with all controllers, as `windlass up` has them.

use windlass_core::{Doc, Gvr, condition};
use windlass_testing::Cluster;

const JOBS: Gvr = Gvr::constant("batch", "v1", "jobs");
const SLICES: Gvr = Gvr::constant("discovery.k8s.io", "v1", "endpointslices");
const ENDPOINTS: Gvr = Gvr::constant("", "v1", "endpoints");

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
