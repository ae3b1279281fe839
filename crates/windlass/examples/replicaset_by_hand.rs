//! What a ReplicaSet controller does, in one function: compare the pods that are with the pods
//! that shall be, and create or delete the difference.
//!
//! The real one (crate `windlass-controllers`) also adopts and releases pods, starts slowly,
//! ranks its victims and reports conditions. `cargo run -p windlass --example replicaset_by_hand`
//! shows this one and ends.

use windlass::client::{DeleteOptions, Propagation, WriteOptions};
use windlass::core::Selector;
use windlass::k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use windlass::prelude::*;
use windlass::testing::Cluster;

/// The cache is as new as this controller's own writes, because the runtime waits for them. So
/// nothing is created twice, however late the watch is.
async fn reconcile(set: Obj<ReplicaSet>, cx: Context) -> Result<Action> {
    let wanted = set.doc().at("/spec/replicas").as_i64().unwrap_or(1);
    let wanted = usize::try_from(wanted).unwrap_or(0);
    let pods = cx
        .lister::<Pod>()?
        .list_in(set.namespace(), &Selector::everything());
    let mut pods: Vec<_> = pods
        .into_iter()
        .filter(|pod| pod.meta().is_controlled_by(&set.uid()) && !pod.meta().is_deleting())
        .collect();
    let api = cx.clientset().api::<Pod>().namespaced(set.namespace());
    for _ in pods.len()..wanted {
        api.dynamic()
            .create(&pod_of(&set, &cx), &WriteOptions::default())
            .await?;
    }
    // Oldest first; the uid decides between equals.
    pods.sort_by_key(|pod| (pod.meta().creation_timestamp(), pod.uid()));
    for pod in pods.split_off(pods.len().min(wanted)) {
        let this_one = DeleteOptions::uid(pod.meta().uid_str());
        api.delete(pod.name(), &this_one).await?;
    }
    let status = json!({ "replicas": wanted, "observedGeneration": set.meta().generation() });
    cx.patch_status(&set, status).await?;
    Ok(Action::done())
}

/// A pod of the template. Its name is chosen here, so that a create whose answer was lost can be
/// repeated without making a second pod.
fn pod_of(set: &Obj<ReplicaSet>, cx: &Context) -> Doc {
    let template = set.doc().at("/spec/template");
    let name = format!("{}-{}", set.name(), cx.env().name_suffix());
    let owner = OwnerRef::controller_of(set.doc(), ResourceKind::of::<ReplicaSet>().gvk());
    doc!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": set.namespace(),
            "labels": template.at("/metadata/labels").clone(),
            "ownerReferences": Doc::from(vec![Doc::from(&owner)]),
        },
        "spec": template.at("/spec").clone(),
    })
}

#[tokio::main]
async fn main() {
    let cluster = Cluster::start().await;
    cluster.run(
        Controller::of::<ReplicaSet>(reconcile)
            .named("replicaset-by-hand")
            .owns::<Pod>(),
    );
    let set = "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web, namespace: default},
        spec: {replicas: 3, selector: {matchLabels: {app: web}}, template: {
            metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: nginx}]}}}}";
    let set = cluster.create_yaml(set).await.remove(0);
    let pods_are = async |c: &Cluster, count| c.list::<Pod>("default").await.len() == count;
    cluster.until(async |c| pods_are(c, 3).await).await;
    println!("3 pods are there");

    let victim = cluster.list::<Pod>("default").await.remove(0);
    cluster.delete(victim.doc(), Propagation::Background).await;
    println!("deleted {}", victim.name());
    cluster
        .until(async |c| {
            let pods = c.list::<Pod>("default").await;
            pods.len() == 3 && pods.iter().all(|pod| pod.uid() != victim.uid())
        })
        .await;
    println!("another one took its place");

    cluster
        .patch(&set, doc!({ "spec": { "replicas": 1 } }))
        .await;
    cluster.until(async |c| pods_are(c, 1).await).await;
    println!("scaled to 1 pod");
}
