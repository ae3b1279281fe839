//! Persistent volumes and claims. They are stored; nothing provisions them.

use windlass_core::{Doc, Env, doc};

use crate::edit::edit;
use crate::edit::put;
use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;

/// Hooks of persistent volumes.
#[derive(Debug)]
pub struct Volumes;

/// Hooks of persistent volume claims.
#[derive(Debug)]
pub struct Claims;

/// Hooks of storage classes.
#[derive(Debug)]
pub struct StorageClasses;

/// Hooks of storage drivers.
#[derive(Debug)]
pub struct CsiDrivers;

/// Hooks of volume attachments.
#[derive(Debug)]
pub struct Attachments;

impl Hooks for Volumes {
    fn default(&self, volume: Doc) -> Doc {
        edit(&volume, |volume| {
            volume.inside("spec", |spec| {
                edit(spec, |spec| {
                    spec.default("persistentVolumeReclaimPolicy", "Retain");
                    spec.default("volumeMode", "Filesystem");
                    spec.inside("hostPath", |path| {
                        edit(path, |path| {
                            if !path.has("type") {
                                path.set("type", "");
                            }
                        })
                    });
                })
            });
        })
    }

    fn prepare_create(&self, volume: Doc, env: &Env) -> Doc {
        let now = env.now().to_string();
        let status = doc!({ "phase": "Pending", "lastPhaseTransitionTime": now });
        put(volume, "/status", status)
    }
}

/// A claim with its defaults, alone or as a template.
pub(super) fn default_claim(claim: &Doc) -> Doc {
    edit(claim, |claim| {
        claim.inside("spec", |spec| {
            edit(spec, |spec| spec.default("volumeMode", "Filesystem"))
        });
    })
}

impl Hooks for StorageClasses {
    fn default(&self, class: Doc) -> Doc {
        edit(&class, |class| {
            class.default("reclaimPolicy", "Delete");
            class.default("volumeBindingMode", "Immediate");
        })
    }
}

impl Hooks for CsiDrivers {
    fn default(&self, driver: Doc) -> Doc {
        edit(&driver, |driver| {
            driver.default("spec", Doc::empty_object());
            driver.inside("spec", |spec| {
                edit(spec, |spec| {
                    spec.default("attachRequired", true);
                    for key in [
                        "podInfoOnMount",
                        "requiresRepublish",
                        "seLinuxMount",
                        "storageCapacity",
                    ] {
                        spec.default(key, false);
                    }
                    spec.default("fsGroupPolicy", "ReadWriteOnceWithFSType");
                    spec.default("volumeLifecycleModes", doc!(["Persistent"]));
                })
            });
        })
    }
}

impl Hooks for Attachments {
    fn prepare_status(&self, new: Doc, old: &Doc) -> Doc {
        put(new, "/metadata", old.at("/metadata"))
    }

    fn status_resets(&self) -> &'static [&'static [&'static str]] {
        &[&["spec"], &["metadata"]]
    }
}

impl Hooks for Claims {
    fn default(&self, claim: Doc) -> Doc {
        default_claim(&claim)
    }

    fn prepare_create(&self, claim: Doc, _env: &Env) -> Doc {
        put(claim, "/status", doc!({ "phase": "Pending" }))
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
