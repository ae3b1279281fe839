//! Admission that users extend: webhooks and policies.
//!
//! The write path asks an [`Extension`] at two of its steps (`rest/write.rs`): at `Mutate`, after
//! defaulting and the built-in mutating plug-ins, and at `AskValidators`, after validation and before
//! quotas are charged. Both may wait; nothing is locked meanwhile. A write that loses against
//! another one is decided again, extensions included.
//!
//! ```text
//! Extensions::panel(request) ─▶ None: today's synchronous path
//!                            └▶ Panel [policies, webhooks] ─▶ mutate (twice if needed), validate
//! ```
//!
//! To attach a new sort of extension (as policies do):
//! 1. keep its configurations compiled in a [`Compiled`], which follows the store by comparing
//!    snapshots and costs a pointer comparison per kind of configuration where there are none;
//! 2. implement [`Extension`] for the compiled set, and [`Mutation`] for one mutating pass of one
//!    request, which keeps what reinvocation needs between the two rounds;
//! 3. add the set to [`Extensions::panel`] in upstream's order: policies before webhooks.
//!
//! Requests are matched with [`windlass_access::matching`], on
//! [`Attributes::targets`]. [`Versioned`] converts the objects to the version that a rule names, and
//! back.

mod compiled;
mod notes;
mod policy;
mod versioned;
mod webhook;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use windlass_access::User;
use windlass_access::matching::{MatchTarget, OperationType, SelectedObjects};
use windlass_core::{Doc, Env, Gvk};
use windlass_rules::status::Status;
use windlass_schema::custom;

pub(crate) use compiled::Compiled;
pub(crate) use notes::RequestNotes;
pub(crate) use versioned::Versioned;

use crate::callout::Callouts;
use crate::metrics::Metrics;
use crate::registry::{Resource, Table};
use crate::storage::Storage;
use policy::Policies;
use webhook::Webhooks;

/// A question to an extension, which may take its time.
pub(crate) type Asked<'a, T> = Pin<Box<dyn Future<Output = Result<T, Status>> + Send + 'a>>;

/// A set of configured webhooks or policies, compiled.
pub(crate) trait Extension: fmt::Debug + Send + Sync {
    /// Returns true if anything in the set may match the resource and the operation of a request.
    /// Neither objects nor namespaces are looked at.
    fn concerns(&self, request: &Attributes<'_>) -> bool;

    /// The mutating pass over one request.
    fn mutation(self: Arc<Self>) -> Box<dyn Mutation>;

    /// Refuses a valid object, or a deletion.
    fn validate<'a>(&'a self, review: &'a Review<'a>) -> Asked<'a, ()>;
}

/// The mutating pass of one extension over one request: one round, or two.
pub(crate) trait Mutation: Send {
    /// Changes `draft.object`, or refuses. Sets [`Mutating::reinvoke`] if it changed something, so
    /// that there is a second round.
    fn run<'a>(&'a mut self, draft: &'a mut Mutating<'_>) -> Asked<'a, ()>;
}

/// A request as extensions see it.
#[derive(Clone, Debug)]
pub(crate) struct Attributes<'a> {
    pub(crate) operation: OperationType,
    /// The row of the request: its group, version and resource.
    pub(crate) resource: &'a Arc<Resource>,
    /// The kind of the object: that of the row, or of its subresource, such as `Scale`.
    pub(crate) kind: Gvk,
    /// Empty for the object itself.
    pub(crate) subresource: &'a str,
    /// Empty while it is to be generated.
    pub(crate) name: String,
    /// For a Namespace its own name; empty at cluster scope.
    pub(crate) namespace: String,
    pub(crate) user: &'a User,
    pub(crate) dry_run: bool,
    /// `CreateOptions`, `UpdateOptions` or `DeleteOptions`; null for a connection.
    pub(crate) options: Doc,
}

/// The rest of the server, as extensions see it.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) storage: &'a Storage,
    pub(crate) table: &'a Table,
    pub(crate) env: &'a Env,
    pub(crate) metrics: &'a Metrics,
    pub(crate) callouts: &'a Callouts,
    /// The deadline of the request, and what its answer and the audit log are told.
    pub(crate) notes: &'a RequestNotes,
    /// Reads a changed object as its kind: wrong types are refused, unknown fields dropped.
    pub(crate) fit: Fit,
}

/// Reads an object as its kind.
pub(crate) type Fit = fn(&Doc, &Gvk, Option<&custom::Version>) -> Result<Doc, String>;

/// One object under review.
#[derive(Clone)]
pub(crate) struct Review<'a> {
    pub(crate) attributes: &'a Attributes<'a>,
    pub(crate) surroundings: Surroundings<'a>,
    /// The new state, in the version of the request; absent for a DELETE.
    pub(crate) object: Option<Doc>,
    /// The old state; absent for a CREATE and a CONNECT.
    pub(crate) old: Option<Doc>,
}

/// One object in the mutating pass.
pub(crate) struct Mutating<'a> {
    /// The object as it was changed so far, and everything about it.
    pub(crate) review: Review<'a>,
    /// Zero, and one when it is run again.
    pub(crate) round: usize,
    /// Set by whoever changed the object.
    pub(crate) reinvoke: bool,
}

/// The extensions that a request concerns, in their order.
pub(crate) type Panel = Vec<Arc<dyn Extension>>;

/// All extensions of a server.
#[derive(Debug)]
pub(crate) struct Extensions {
    policies: Compiled<Policies, 4>,
    webhooks: Compiled<Webhooks, 2>,
}

impl Default for Extensions {
    fn default() -> Self {
        Self {
            policies: policy::compiled(),
            webhooks: webhook::compiled(),
        }
    }
}

impl Extensions {
    /// Returns true if nothing is configured: the check that every write pays for.
    pub(crate) fn is_idle(&self, storage: &Storage) -> bool {
        self.policies.current(storage).is_none() && self.webhooks.current(storage).is_none()
    }

    /// The extensions that have to be asked about a request; empty if there are none.
    pub(crate) fn panel(&self, storage: &Storage, request: &Attributes<'_>) -> Panel {
        let policies = self.policies.current(storage);
        let policies = policies.map(|it| it as Arc<dyn Extension>);
        let webhooks = self.webhooks.current(storage);
        let webhooks = webhooks.map(|it| it as Arc<dyn Extension>);
        let all = [policies, webhooks].into_iter().flatten();
        all.filter(|extension| extension.concerns(request))
            .collect()
    }
}

impl<'a> Attributes<'a> {
    /// The request as rules see it: first as it is, then for each other version of its resource.
    pub(crate) fn targets<'t>(&'t self, rows: &'t [Arc<Resource>]) -> Vec<MatchTarget<'t>> {
        let others = rows.iter().map(|row| self.target(row));
        std::iter::once(self.target(self.resource))
            .chain(others)
            .collect()
    }

    /// The request as rules see it.
    pub(crate) fn target<'t>(&'t self, row: &'t Resource) -> MatchTarget<'t> {
        MatchTarget {
            operation: self.operation,
            group: row.gvk.group(),
            version: row.gvk.version(),
            resource: &row.plural,
            subresource: self.subresource,
            name: &self.name,
            is_namespaced: !self.namespace.is_empty() && !row.needs.is_namespace,
        }
    }
}

impl Review<'_> {
    /// The objects as selectors see them.
    pub(crate) fn selected(&self) -> SelectedObjects<'_> {
        SelectedObjects {
            resource: self.attributes.resource,
            operation: self.attributes.operation,
            subresource: self.attributes.subresource,
            namespace: &self.attributes.namespace,
            object: self.object.as_ref(),
            old: self.old.as_ref(),
            reader: self.surroundings.storage,
        }
    }
}

/// The other rows that serve the same objects: other versions, or the same kind in another group.
pub(crate) fn equivalents(table: &Table, row: &Resource) -> Vec<Arc<Resource>> {
    let versions = table.groups().iter().flat_map(|group| &group.versions);
    let rows = versions.filter_map(|version| version.resources.get(&*row.plural));
    rows.filter(|other| other.shelf == row.shelf && other.gvk != row.gvk)
        .cloned()
        .collect()
}

/// Runs the mutating pass: once, and again if something was changed. `admit` runs the built-in
/// plug-ins again before the second round. The changed object stands in the draft afterwards.
pub(crate) async fn mutate(
    panel: &Panel,
    draft: &mut Mutating<'_>,
    admit: &(dyn Fn(Doc) -> Result<Doc, Status> + Sync),
) -> Result<(), Status> {
    let mut passes: Vec<Box<dyn Mutation>> = panel
        .iter()
        .map(|extension| Arc::clone(extension).mutation())
        .collect();
    for pass in &mut passes {
        pass.run(draft).await?;
    }
    if !draft.reinvoke {
        return Ok(());
    }
    draft.round = 1;
    if let Some(object) = draft.review.object.take() {
        draft.review.object = Some(admit(object)?);
    }
    for pass in &mut passes {
        pass.run(draft).await?;
    }
    Ok(())
}
