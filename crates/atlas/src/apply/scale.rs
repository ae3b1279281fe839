//! The managed fields of `replicas`, as the scale subresource shows them and as its parent keeps
//! them.

use windlass_core::Doc;

use super::entries::{self, Loss, ManagedFieldsError, Managers, Operation, Owned};
use super::set::FieldSet;

/// The `apiVersion` of scales.
const SCALE: &str = "autoscaling/v1";
const REPLICAS: &[&str] = &["spec", "replicas"];

/// The paths of the number of replicas in the versions of a kind.
#[derive(Clone, Copy, Debug)]
pub struct ScalePaths<'a> {
    /// The `apiVersion` of the request.
    pub api_version: &'a str,
    /// Each `apiVersion` of the kind, with the fields that lead to its replicas.
    pub replicas: &'a [(&'a str, &'a [&'a str])],
}

impl ScalePaths<'_> {
    fn replicas(&self, api_version: &str) -> Option<FieldSet> {
        let of_version = |(version, _): &&(&str, &[&str])| *version == api_version;
        let (_, path) = self.replicas.iter().find(of_version)?;
        Some(FieldSet::of_fields(&[path]))
    }
}

/// The `managedFields` of the scale of an object: those managers that set the replicas.
pub fn scale_entries(
    parent: &[Doc],
    paths: &ScalePaths<'_>,
) -> Result<Vec<Doc>, ManagedFieldsError> {
    let mut managers = Managers::new();
    for (mut manager, owned) in entries::decode(parent)? {
        let Some(replicas) = paths.replicas(&owned.api_version) else {
            continue;
        };
        if owned.set().intersection(&replicas).is_empty() {
            continue;
        }
        if manager.operation == Operation::Update {
            SCALE.clone_into(&mut manager.api_version);
        }
        let set = FieldSet::of_fields(&[REPLICAS]);
        managers.insert(manager, Owned::new(set, SCALE, owned.time));
    }
    Ok(entries::encode(&managers))
}

/// The `managedFields` of an object whose scale was written: what its scale's managers have taken
/// is no longer owned by others.
pub fn parent_entries(
    parent: &[Doc],
    scale: &[Doc],
    paths: &ScalePaths<'_>,
) -> Result<Vec<Doc>, ManagedFieldsError> {
    let mut from_scale = entries::decode(scale)?;
    let mut managers = Managers::new();
    for (manager, mut owned) in entries::decode(parent)? {
        let Some(replicas) = paths.replicas(&owned.api_version) else {
            continue;
        };
        let has_replicas = !owned.set().intersection(&replicas).is_empty();
        // Updaters of the scale are told apart from those of the parent by their version.
        if has_replicas && from_scale.remove(&manager).is_none() {
            owned.lose(&Loss::of(&replicas));
        }
        if !owned.is_empty() {
            managers.insert(manager, owned);
        }
    }
    let Some(replicas) = paths.replicas(paths.api_version) else {
        return Ok(entries::encode(&managers));
    };
    for (manager, owned) in from_scale {
        if owned
            .set()
            .intersection(&FieldSet::of_fields(&[REPLICAS]))
            .is_empty()
        {
            continue;
        }
        // Upstream keeps no time of what came through a scale, and an updater of the scale apart
        // from the one of the same name who has set other fields.
        let owned = Owned::new(replicas.clone(), paths.api_version, None);
        managers.insert(manager, owned);
    }
    Ok(entries::encode(&managers))
}
