//! Writes about which extensions are asked: the same steps, two of which wait.
//!
//! Nothing is held while an extension is asked: neither the place of the object's queue nor the turn
//! of the address allocator. So a write that comes in between wins, and this one is decided again,
//! extensions included. A Service keeps the addresses it was given before the validators were
//! asked, if they are still free afterwards.

use std::fmt;

use windlass_access::matching::OperationType;
use windlass_core::{Doc, Gvk};
use windlass_store::WriteError;

use super::{Decision, Draft, Part, Proposal, Step, Write, change_of};
use crate::admission::Charged;
use crate::allocate::Turn;
use crate::extension::{self, Attributes, Mutating, Panel, Review};
use crate::rest::ask;
use crate::rest::{fields, object};
use crate::storage::{Decided, Unsettled};
use crate::work;
use windlass_rules::status::Status;

/// How often a write is decided again because another one came first, as for other writes.
const CONFLICT_RETRIES: usize = 5;
/// How often a Service is given other addresses because its own were taken while it was reviewed.
const ADDRESS_ATTEMPTS: usize = 5;

/// A subresource that clients and extensions see as an object of another kind than is stored.
pub(in crate::rest) trait Shown: fmt::Debug + Sync {
    /// The kind that is seen.
    fn kind(&self) -> Gvk;

    /// The stored object as it is seen.
    fn show(&self, object: &Doc) -> Doc;

    /// The stored object with what an extension changed in what it saw.
    fn put_back(&self, object: &Doc, shown: &Doc) -> Doc;
}

impl Write<'_> {
    /// The extensions that have to be asked about this write.
    pub(super) fn panel(&self, object: &Doc) -> Panel {
        let extensions = &self.operation.server.inner().extensions;
        let storage = self.operation.storage();
        let is_asked = self.part.takes(Step::Mutate) && self.operation.request.is_some();
        if !is_asked || extensions.is_idle(storage) {
            return Panel::new();
        }
        extensions.panel(storage, &self.attributes(object))
    }

    fn attributes<'a>(&'a self, object: &Doc) -> Attributes<'a> {
        let (operation, options) = match self.part {
            Part::New => (OperationType::Create, "CreateOptions"),
            _ => (OperationType::Update, "UpdateOptions"),
        };
        let kind = self.shown.map(|shown| shown.kind());
        let attributes = ask::attributes(&self.operation, operation, object);
        Attributes {
            kind: kind.unwrap_or(attributes.kind),
            options: ask::write_options(&self.operation, options),
            dry_run: self.dry_run,
            ..attributes
        }
    }

    /// Decides about a new object, and holds the turn of the allocator until it is stored.
    pub(super) async fn decide_asked<'t>(
        &'t self,
        panel: &Panel,
        propose: &(dyn Fn() -> Result<Proposal, Status> + Sync),
        old: Option<&Doc>,
    ) -> Result<(Decision, Option<Turn<'t>>), Status> {
        for _ in 0..ADDRESS_ATTEMPTS {
            let decision = self.decide_waiting(panel, propose()?, old).await?;
            let turn = self.turn().await;
            let is_free = match (&turn, &decision) {
                (Some(turn), Decision::Put(object)) => turn.assign(object.clone()).is_ok(),
                _ => true,
            };
            if is_free {
                return Ok((decision, turn));
            }
        }
        Err(Status::modified(
            &self.operation.group_resource(),
            self.operation.name,
        ))
    }

    async fn decide_waiting(
        &self,
        panel: &Panel,
        proposal: Proposal,
        old: Option<&Doc>,
    ) -> Result<Decision, Status> {
        let mut draft = Draft::new(proposal, old);
        for step in self.part.steps() {
            draft.object = match step {
                Step::Mutate => self.mutated(panel, &draft).await?,
                Step::AskValidators => {
                    self.ask_validators(panel, &draft).await?;
                    draft.object
                }
                Step::Allocate => {
                    let turn = self.turn().await;
                    self.take(step, &draft, turn.as_ref())?
                }
                step => self.take(step, &draft, None)?,
            };
            work::check()?;
        }
        Ok(self.decision(draft))
    }

    /// The object after the mutating pass.
    async fn mutated(&self, panel: &Panel, draft: &Draft<'_>) -> Result<Doc, Status> {
        let attributes = self.attributes(&draft.object);
        let table = self.operation.server.inner().registry.table();
        let Some(surroundings) = ask::surroundings(&self.operation, &table) else {
            return Ok(draft.object.clone());
        };
        let (show, put_back) = (
            |object: &Doc| match self.shown {
                Some(shown) => shown.show(object),
                None => object.clone(),
            },
            |object: &Doc, seen: &Doc| match self.shown {
                Some(shown) => shown.put_back(object, seen),
                None => seen.clone(),
            },
        );
        let mut mutating = Mutating {
            review: Review {
                attributes: &attributes,
                surroundings,
                object: Some(show(&draft.object)),
                old: draft.old.map(show),
            },
            round: 0,
            reinvoke: false,
        };
        let admit = |seen: Doc| {
            if !self.part.takes(Step::Admit) {
                return Ok(seen);
            }
            let object = put_back(&draft.object, &seen);
            let again = Draft {
                object,
                proposed: draft.proposed.clone(),
                old: draft.old,
                is_attributed: draft.is_attributed,
            };
            self.take(Step::Admit, &again, None).map(|it| show(&it))
        };
        extension::mutate(panel, &mut mutating, &admit).await?;
        let Some(seen) = mutating.review.object else {
            return Ok(draft.object.clone());
        };
        let object = put_back(&draft.object, &seen);
        self.checked(draft, object)
    }

    /// A mutated object whose managed fields can be read and whose namespace is that of the request.
    fn checked(&self, draft: &Draft<'_>, mutated: Doc) -> Result<Doc, Status> {
        let operation = &self.operation;
        if operation.resource.is_namespaced() && mutated.meta().namespace() != operation.namespace {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let pointer = "/metadata/managedFields";
        let (before, after) = (draft.object.at(pointer), mutated.at(pointer));
        if before == after {
            return Ok(mutated);
        }
        let Err(why) = fields::check_readable(after) else {
            return Ok(mutated);
        };
        if let Some(request) = operation.request {
            request.notes.warn(format!(
                ".metadata.managedFields was in an invalid state after admission; this could be \
                 caused by an outdated mutating admission controller; please fix your requests: {why}"
            ));
        }
        Ok(match before.is_null() {
            true => object::cut(mutated, pointer),
            false => object::put(mutated, pointer, before),
        })
    }

    async fn ask_validators(&self, panel: &Panel, draft: &Draft<'_>) -> Result<(), Status> {
        let attributes = self.attributes(&draft.object);
        let table = self.operation.server.inner().registry.table();
        let Some(surroundings) = ask::surroundings(&self.operation, &table) else {
            return Ok(());
        };
        let show = |object: &Doc| match self.shown {
            Some(shown) => shown.show(object),
            None => object.clone(),
        };
        let review = Review {
            attributes: &attributes,
            surroundings,
            object: Some(show(&draft.object)),
            old: draft.old.map(show),
        };
        for extension in panel {
            extension.validate(&review).await?;
        }
        Ok(())
    }

    /// Writes what `propose` makes of the present object, after asking extensions.
    pub(super) async fn change_asked(
        &self,
        panel: &Panel,
        propose: &(dyn Fn(&Doc) -> Result<Proposal, Status> + Sync),
    ) -> Result<Doc, Status> {
        let (resource, key) = (self.operation.resource, self.operation.key());
        let store = self.operation.storage();
        let mut tries_left = CONFLICT_RETRIES;
        let mut seen = store.get(&resource.shelf, &key);
        loop {
            let entry = seen.ok_or_else(|| self.operation.not_found())?;
            let current = resource.view(entry.doc());
            let propose = || propose(&current);
            let (decision, _turn) = self.decide_asked(panel, &propose, Some(&current)).await?;
            let charged = match &decision {
                Decision::Put(object) => self.charge(object, Some(entry.doc())).await?,
                Decision::Remove(_) => Charged::default(),
            };
            if self.dry_run {
                return Ok(match decision {
                    Decision::Put(object) | Decision::Remove(object) => object,
                });
            }
            let decided = Decided::new(Some(&entry), Ok(change_of(resource, decision)));
            let outcome = store.settle_once(decided, (&resource.shelf, &key)).await;
            if let Err(WriteError::Refused(_)) = outcome {
                charged.refund(store).await;
            }
            match outcome {
                Err(WriteError::Refused(Unsettled::Conflict)) if tries_left > 0 => tries_left -= 1,
                outcome => return self.written(outcome),
            }
            seen = store.latest(&resource.shelf, &key);
        }
    }
}
