//! Persistent volumes and claims. They are stored; nothing provisions them.

use windlass_core::{Doc, Env, doc};

use super::fields::edit;
use crate::field::{FieldErrors, FieldPath};
use crate::registry::Hooks;
use crate::rest::put;

/// Hooks of persistent volumes.
#[derive(Debug)]
pub(crate) struct Volumes;

/// Hooks of persistent volume claims.
#[derive(Debug)]
pub(crate) struct Claims;

impl Hooks for Volumes {
    fn default(&self, volume: Doc) -> Doc {
        edit(&volume, |volume| {
            volume.inside("spec", |spec| {
                edit(spec, |spec| {
                    spec.default("persistentVolumeReclaimPolicy", "Retain");
                    spec.default("volumeMode", "Filesystem");
                })
            });
        })
    }

    fn prepare_create(&self, volume: Doc, _env: &Env) -> Doc {
        let volume = put(volume, "/status", doc!({ "phase": "Pending" }));
        volume.with_finalizer("kubernetes.io/pv-protection")
    }
}

impl Hooks for Claims {
    fn default(&self, claim: Doc) -> Doc {
        edit(&claim, |claim| {
            claim.inside("spec", |spec| {
                edit(spec, |spec| spec.default("volumeMode", "Filesystem"))
            });
        })
    }

    fn prepare_create(&self, claim: Doc, _env: &Env) -> Doc {
        let claim = put(claim, "/status", doc!({ "phase": "Pending" }));
        claim.with_finalizer("kubernetes.io/pvc-protection")
    }

    fn validate(&self, claim: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("spec");
        if claim.at("/spec/accessModes").items().is_empty() {
            let detail = "at least 1 access mode is required";
            errors.required(&path.child("accessModes"), detail);
        }
        if claim.at("/spec/resources/requests/storage").is_null() {
            errors.required(&path.child("resources").key("storage"), "");
        }
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        let frozen = |claim: &Doc| {
            edit(claim.at("/spec"), |spec| {
                for key in [
                    "resources",
                    "volumeAttributesClassName",
                    "volumeName",
                    "storageClassName",
                ] {
                    spec.remove(key);
                }
            })
        };
        if frozen(new) != frozen(old) {
            let detail = "spec is immutable after creation except resources.requests and \
                          volumeAttributesClassName for bound claims";
            errors.forbidden(&FieldPath::new("spec"), detail);
        }
    }
}
