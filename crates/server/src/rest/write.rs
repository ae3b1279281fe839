//! The order of a write.
//!
//! [`Step`] lists the steps, once. Create, update, patch, apply, scale, binding, eviction, the
//! subresources, delete and the first objects of a cluster are that list with some steps left out:
//! [`Part::left_out`] says which. Nothing else in the server decides an order.
//!
//! Up to [`Step::CheckSize`] a write is decided on the state that everybody sees, outside of the
//! lock of the store. If another write comes first it is decided again, on the newest state, outside
//! as well.

mod asked;
mod store;

use std::sync::Arc;

use windlass_core::Doc;
use windlass_store::{Entry, WriteError};

use super::fields::{self, Author};
use super::operation::Operation;
use super::size::{self, Growth, Measure};
use super::{create, update};
use crate::admission::{self, Charged, Charging};
use crate::allocate::Turn;
use crate::storage::Decided;
use crate::work;
pub(super) use asked::Shown;
use store::change_of;
use windlass_rules::status::Status;

/// How often a new random name is tried when one is taken.
const NAME_ATTEMPTS: usize = 8;

/// A step of a write. The variants stand in the order of the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Reads the proposed state from the body, or makes it from the present state and the body: a
    /// patch, an apply, a scale, a binding.
    Decode,
    /// Fills in what the client left out.
    Default,
    /// Notes in the managed fields who sets what. What the server adds later belongs to nobody.
    NoteAuthor,
    /// Fills in what follows from other objects, or refuses because of them: the built-in plug-ins of
    /// mutating admission.
    Admit,
    /// Asks mutating policies and webhooks. Waits for them.
    Mutate,
    /// Compares the uid and the revision that the client wants with those of the object.
    CheckPreconditions,
    /// Sets what only the server sets, and puts back what this part may not change.
    Prepare,
    /// Writes exactly the empty fields that upstream writes.
    Canonicalize,
    /// Refuses roles and bindings that give more than their author has.
    CheckGrants,
    /// Refuses a state that is not valid, by itself or because of other objects.
    Validate,
    /// Gives a Service its addresses and ports.
    Allocate,
    /// Refuses an object of more than 1.5 MiB.
    CheckSize,
    /// Asks validating policies and webhooks about the state as it would be stored. Waits for them.
    AskValidators,
    /// Charges the quotas of the namespace. What is charged for is refused for no other reason.
    ChargeQuota,
    /// Compares revisions under the lock of the store, and writes.
    Store,
    /// Brings in line what depends on the kind, once for a request: served definitions, flow
    /// control.
    FollowUp,
}

impl Step {
    /// All steps, in their order.
    pub(super) const ORDER: [Self; 16] = [
        Self::Decode,
        Self::Default,
        Self::NoteAuthor,
        Self::Admit,
        Self::Mutate,
        Self::CheckPreconditions,
        Self::Prepare,
        Self::Canonicalize,
        Self::CheckGrants,
        Self::Validate,
        Self::Allocate,
        Self::CheckSize,
        Self::AskValidators,
        Self::ChargeQuota,
        Self::Store,
        Self::FollowUp,
    ];
}

/// The part of an object that a request writes. The rest stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A new object: create, and the update or apply of an object that is not there.
    New,
    /// An object that every cluster has from its first start.
    First,
    /// All but the status: update, patch, apply, scale.
    Main,
    /// The status, and metadata where the kind allows it.
    Status,
    /// The finalizers in the spec of a namespace.
    Finalize,
    /// Everything, for changes that the server makes on behalf of somebody: the node of a bound pod,
    /// the condition of an evicted one.
    Whole,
    /// The values at these pointers.
    Only(&'static [&'static str]),
    /// The values at these pointers, which count against quotas: the resize of a pod.
    Counted(&'static [&'static str]),
    /// The mark of a deletion, or the removal.
    Deletion,
}

impl Part {
    /// The steps that a write of this part leaves out.
    const fn left_out(self) -> &'static [Step] {
        use Step::*;
        match self {
            // An apply and a scale note the author while they merge: see `Proposal::Attributed`.
            Self::New | Self::Main => &[],
            Self::First => &[
                Decode,
                Admit,
                Mutate,
                CheckPreconditions,
                CheckGrants,
                Allocate,
                AskValidators,
                ChargeQuota,
                FollowUp,
            ],
            Self::Status | Self::Only(_) => &[CheckGrants, Allocate, ChargeQuota],
            Self::Counted(_) => &[CheckGrants, Allocate],
            Self::Finalize => &[Admit, CheckGrants, Allocate, ChargeQuota],
            // Extensions are asked about the binding or the eviction.
            Self::Whole => &[
                NoteAuthor,
                Admit,
                Mutate,
                CheckGrants,
                Allocate,
                AskValidators,
                ChargeQuota,
            ],
            // A mark makes an object larger by some hundred bytes. What is too large must not be
            // impossible to delete.
            Self::Deletion => &[
                Default,
                NoteAuthor,
                Canonicalize,
                CheckGrants,
                Allocate,
                CheckSize,
                ChargeQuota,
            ],
        }
    }

    /// The steps of a write of this part, in their order.
    pub(super) fn steps(self) -> impl Iterator<Item = Step> {
        let steps = Step::ORDER.into_iter();
        steps.filter(move |step| self.takes(*step))
    }

    fn takes(self, step: Step) -> bool {
        !self.left_out().contains(&step)
    }

    /// The pointers of a part that has some.
    pub(super) const fn pointers(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Only(pointers) | Self::Counted(pointers) => Some(pointers),
            _ => None,
        }
    }
}

/// A state that somebody proposes for an object.
#[derive(Clone, Debug)]
pub(super) enum Proposal {
    /// The change belongs to the author of the request.
    Change(Doc),
    /// The author of each field is already noted.
    Attributed(Doc),
}

/// A write of one object.
#[derive(Clone, Debug)]
pub(super) struct Write<'a> {
    pub(super) operation: Operation<'a>,
    pub(super) part: Part,
    /// Nothing is stored if true.
    pub(super) dry_run: bool,
    pub(super) author: Author,
    pub(super) measure: Measure,
    /// What extensions see, if it is not the stored object.
    pub(super) shown: Option<&'a dyn Shown>,
}

/// A state on its way to the store.
struct Draft<'a> {
    object: Doc,
    /// The state as it was proposed, whose uid and revision are conditions.
    proposed: Doc,
    /// Absent for a new object.
    old: Option<&'a Doc>,
    is_attributed: bool,
}

/// What becomes of an object.
enum Decision {
    Put(Doc),
    /// The last thing that kept a deleted object is gone. This is what the client sent last.
    Remove(Doc),
}

impl Write<'_> {
    /// Makes a new object, and adds what its author is to be warned of.
    pub(super) async fn create(
        &self,
        proposal: &Proposal,
        warnings: &mut Vec<String>,
    ) -> Result<Doc, Status> {
        let (Proposal::Change(proposed) | Proposal::Attributed(proposed)) = proposal;
        let meta = proposed.meta();
        let is_generated = meta.name().is_empty() && !meta.generate_name().is_empty();
        let attempts = if is_generated { NAME_ATTEMPTS } else { 1 };
        let mut taken = String::new();
        admission::wait(&self.operation.admission(), proposed).await;
        let panel = self.panel(proposed);
        let mut turn = match panel.is_empty() {
            true => self.turn().await,
            false => None,
        };
        for _ in 0..attempts {
            let object = if panel.is_empty() {
                self.decide_new(proposal.clone(), turn.as_ref())?
            } else {
                drop(turn.take());
                let propose = || Ok(proposal.clone());
                let (decision, held) = self.decide_asked(&panel, &propose, None).await?;
                turn = held;
                decision.into_object()
            };
            let charged = self.charge(&object, None).await?;
            let outcome = self.insert(&object).await;
            // After any other error the object may be there.
            if matches!(&outcome, Err(status) if (400..500).contains(&status.code())) {
                charged.refund(self.operation.storage()).await;
            }
            match outcome {
                Err(status) if status.reason() == "AlreadyExists" && is_generated => {
                    object.meta().name().clone_into(&mut taken);
                }
                outcome => {
                    warnings.extend(self.operation.resource.hooks.warnings(&object));
                    warnings.extend(self.without_effect(&object));
                    return outcome;
                }
            }
        }
        let resource = self.operation.group_resource();
        Err(Status::no_free_name(&resource, &taken))
    }

    /// The warning that nothing acts on the object, if that is so.
    fn without_effect(&self, object: &Doc) -> Option<String> {
        let Operation {
            server, resource, ..
        } = self.operation;
        let actor = resource.needs.actor?;
        server.inner().controllers.warning(actor, object)
    }

    /// Writes what `propose` makes of the present object.
    pub(super) async fn change(
        &self,
        propose: impl Fn(&Doc) -> Result<Proposal, Status> + Sync,
    ) -> Result<Doc, Status> {
        let panel = self.panel(&Doc::NULL);
        if !panel.is_empty() {
            return self.change_asked(&panel, &propose).await;
        }
        let (resource, key) = (self.operation.resource, self.operation.key());
        let store = self.operation.storage();
        let turn = self.turn().await;
        let Some(seen) = store.get(&resource.shelf, &key) else {
            return Err(self.operation.not_found());
        };
        let decide = |entry: &Entry| {
            let current = resource.view(entry.doc());
            let proposal = propose(&current)?;
            work::check()?;
            self.decide(proposal, Some(&current), turn.as_ref())
        };
        let decision = decide(&seen)?;
        let charged = match &decision {
            Decision::Put(object) => self.charge(object, Some(seen.doc())).await?,
            Decision::Remove(_) => Charged::default(),
        };
        if self.dry_run {
            return Ok(decision.into_object());
        }
        let first = Decided::new(Some(&seen), Ok(change_of(resource, decision)));
        let again = |current: Option<&Arc<Entry>>| match current {
            Some(current) => Ok(change_of(resource, decide(current)?)),
            None => Err(self.operation.not_found()),
        };
        let object = (&resource.shelf, &key);
        let outcome = store.settle_after(first, object, again).await;
        if let Err(WriteError::Refused(_)) = outcome {
            charged.refund(store).await;
        }
        self.written(outcome)
    }

    /// A new object as it is to be stored.
    pub(super) fn decide_new(
        &self,
        proposal: Proposal,
        turn: Option<&Turn<'_>>,
    ) -> Result<Doc, Status> {
        Ok(self.decide(proposal, None, turn)?.into_object())
    }

    /// What becomes of an object for which somebody proposes another state.
    fn decide(
        &self,
        proposal: Proposal,
        old: Option<&Doc>,
        turn: Option<&Turn<'_>>,
    ) -> Result<Decision, Status> {
        windlass_store::debug_assert_not_deciding("validation");
        let mut draft = Draft::new(proposal, old);
        for step in self.part.steps() {
            draft.object = self.take(step, &draft, turn)?;
            work::check()?;
        }
        Ok(self.decision(draft))
    }

    fn decision(&self, draft: Draft<'_>) -> Decision {
        match self.removes(&draft) {
            true => Decision::Remove(draft.object),
            false => Decision::Put(draft.object),
        }
    }

    /// The object after a step of the decision.
    fn take(&self, step: Step, draft: &Draft<'_>, turn: Option<&Turn<'_>>) -> Result<Doc, Status> {
        let resource = self.operation.resource;
        let object = draft.object.clone();
        match (step, draft.old) {
            (Step::Default, _) => Ok(resource.hooks.default(object)),
            (Step::NoteAuthor, _) if draft.is_attributed => Ok(object),
            (Step::NoteAuthor, None) => Ok(create::attributed(self, &object)),
            (Step::NoteAuthor, Some(old)) => Ok(update::attributed(self, &object, old)),
            (Step::Admit, None) => create::admitted(self, object),
            (Step::Admit, Some(old)) => update::admitted(self, object, old),
            (Step::CheckPreconditions, None) => create::check_preconditions(object),
            (Step::CheckPreconditions, Some(old)) => {
                update::check_preconditions(&self.operation, old, &draft.proposed)?;
                Ok(object)
            }
            (Step::Prepare, None) => Ok(create::prepared(self, &object)),
            (Step::Prepare, Some(old)) => Ok(update::prepared(self, &object, old)),
            (Step::Canonicalize, None) => Ok(resource.canonical(object)),
            (Step::Canonicalize, Some(old)) => {
                Ok(fields::without_new_times(resource.canonical(object), old))
            }
            (Step::CheckGrants, Some(old)) if object == *old => Ok(object),
            (Step::CheckGrants, old) => {
                self.operation.check_grants(&object, old)?;
                Ok(object)
            }
            (Step::Validate, None) => create::validated(self, object),
            (Step::Validate, Some(old)) => update::validated(self, object, old),
            // What is not stored needs no address, and may have any size.
            (Step::Allocate | Step::CheckSize, _) if self.removes(draft) => Ok(object),
            (Step::Allocate, _) => match turn {
                Some(turn) => turn.assign(object),
                None => Ok(object),
            },
            (Step::CheckSize, _) if self.dry_run || self.measure == Measure::Small => Ok(object),
            (Step::CheckSize, _) => size::checked(resource, object, draft.growth()),
            // These come before and after a decision.
            (Step::Decode | Step::ChargeQuota | Step::Store | Step::FollowUp, _) => Ok(object),
            // Nobody has to be asked, or `asked.rs` asks.
            (Step::Mutate | Step::AskValidators, _) => Ok(object),
        }
    }

    /// Returns true if nothing keeps the object any more.
    fn removes(&self, draft: &Draft<'_>) -> bool {
        draft.old.is_some() && update::is_free_to_go(self.operation.resource, &draft.object)
    }

    async fn turn(&self) -> Option<Turn<'_>> {
        match self.part.takes(Step::Allocate) {
            true => self.operation.turn().await,
            false => None,
        }
    }

    /// Charges quotas for what an object has more than before, which is given in its stored form. A
    /// write that is faster than this one may change that; the next count then sets it right.
    async fn charge(&self, object: &Doc, old: Option<&Doc>) -> Result<Charged, Status> {
        let request = self.operation.admission();
        let is_main = matches!(self.part, Part::New | Part::Main);
        let is_due = self.part.takes(Step::ChargeQuota)
            && old.is_none_or(|old| admission::is_charged_for(&request, is_main, object, old));
        match is_due {
            true => {
                let storage = self.operation.storage();
                let request = &request;
                let charging = Charging { storage, request };
                charging.charge(object, old, self.dry_run).await
            }
            false => Ok(Charged::default()),
        }
    }
}

impl Decision {
    /// The object, stored or not.
    fn into_object(self) -> Doc {
        match self {
            Self::Put(object) | Self::Remove(object) => object,
        }
    }
}

impl<'a> Draft<'a> {
    fn new(proposal: Proposal, old: Option<&'a Doc>) -> Self {
        let (proposed, is_attributed) = match proposal {
            Proposal::Change(proposed) => (proposed, false),
            Proposal::Attributed(proposed) => (proposed, true),
        };
        Self {
            object: proposed.clone(),
            proposed,
            old,
            is_attributed,
        }
    }

    fn growth(&self) -> Growth {
        match self.old.is_some() && self.is_attributed {
            true => Growth::Applied,
            false => Growth::Plain,
        }
    }
}

#[cfg(test)]
mod tests;
