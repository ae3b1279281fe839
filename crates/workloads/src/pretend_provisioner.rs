//! A pretend provisioner: volumes that exist only in the API, for clusters whose nodes do so too.
//!
//! It makes a default StorageClass at the start, a volume for each claim of a class that names it,
//! and deletes volumes that are released. Nothing is stored anywhere.

use windlass_client::{DeleteOptions, DynamicClient, WriteOptions};
use windlass_core::{Doc, Key, doc};
use windlass_runtime::{Action, Context, Controller, EventType, Manager, Result};

use crate::pv_binder::{
    claims, classes,
    facts::{PROVISIONED_BY, PROVISIONER, SELECTED_NODE, class_of},
    volumes,
};

/// The name of the controller.
pub const NAME: &str = "pretend-provisioner";

/// The name by which classes ask for this provisioner.
pub const PROVISIONER_NAME: &str = "volume.windlass.dev";

/// The name of the StorageClass that it makes.
pub const CLASS: &str = "standard";

/// The label of nodes that holds their name.
const HOST_NAME: &str = "kubernetes.io/hostname";

/// Options of the provisioner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Makes the default StorageClass.
    pub has_class: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { has_class: true }
    }
}

/// Adds the provisioner to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    if options.has_class {
        add_class(manager);
    }
    let provision = |key: Key, cx: Context| async move { provision(&key, &cx).await };
    let provisioner = Controller::of_kind(claims(), provision)
        .filter(|change| change.new.is_some_and(|it| is_wanted(it.doc())))
        .reads_kind(classes())
        .named(NAME)
        .component(PROVISIONER_NAME);
    manager.add(provisioner);
    let delete = |key: Key, cx: Context| async move { delete(&key, &cx).await };
    let deleter = Controller::of_kind(volumes(), delete)
        .filter(|change| change.new.is_some_and(|it| is_released(it.doc())))
        .named("pretend-provisioner-volumes")
        .component(PROVISIONER_NAME);
    manager.add(deleter);
}

/// Makes the default StorageClass once. A class of this name that is there already stays.
fn add_class(manager: &Manager) {
    let api = DynamicClient::new(manager.client().clone()).resource(classes().gvr().clone());
    manager.add_task("pretend-provisioner-class", move |_| async move {
        let class = doc!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {
                "name": CLASS,
                "annotations": { "storageclass.kubernetes.io/is-default-class": "true" },
            },
            "provisioner": PROVISIONER_NAME, "reclaimPolicy": "Delete",
            "volumeBindingMode": "Immediate",
        });
        match api.create(&class, &WriteOptions::manager(NAME)).await {
            Err(error) if !error.is_already_exists() => {
                tracing::error!(class = CLASS, %error, "there is no default StorageClass");
            }
            _ => {}
        }
        Result::Ok(())
    });
}

/// Returns true if a claim waits for a volume of this provisioner.
fn is_wanted(claim: &Doc) -> bool {
    let is_ours = claim.meta().annotation(PROVISIONER) == Some(PROVISIONER_NAME);
    is_ours && claim.str_at("/spec/volumeName").is_empty() && !claim.meta().is_deleting()
}

async fn provision(key: &Key, cx: &Context) -> Result<Action> {
    let Some(claim) = cx.lister_of(&claims())?.get(key) else {
        return Ok(Action::done());
    };
    let claim = claim.doc();
    let class = cx
        .lister_of(&classes())?
        .get(&Key::cluster(class_of(claim)));
    let Some(class) = class.filter(|_| is_wanted(claim)) else {
        return Ok(Action::done());
    };
    let is_delayed = class.doc().str_at("/volumeBindingMode") == "WaitForFirstConsumer";
    let node = claim.meta().annotation(SELECTED_NODE).unwrap_or("");
    if is_delayed && node.is_empty() {
        return Ok(Action::done());
    }
    let volume = volume_for(claim, class.doc(), node)?;
    let api = cx.api(&volumes(), "");
    match api.create(&volume, &WriteOptions::manager(NAME)).await {
        // An earlier try made it, and nobody heard.
        Err(error) if error.is_already_exists() => return Ok(Action::done()),
        Err(error) => return Err(error.into()),
        Ok(_) => {}
    }
    let name = volume.meta().name();
    let text = format!("Successfully provisioned volume {name}");
    let recorder = cx.recorder();
    recorder.event(claim, EventType::Normal, "ProvisioningSucceeded", &text);
    Ok(Action::done())
}

/// The volume of a claim. Its name holds the claim's UID, so that no claim gets two.
fn volume_for(claim: &Doc, class: &Doc, node: &str) -> Result<Doc> {
    let meta = claim.meta();
    let name = format!("pvc-{}", meta.uid_str());
    let policy = match class.str_at("/reclaimPolicy") {
        "" => "Delete",
        policy => policy,
    };
    let mut spec = doc!({
        "capacity": { "storage": (claim.str_at("/spec/resources/requests/storage")) },
        "accessModes": (claim.at("/spec/accessModes").items().to_vec()),
        "persistentVolumeReclaimPolicy": policy,
        "storageClassName": (class.meta().name()),
        "csi": { "driver": PROVISIONER_NAME, "volumeHandle": (name.as_str()) },
        "claimRef": {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "namespace": (meta.namespace()), "name": (meta.name()), "uid": (meta.uid_str()),
        },
    });
    for field in ["volumeMode", "volumeAttributesClassName"] {
        if let Some(value) = claim.at("/spec").get(field) {
            spec = spec.with(&format!("/{field}"), value.clone())?;
        }
    }
    if !node.is_empty() {
        let term = doc!({ "matchExpressions": [
            { "key": HOST_NAME, "operator": "In", "values": [node] }
        ] });
        let affinity = doc!({ "required": { "nodeSelectorTerms": [term] } });
        spec = spec.with("/nodeAffinity", affinity)?;
    }
    Ok(doc!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": { "name": name, "annotations": { PROVISIONED_BY: PROVISIONER_NAME } },
        "spec": spec,
    }))
}

/// Returns true if a volume of this provisioner is to be deleted.
fn is_released(volume: &Doc) -> bool {
    volume.str_at("/status/phase") == "Released"
        && volume.str_at("/spec/persistentVolumeReclaimPolicy") == "Delete"
        && volume.meta().annotation(PROVISIONED_BY) == Some(PROVISIONER_NAME)
        && !volume.meta().is_deleting()
}

async fn delete(key: &Key, cx: &Context) -> Result<Action> {
    let volume = cx.lister_of(&volumes())?.get(key);
    let Some(volume) = volume.filter(|it| is_released(it.doc())) else {
        return Ok(Action::done());
    };
    let options = DeleteOptions::uid(volume.uid().as_str());
    match cx.api(&volumes(), "").delete(key.name(), &options).await {
        Err(error) if !error.is_not_found() => Err(error.into()),
        _ => Ok(Action::done()),
    }
}
