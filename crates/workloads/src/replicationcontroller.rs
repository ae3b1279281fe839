//! Keeps as many pods running as a ReplicationController asks for: the ReplicaSet of the core
//! group, with labels alone for a selector.

use windlass_core::{Doc, LabelSelector, Selector};
use windlass_runtime::{Error, Manager};

use crate::{
    owned::core_kind,
    replicaset::{Engine, Options, Variant},
};

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "replicationcontroller-controller";

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let variant = Variant {
        name: NAME,
        component: "replication-controller",
        queue: "replicationmanager",
        metrics: "replication_controller",
        kind: core_kind("ReplicationController", "replicationcontrollers"),
        selector,
        counts_terminating: false,
    };
    Engine::add_to(variant, manager, options);
}

/// The labels that pods must have; none match nothing.
fn selector(owner: &Doc) -> Result<Selector, Error> {
    let labels = owner.at("/spec/selector");
    if labels.is_null() {
        return Ok(Selector::nothing());
    }
    let selector = LabelSelector {
        match_labels: labels.decode()?,
        ..LabelSelector::default()
    };
    Ok(Selector::try_from(&selector)?)
}
