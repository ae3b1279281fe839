//! Every verb of `Api<K>`.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::autoscaling::v1::{Scale, ScaleSpec};
use k8s_openapi::api::core::v1::{
    Binding, ConfigMap, Container, Namespace, ObjectReference, Pod, PodSpec, PodTemplateSpec,
    ServiceAccount,
};
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use windlass_client::{
    Api, DeleteOptions, Deletion, FieldValidation, ListOptions, Patch, Propagation, RequestOutcome,
    WriteOptions, retry_on_conflict,
};
use windlass_core::{Doc, Env, doc};

use crate::setup::{config_map, named, namespace, server};

fn plain() -> WriteOptions {
    WriteOptions::default()
}

#[tokio::test]
async fn config_maps_are_created_read_updated_and_deleted() {
    let Some((_, client)) = server().await else {
        return;
    };
    namespace(&client, "typed-crud").await;
    let maps: Api<ConfigMap> = client.api().namespaced("typed-crud");

    let created = maps.create(&config_map("a", "1"), &plain()).await.unwrap();
    assert!(created.metadata.uid.is_some());
    let again = maps
        .create(&config_map("a", "1"), &plain())
        .await
        .unwrap_err();
    assert!(again.is_already_exists() && !again.is_conflict());
    assert_eq!(again.outcome(), RequestOutcome::Rejected);

    let mut read = maps.get("a").await.unwrap();
    assert_eq!(read, created);
    assert_eq!(maps.find("nobody").await.unwrap(), None);
    let missing = maps.get("nobody").await.unwrap_err();
    assert!(missing.is_not_found());
    assert_eq!(
        missing.to_string(),
        "GET /api/v1/namespaces/typed-crud/configmaps/nobody: configmaps \"nobody\" not found"
    );

    read.data = Some([("key".to_owned(), "2".to_owned())].into());
    let updated = maps.update(&read, &plain()).await.unwrap();
    assert_ne!(
        updated.metadata.resource_version,
        read.metadata.resource_version
    );
    let stale = maps.update(&read, &plain()).await.unwrap_err();
    assert!(stale.is_conflict() && !stale.is_already_exists());

    let invalid = maps
        .create(&config_map("Not a name", ""), &plain())
        .await
        .unwrap_err();
    assert!(invalid.is_invalid());
    assert_eq!(
        invalid.status().unwrap().details.as_ref().unwrap().causes[0].field,
        "metadata.name"
    );

    assert!(matches!(
        maps.delete("a", &DeleteOptions::default()).await,
        Ok(Deletion::Done(_))
    ));
    assert!(
        maps.delete("a", &DeleteOptions::default())
            .await
            .unwrap_err()
            .is_not_found()
    );
}

#[tokio::test]
async fn a_dry_run_changes_nothing_and_strict_validation_refuses_unknown_fields() {
    let Some((_, client)) = server().await else {
        return;
    };
    namespace(&client, "typed-dry").await;
    let maps: Api<ConfigMap> = client.api().namespaced("typed-dry");
    maps.create(&config_map("a", "1"), &plain().dry_run())
        .await
        .unwrap();
    assert_eq!(maps.find("a").await.unwrap(), None);

    let strict = WriteOptions {
        field_validation: Some(FieldValidation::Strict),
        ..plain()
    };
    let object = doc!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "a" }, "nonsense": 1 });
    let error = maps.dynamic().create(&object, &strict).await.unwrap_err();
    assert!(error.to_string().contains("unknown field"), "{error}");

    maps.create(&config_map("a", "1"), &plain()).await.unwrap();
    let options = DeleteOptions {
        is_dry_run: true,
        ..DeleteOptions::default()
    };
    maps.delete("a", &options).await.unwrap();
    assert!(maps.find("a").await.unwrap().is_some());
}

#[tokio::test]
async fn the_four_sorts_of_patch_change_an_object() {
    let Some((_, client)) = server().await else {
        return;
    };
    namespace(&client, "typed-patch").await;
    let maps: Api<ConfigMap> = client.api().namespaced("typed-patch");
    maps.create(&config_map("a", "1"), &plain()).await.unwrap();
    let data = |map: &ConfigMap| format!("{:?}", map.data.clone().unwrap_or_default());

    let operations = doc!([{ "op": "replace", "path": "/data/key", "value": "json" }]);
    let map = maps
        .patch("a", &Patch::Json(operations), &plain())
        .await
        .unwrap();
    assert_eq!(data(&map), r#"{"key": "json"}"#);

    let merge = doc!({ "data": { "key": null, "more": "merge" } });
    let map = maps
        .patch("a", &Patch::Merge(merge), &plain())
        .await
        .unwrap();
    assert_eq!(data(&map), r#"{"more": "merge"}"#);

    let strategic = doc!({ "data": { "$patch": "replace", "only": "strategic" } });
    let map = maps
        .patch("a", &Patch::Strategic(strategic), &plain())
        .await
        .unwrap();
    assert_eq!(data(&map), r#"{"only": "strategic"}"#);

    let apply = |value: &str| {
        Patch::Apply(doc!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "a" }, "data": { "applied": value } }))
    };
    let nobody = maps.patch("a", &apply("1"), &plain()).await.unwrap_err();
    assert_eq!(nobody.outcome(), RequestOutcome::NotSent);
    let map = maps
        .patch("a", &apply("1"), &WriteOptions::manager("one"))
        .await
        .unwrap();
    assert_eq!(data(&map), r#"{"applied": "1", "only": "strategic"}"#);
    let managers = map.metadata.managed_fields.unwrap();
    assert!(
        managers
            .iter()
            .any(|entry| entry.manager.as_deref() == Some("one"))
    );

    let conflict = maps
        .patch("a", &apply("2"), &WriteOptions::manager("two"))
        .await
        .unwrap_err();
    assert!(conflict.is_conflict());
    let map = maps
        .patch("a", &apply("2"), &WriteOptions::manager("two").force())
        .await
        .unwrap();
    assert_eq!(data(&map), r#"{"applied": "2", "only": "strategic"}"#);
}

fn deployment(name: &str) -> Deployment {
    let labels = Some([("app".to_owned(), name.to_owned())].into());
    let container = Container {
        name: "c".to_owned(),
        image: Some("i".to_owned()),
        ..Container::default()
    };
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: labels.clone(),
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec {
            containers: vec![container],
            ..PodSpec::default()
        }),
    };
    let selector = LabelSelector {
        match_labels: labels,
        ..LabelSelector::default()
    };
    let spec = DeploymentSpec {
        replicas: Some(3),
        selector,
        template,
        ..Default::default()
    };
    Deployment {
        metadata: named(name),
        spec: Some(spec),
        ..Deployment::default()
    }
}

#[tokio::test]
async fn status_and_scale_are_written_apart_from_the_object() {
    let Some((_, client)) = server().await else {
        return;
    };
    namespace(&client, "typed-parts").await;
    let deployments: Api<Deployment> = client.api().namespaced("typed-parts");
    let mut web = deployments
        .create(&deployment("web"), &plain())
        .await
        .unwrap();

    web.status.get_or_insert_default().replicas = Some(2);
    web.spec.as_mut().unwrap().replicas = Some(99);
    let web = deployments.update_status(&web, &plain()).await.unwrap();
    assert_eq!(web.status.unwrap().replicas, Some(2));
    assert_eq!(web.spec.unwrap().replicas, Some(3));

    let patch = Patch::Merge(doc!({ "status": { "readyReplicas": 1 } }));
    let web = deployments
        .patch_status("web", &patch, &plain())
        .await
        .unwrap();
    assert_eq!(web.status.unwrap().ready_replicas, Some(1));

    let scale = deployments.get_scale("web").await.unwrap();
    assert_eq!(scale.spec.as_ref().unwrap().replicas, Some(3));
    let spec = Some(ScaleSpec { replicas: Some(5) });
    let scale = Scale { spec, ..scale };
    let scale = deployments
        .update_scale("web", &scale, &plain())
        .await
        .unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(5));
    let patch = Patch::Merge(doc!({ "spec": { "replicas": 6 } }));
    let scale = deployments
        .patch_scale("web", &patch, &plain())
        .await
        .unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(6));
}

fn pod(name: &str) -> Pod {
    let container = Container {
        name: "c".to_owned(),
        image: Some("i".to_owned()),
        ..Container::default()
    };
    let spec = PodSpec {
        containers: vec![container],
        ..PodSpec::default()
    };
    Pod {
        metadata: named(name),
        spec: Some(spec),
        ..Pod::default()
    }
}

#[tokio::test]
async fn pods_are_bound_and_evicted() {
    let Some((_, client)) = server().await else {
        return;
    };
    namespace(&client, "typed-pods").await;
    let pods: Api<Pod> = client.api().namespaced("typed-pods");
    pods.create(&pod("a"), &plain()).await.unwrap();

    let node = ObjectReference {
        kind: Some("Node".to_owned()),
        name: Some("n1".to_owned()),
        ..ObjectReference::default()
    };
    let binding = Binding {
        metadata: named("a"),
        target: node,
    };
    pods.bind("a", &binding, &plain()).await.unwrap();
    let bound = pods.get("a").await.unwrap();
    assert_eq!(bound.spec.unwrap().node_name.as_deref(), Some("n1"));
    assert!(
        pods.bind("a", &binding, &plain())
            .await
            .unwrap_err()
            .is_conflict()
    );

    let eviction = Eviction {
        metadata: named("a"),
        ..Eviction::default()
    };
    pods.evict("a", &eviction, &plain()).await.unwrap();
    let evicted = pods.get("a").await.unwrap();
    assert!(evicted.metadata.deletion_timestamp.is_some());
}

#[tokio::test]
async fn a_service_account_gives_a_token() {
    let Some((_, client)) = server().await else {
        return;
    };
    namespace(&client, "typed-token").await;
    let accounts: Api<ServiceAccount> = client.api().namespaced("typed-token");
    let account = ServiceAccount {
        metadata: named("robot"),
        ..ServiceAccount::default()
    };
    accounts.create(&account, &plain()).await.unwrap();
    let spec = TokenRequestSpec {
        expiration_seconds: Some(600),
        ..TokenRequestSpec::default()
    };
    let request = TokenRequest {
        spec: Some(spec),
        ..TokenRequest::default()
    };
    let answer = accounts
        .create_token("robot", &request, &plain())
        .await
        .unwrap();
    assert!(answer.status.unwrap().token.is_some());
}

#[tokio::test]
async fn a_deletion_obeys_its_preconditions_and_its_policy() {
    let Some((_, client)) = server().await else {
        return;
    };
    namespace(&client, "typed-delete").await;
    let maps: Api<ConfigMap> = client.api().namespaced("typed-delete");
    let map = maps.create(&config_map("a", "1"), &plain()).await.unwrap();

    let other = maps
        .delete("a", &DeleteOptions::uid("another"))
        .await
        .unwrap_err();
    assert!(other.is_conflict(), "{other:?}");
    let version = Some("1".to_owned());
    let old = DeleteOptions {
        resource_version: version,
        ..DeleteOptions::default()
    };
    assert!(maps.delete("a", &old).await.unwrap_err().is_conflict());
    let foreground =
        DeleteOptions::uid(map.metadata.uid.unwrap()).propagate(Propagation::Foreground);
    let started = maps.delete("a", &foreground).await.unwrap();
    let Deletion::Started(doc) = started else {
        panic!("a finalizer holds it")
    };
    assert_eq!(
        doc.at("/metadata/finalizers"),
        &doc!(["foregroundDeletion"])
    );
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let Some((_, client)) = server().await else {
        return;
    };
    namespace(&client, "typed-many").await;
    let maps: Api<ConfigMap> = client.api().namespaced("typed-many");
    for (name, app) in [("a", "x"), ("b", "x"), ("c", "y")] {
        let mut map = config_map(name, "1");
        map.metadata.labels = Some([("app".to_owned(), app.to_owned())].into());
        maps.create(&map, &plain()).await.unwrap();
    }
    let which = ListOptions::default().labels("app=x");
    maps.delete_collection(&DeleteOptions::default(), &which)
        .await
        .unwrap();
    let left = maps.list(&ListOptions::default()).await.unwrap();
    let names: Vec<_> = left
        .items
        .iter()
        .filter_map(|map| map.metadata.name.as_deref())
        .collect();
    assert_eq!(names, ["c"]);
    let by_field = ListOptions::default().fields("metadata.name=nobody");
    assert!(maps.list(&by_field).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn writers_who_retry_on_conflict_all_get_their_turn() {
    let Some((_, client)) = server().await else {
        return;
    };
    namespace(&client, "typed-turns").await;
    let maps: Api<ConfigMap> = client.api().namespaced("typed-turns");
    maps.create(&config_map("a", "0"), &plain()).await.unwrap();
    let env = Env::real();
    let add = async || {
        retry_on_conflict(&env, async || {
            let mut map = maps.get("a").await?;
            let data = map.data.get_or_insert_default();
            let next = data["key"].parse::<u32>().unwrap() + 1;
            data.insert("key".to_owned(), next.to_string());
            maps.update(&map, &plain()).await
        })
        .await
        .unwrap()
    };
    tokio::join!(add(), add());
    assert_eq!(maps.get("a").await.unwrap().data.unwrap()["key"], "2");
}

#[tokio::test]
async fn a_cluster_scoped_kind_has_no_namespace() {
    let Some((_, client)) = server().await else {
        return;
    };
    let namespaces: Api<Namespace> = client.api();
    let default = namespaces.get("default").await.unwrap();
    let list = namespaces.list_all(&ListOptions::default()).await.unwrap();
    assert!(
        list.items.contains(&default)
            || list
                .items
                .iter()
                .any(|it| it.metadata.uid == default.metadata.uid)
    );
    let doc: Doc = namespaces.dynamic().get("default").await.unwrap();
    assert_eq!(doc.str_at("/kind"), "Namespace");
}
