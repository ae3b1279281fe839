//! The changes that the garbage collector makes to objects.

use windlass_client::{DynamicApi, Error, Patch, WriteOptions, retry_on_conflict};
use windlass_core::{Doc, doc};

use super::{
    NAME,
    collector::{Collector, Failure, is_missing},
    identity::Identity,
};

const OWNERS: &str = "/metadata/ownerReferences";

impl Collector {
    /// Removes references to owners from an object. It is no error if there are none.
    pub(super) async fn drop_owners(
        &self,
        object: &Identity,
        uids: &[&str],
    ) -> Result<(), Failure> {
        let removals: Vec<Doc> = uids
            .iter()
            .map(|&uid| doc!({ "$patch": "delete", "uid": uid }))
            .collect();
        let kept = |owners: &[Doc]| {
            let is_kept = |owner: &&Doc| !uids.contains(&owner.str_at("/uid"));
            owners.iter().filter(is_kept).cloned().collect()
        };
        self.patch_owners(object, removals, kept).await
    }

    /// Makes all references of an object not block its owners.
    pub(super) async fn unblock_owners(
        &self,
        object: &Identity,
        live: &Doc,
    ) -> Result<(), Failure> {
        let unblocked = |owners: &[Doc]| -> Vec<Doc> {
            let unblock = |owner: &Doc| owner.with("/blockOwnerDeletion", false);
            let owners = owners.iter();
            owners
                .map(|owner| unblock(owner).unwrap_or_else(|_| owner.clone()))
                .collect()
        };
        let changes = unblocked(live.at(OWNERS).items());
        self.patch_owners(object, changes, unblocked).await
    }

    /// Changes the owners of an object: entry by entry where the server can do that, else all of
    /// them, unless the object has changed in the meantime.
    async fn patch_owners(
        &self,
        object: &Identity,
        changes: Vec<Doc>,
        edit: impl Fn(&[Doc]) -> Vec<Doc>,
    ) -> Result<(), Failure> {
        let api = self.api(object)?;
        let (uid, options) = (&*object.uid, WriteOptions::manager(NAME));
        let patch = doc!({ "metadata": { "uid": uid, "ownerReferences": changes } });
        let error = match api
            .patch(&object.name, &Patch::Strategic(patch), &options)
            .await
        {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        if error.status().is_none_or(|status| status.code != 415) {
            return Err(error.into());
        }
        let Some(live) = self.live(object).await? else {
            return Ok(());
        };
        let before = live.at(OWNERS).items();
        let owners = edit(before);
        if *owners == *before {
            return Ok(());
        }
        let version = live.meta().resource_version();
        let patch = doc!({
            "metadata": { "uid": uid, "resourceVersion": version, "ownerReferences": owners }
        });
        api.patch(&object.name, &Patch::Merge(patch), &options)
            .await?;
        Ok(())
    }

    /// Removes a finalizer from an object. It is no error if that, or the object, is not there.
    pub(super) async fn remove_finalizer(
        &self,
        object: &Identity,
        finalizer: &str,
    ) -> Result<(), Failure> {
        let api = self.api(object)?;
        let outcome =
            retry_on_conflict(&self.env, || remove_finalizer_once(&api, object, finalizer));
        match outcome.await {
            Err(error) if !is_missing(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }
}

async fn remove_finalizer_once(
    api: &DynamicApi,
    object: &Identity,
    finalizer: &str,
) -> Result<(), Error> {
    let live = api.get_metadata(&object.name).await?;
    let meta = live.meta();
    if *meta.uid_str() != *object.uid || !meta.has_finalizer(finalizer) {
        return Ok(());
    }
    let kept = meta.finalizers().filter(|found| *found != finalizer);
    let kept: Vec<Doc> = kept.map(Doc::from).collect();
    let patch = doc!({
        "metadata": {
            "uid": &*object.uid,
            "resourceVersion": meta.resource_version(),
            "finalizers": kept,
        }
    });
    let options = WriteOptions::manager(NAME);
    api.patch(&object.name, &Patch::Merge(patch), &options)
        .await?;
    Ok(())
}
