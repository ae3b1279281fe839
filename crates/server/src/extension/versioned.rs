//! An object under review in the version that a rule names.

use std::sync::Arc;

use windlass_atlas::Atlas;
use windlass_core::{Doc, Gvk};
use windlass_rules::status::Status;

use super::{Attributes, Mutating, Review, Surroundings};
use crate::registry::Resource;

/// The objects of a review in one version of their resource.
#[derive(Clone, Debug)]
pub(crate) struct Versioned {
    /// The row of that version.
    pub(crate) row: Arc<Resource>,
    /// The kind of the objects there.
    pub(crate) kind: Gvk,
    /// Absent for a DELETE.
    pub(crate) object: Option<Doc>,
    /// Absent for a CREATE and a CONNECT.
    pub(crate) old: Option<Doc>,
}

impl Versioned {
    /// The objects of a review in the version of a row.
    pub(crate) async fn of(review: &Review<'_>, row: &Arc<Resource>) -> Result<Self, Status> {
        let attributes = review.attributes;
        let (from, kind) = (attributes.resource, kind_in(attributes, row));
        let convert = async |object: &Option<Doc>| match object {
            Some(object) if kind != attributes.kind => {
                convert(&review.surroundings, object, from, row)
                    .await
                    .map(Some)
            }
            object => Ok(object.clone()),
        };
        let object = convert(&review.object)
            .await?
            .map(|it| canonical(&kind, it));
        let old = convert(&review.old).await?.map(|it| canonical(&kind, it));
        Ok(Self {
            row: Arc::clone(row),
            kind,
            object,
            old,
        })
    }

    /// Puts a changed object into a draft: it is read as its kind, defaulted, and converted to the
    /// version of the request. Gives true if it differs from the one before.
    pub(crate) async fn put(
        &self,
        changed: &Doc,
        draft: &mut Mutating<'_>,
    ) -> Result<bool, Status> {
        let review = &mut draft.review;
        let attributes = review.attributes;
        let custom = self.row.custom_schema(&self.kind);
        let fitting = (review.surroundings.fit)(changed, &self.kind, custom);
        let fitting = fitting.map_err(Status::internal)?;
        let is_changed = self.object.as_ref() != Some(&canonical(&self.kind, fitting.clone()));
        let defaulted = match self.kind == self.row.gvk {
            true => self.row.hooks.default(fitting),
            false => fitting,
        };
        let object = match self.kind == attributes.kind {
            true => defaulted,
            false => {
                let to = attributes.resource;
                convert(&review.surroundings, &defaulted, &self.row, to).await?
            }
        };
        review.object = Some(object);
        Ok(is_changed)
    }
}

/// The kind of the objects of a request in another row.
fn kind_in(attributes: &Attributes<'_>, row: &Resource) -> Gvk {
    match row.subresource(attributes.subresource) {
        // Part of the main object, or a kind of its own.
        Some(sub) => sub.gvk.clone(),
        None if attributes.subresource.is_empty() => row.gvk.clone(),
        None => attributes.kind.clone(),
    }
}

/// An object with exactly the empty fields that upstream sends: patches lean on them.
fn canonical(kind: &Gvk, object: Doc) -> Doc {
    match Atlas::kind(kind) {
        Some(kind) => windlass_atlas::canonical(kind, &object),
        None => object,
    }
}

/// An object in the version of another row of the same resource.
async fn convert(
    surroundings: &Surroundings<'_>,
    object: &Doc,
    from: &Resource,
    to: &Resource,
) -> Result<Doc, Status> {
    let _ = surroundings;
    Ok(to.view(&from.to_storage(object)))
}
