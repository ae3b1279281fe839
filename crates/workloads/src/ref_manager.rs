//! Which objects belong to an owner: claim, adopt, release.

use std::fmt;

use tokio::sync::OnceCell;
use windlass_cache::Obj;
use windlass_client::{DynamicApi, Patch, WriteOptions};
use windlass_core::{Doc, Object, OwnerRef, Selector, Str, Uid, doc};

use windlass_runtime::{Context, ResourceKind};

/// Decides for objects whether they belong to one owner, and makes it so on the server.
///
/// An object whose managing owner is ours and whose labels match is claimed; if they no longer
/// match it is released. An orphan whose labels match is adopted, after the server itself, not the
/// cache, has said that the owner still exists. One manager serves one reconcile: that question is
/// asked once.
pub struct RefManager<'a> {
    cx: &'a Context,
    owner: &'a Doc,
    owner_kind: &'a ResourceKind,
    child_kind: &'a ResourceKind,
    selector: &'a Selector,
    /// Finalizers that come and go with the ownership.
    finalizers: Vec<String>,
    /// A further demand on objects beside the selector.
    member: Option<fn(owner: &Doc, object: &Doc) -> bool>,
    /// Whether the owner may adopt, once somebody has asked.
    may_adopt: OnceCell<Result<(), String>>,
}

/// What came of the claims.
#[derive(Debug)]
#[must_use]
pub struct Claimed<K> {
    /// The objects that belong to the owner, in the order in which they came.
    pub objects: Vec<Obj<K>>,
    /// What went wrong with others.
    pub errors: Vec<ClaimError>,
}

/// An object could not be adopted or released.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// The owner is gone, or about to go.
    #[error("can't adopt {kind} {key} ({uid}): {reason}")]
    CannotAdopt {
        /// The kind of the object.
        kind: String,
        /// The object.
        key: String,
        /// The UID of the object.
        uid: Uid,
        /// Why not.
        reason: String,
    },
    /// The server did not do it.
    #[error(transparent)]
    Request(#[from] windlass_client::Error),
}

/// What is to be done about one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Claim,
    Adopt,
    Release,
    Ignore,
}

impl<'a> RefManager<'a> {
    /// Claims objects of a kind for an owner.
    #[must_use]
    pub fn new(
        cx: &'a Context,
        owner: &'a Doc,
        owner_kind: &'a ResourceKind,
        child_kind: &'a ResourceKind,
        selector: &'a Selector,
    ) -> Self {
        let (finalizers, may_adopt) = (Vec::new(), OnceCell::new());
        Self {
            cx,
            owner,
            owner_kind,
            child_kind,
            selector,
            finalizers,
            member: None,
            may_adopt,
        }
    }

    /// Demands more of an object than matching labels. One that fails is released, not adopted.
    #[must_use]
    pub fn members(mut self, is_member: fn(owner: &Doc, object: &Doc) -> bool) -> Self {
        self.member = Some(is_member);
        self
    }

    /// Puts finalizers on objects that are adopted, and removes them on release.
    #[must_use]
    pub fn finalizers(mut self, finalizers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.finalizers = finalizers.into_iter().map(Into::into).collect();
        self
    }

    /// Claims what belongs to the owner. What goes wrong with one object does not keep the others
    /// from being claimed.
    pub async fn claim<K>(&self, objects: impl IntoIterator<Item = Obj<K>>) -> Claimed<K> {
        let mut claimed = Claimed {
            objects: Vec::new(),
            errors: Vec::new(),
        };
        for object in objects {
            match self.claim_one(object.doc()).await {
                Ok(true) => claimed.objects.push(object),
                Ok(false) => {}
                Err(error) => claimed.errors.push(error),
            }
        }
        claimed
    }

    async fn claim_one(&self, object: &Doc) -> Result<bool, ClaimError> {
        match self.verdict(object) {
            Verdict::Claim => Ok(true),
            Verdict::Ignore => Ok(false),
            Verdict::Adopt => self.adopt(object).await,
            Verdict::Release => self.release(object).await.map(|()| false),
        }
    }

    fn verdict(&self, object: &Doc) -> Verdict {
        let (meta, owner) = (object.meta(), self.owner.meta());
        let is_member = self.member.is_none_or(|it| it(self.owner, object));
        let is_match = is_member && self.selector.matches(&meta.labels());
        if let Some(controller) = meta.controller() {
            return match (controller.uid == owner.uid(), is_match, owner.is_deleting()) {
                (false, _, _) | (true, false, true) => Verdict::Ignore,
                (true, true, _) => Verdict::Claim,
                (true, false, false) => Verdict::Release,
            };
        }
        let is_elsewhere = !owner.namespace().is_empty() && owner.namespace() != meta.namespace();
        if owner.is_deleting() || !is_match || meta.is_deleting() || is_elsewhere {
            return Verdict::Ignore;
        }
        Verdict::Adopt
    }

    /// Makes the owner the one that manages the object. An object that is gone is not adopted.
    async fn adopt(&self, object: &Doc) -> Result<bool, ClaimError> {
        if let Err(reason) = self.may_adopt().await {
            let (kind, key) = (
                self.child_kind.gvk().kind().to_owned(),
                object.meta().key().to_string(),
            );
            let (uid, reason) = (object.meta().uid(), reason.clone());
            return Err(ClaimError::CannotAdopt {
                kind,
                key,
                uid,
                reason,
            });
        }
        let patch = adopt_patch(object, self.owner, self.owner_kind, &self.finalizers);
        match self.patch(object, patch).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the object up. One that is gone, or belongs to somebody else by now, is given up.
    async fn release(&self, object: &Doc) -> Result<(), ClaimError> {
        let patch = release_patch(object, self.owner, &self.finalizers);
        match self.patch(object, patch).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() || error.is_invalid() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn patch(&self, object: &Doc, patch: Doc) -> Result<Doc, windlass_client::Error> {
        let api = self.cx.api(self.child_kind, object.meta().namespace());
        api.patch(
            object.meta().name(),
            &Patch::Strategic(patch),
            &WriteOptions::default(),
        )
        .await
    }

    /// Asks the server, once, whether the owner is still the one that we know.
    async fn may_adopt(&self) -> &Result<(), String> {
        let ask = || async {
            let (meta, api) = (self.owner.meta(), self.owner_api());
            let live = api
                .get(meta.name())
                .await
                .map_err(|error| error.to_string())?;
            let key = meta.key();
            if live.meta().uid() != meta.uid() {
                return Err(format!(
                    "original {} {key} is gone: got uid {}, wanted {}",
                    self.owner_kind.gvk().kind(),
                    live.meta().uid(),
                    meta.uid()
                ));
            }
            match live.meta().deletion_timestamp() {
                Some(time) => Err(format!("{key} has just been deleted at {time}")),
                None => Ok(()),
            }
        };
        self.may_adopt.get_or_init(ask).await
    }

    fn owner_api(&self) -> DynamicApi {
        self.cx.api(self.owner_kind, self.owner.meta().namespace())
    }
}

/// The UID of the object in a patch makes it fail if the name belongs to another one by now.
fn adopt_patch(object: &Doc, owner: &Doc, kind: &ResourceKind, finalizers: &[String]) -> Doc {
    let reference = Doc::from(&OwnerRef::controller_of(owner, kind.gvk()));
    let mut fields = vec![
        (Str::new("uid"), Doc::from(object.meta().uid_str())),
        (Str::new("ownerReferences"), Doc::from(vec![reference])),
    ];
    if !finalizers.is_empty() {
        fields.push((Str::new("finalizers"), list(finalizers)));
    }
    doc!({ "metadata": Object::new(fields) })
}

fn release_patch(object: &Doc, owner: &Doc, finalizers: &[String]) -> Doc {
    let removal = doc!({ "$patch": "delete", "uid": owner.meta().uid_str() });
    let mut fields = vec![
        (Str::new("uid"), Doc::from(object.meta().uid_str())),
        (Str::new("ownerReferences"), Doc::from(vec![removal])),
    ];
    if !finalizers.is_empty() {
        fields.push((
            Str::new("$deleteFromPrimitiveList/finalizers"),
            list(finalizers),
        ));
    }
    doc!({ "metadata": Object::new(fields) })
}

fn list(texts: &[String]) -> Doc {
    texts.iter().map(Doc::from).collect::<Vec<_>>().into()
}

impl fmt::Debug for RefManager<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefManager")
            .field("owner", &self.owner.meta().key())
            .field("selector", &self.selector.to_string())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::GroupVersion;

    use super::*;

    #[test]
    fn patches_name_the_object_and_the_owner_by_uid() {
        let object = doc!({ "metadata": { "name": "pod", "uid": "pod-uid" } });
        let owner = doc!({ "metadata": { "name": "set", "uid": "owner-uid" } });
        let kind = ResourceKind::namespaced(
            GroupVersion::constant("apps", "v1"),
            "ReplicaSet",
            "replicasets",
        );
        let release = release_patch(&object, &owner, &[]);
        let expected = doc!({
            "metadata": {
                "uid": "pod-uid",
                "ownerReferences": [{ "$patch": "delete", "uid": "owner-uid" }]
            }
        });
        assert_eq!(release, expected);
        let finalizers = ["x/y".to_owned()];
        let release = release_patch(&object, &owner, &finalizers);
        assert_eq!(
            release.at("/metadata/$deleteFromPrimitiveList~1finalizers"),
            &doc!(["x/y"])
        );
        let adopt = adopt_patch(&object, &owner, &kind, &finalizers);
        assert_eq!(adopt.at("/metadata/finalizers"), &doc!(["x/y"]));
        assert_eq!(
            adopt.at("/metadata/ownerReferences/0/controller").as_bool(),
            Some(true)
        );
        assert_eq!(
            adopt
                .at("/metadata/ownerReferences/0/blockOwnerDeletion")
                .as_bool(),
            Some(true)
        );
        assert_eq!(adopt.str_at("/metadata/uid"), "pod-uid");
    }
}
