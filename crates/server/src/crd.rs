//! CustomResourceDefinitions: kinds that appear while the server runs.
//!
//! A definition is an object like any other, validated by `windlass_schema`. After every write to one
//! [`sync`] brings the registry in line before the request is answered: each served version
//! becomes a row, and only then is the definition called established. A row holds its schema
//! compiled once; writes to its objects prune, default and validate by it, and evaluate its rules.
//!
//! ```text
//! definition ─▶ sync ─▶ rows ─▶ registry
//!                         └▶ Version { schema } ◀── hooks of every write: prune, settle, validate, rules
//! ```
//!
//! A definition that is deleted stays until its last object is gone. Deliberately absent:
//! conversion webhooks; with the strategy `Webhook` versions are served as if it were `None`.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::task::JoinSet;
use windlass_core::{Doc, GroupResource, Key};
use windlass_store::{Change, Entry, Resource as Shelf};

use crate::bootstrap;
use crate::definitions::{Definition, Served};
use crate::object_size::put_checked;
use crate::registry::Resource;
use crate::rest;
use crate::server::Server;
use crate::storage;
use windlass_rules::edit::put;
use windlass_rules::status::Status;
use windlass_schema::definition::{self, CLEANUP, GROUP, RESOURCE, with_condition};
use windlass_schema::rows;

/// Objects of a deleted definition that are deleted at the same time.
const DELETES_AT_ONCE: usize = 64;

/// Brings everything in line after a write, even if the client goes away meanwhile.
pub(crate) async fn follow_up(server: Server, is_last_chance: bool) {
    let work = tokio::spawn(async move { sync(&server, is_last_chance).await });
    match work.await {
        Ok(Ok(())) => {}
        Ok(Err(status)) => {
            tracing::warn!(%status, "custom resources are not in line with their definitions")
        }
        Err(error) => tracing::error!(%error, "bringing custom resources in line failed"),
    }
}

/// Serves what the store already holds definitions of.
pub(crate) async fn load(server: &Server) -> Result<(), Status> {
    let inner = server.inner();
    let mut served = inner.definitions.0.lock().await;
    let revision = inner.storage.revision();
    for crd in definitions(server) {
        if definition::is_true(&crd, "Established") {
            served.insert(
                crd.meta().name().to_owned(),
                serve(&crd, crd.at("/status/acceptedNames"), None, revision),
            );
        }
    }
    publish(server, &served);
    drop(served);
    sync(server, true).await
}

/// Ends the evaluation of rules for which nobody waits. Rules never run while the store decides.
fn is_cancelled() -> bool {
    windlass_store::debug_assert_not_deciding("an expression");
    crate::work::is_cancelled()
}

/// The definitions in the order they came, which decides who gets a name that two want.
fn definitions(server: &Server) -> Vec<Doc> {
    let snapshot = server.inner().storage.snapshot_of(GROUP, RESOURCE);
    let mut all: Vec<Doc> = snapshot.iter().map(|entry| entry.doc().clone()).collect();
    let order = |crd: &Doc| {
        (
            crd.meta().creation_timestamp(),
            crd.meta().name().to_owned(),
            crd.meta().uid_str().to_owned(),
        )
    };
    all.sort_by_key(order);
    all
}

/// Brings rows, conditions and deletions in line with the definitions.
async fn sync(server: &Server, with_deletions: bool) -> Result<(), Status> {
    let inner = server.inner();
    let mut served = inner.definitions.0.lock().await;
    // Accepting one definition, or its end, may free or take the names of another.
    loop {
        let all = definitions(server);
        let gone: Vec<String> = served
            .iter()
            .filter(|(name, known)| {
                !all.iter()
                    .any(|crd| crd.meta().name() == **name && crd.meta().uid() == known.uid)
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in &gone {
            served.remove(name);
        }
        if !gone.is_empty() {
            publish(server, &served);
        }
        let mut is_settled = true;
        for crd in &all {
            is_settled &= sync_one(server, &mut served, crd, &all, with_deletions).await?;
        }
        if is_settled {
            return bootstrap::register(server).await;
        }
    }
}

/// Brings one definition in line. Gives whether nothing had to be written.
async fn sync_one(
    server: &Server,
    served: &mut Served,
    crd: &Doc,
    all: &[Doc],
    with_deletions: bool,
) -> Result<bool, Status> {
    let meta = crd.meta();
    let known = served.get(meta.name());
    let is_known = known.is_some_and(|known| known.revision == meta.resource_version());
    if is_known && !(with_deletions && meta.is_deleting()) {
        return Ok(true);
    }
    let named = accept_names(crd, all, now(server));
    let is_accepted =
        definition::is_true(&named, "NamesAccepted") || definition::is_true(crd, "Established");
    if !is_accepted {
        return write_status(server, crd, &definition::noted(named, now(server))).await;
    }
    if known.is_none() && !definition::is_true(crd, "Established") {
        drop_leftovers(server, crd).await?;
    }
    let revision = server.inner().storage.revision();
    let definition = serve(
        crd,
        named.at("/status/acceptedNames"),
        served.get(meta.name()),
        revision,
    );
    let is_new = served
        .get(meta.name())
        .is_none_or(|known| !same_rows(known, &definition));
    served.insert(meta.name().to_owned(), definition);
    if is_new {
        publish(server, served);
    }
    let established = definition::noted(establish(&named, now(server)), now(server));
    if meta.is_deleting() {
        return finish_deletion(server, served, crd).await;
    }
    write_status(server, crd, &established).await
}

fn now(server: &Server) -> Doc {
    server.inner().env.now().to_string().into()
}

fn same_rows(a: &Definition, b: &Definition) -> bool {
    a.rows.len() == b.rows.len() && a.rows.iter().zip(&b.rows).all(|(a, b)| Arc::ptr_eq(a, b))
}

/// The rows of a definition; those that stay the same are taken over.
fn serve(crd: &Doc, accepted: &Doc, known: Option<&Definition>, revision: u64) -> Definition {
    let spec = crd.at("/spec").clone();
    let is_terminating = crd.meta().is_deleting();
    let uid = crd.meta().uid();
    let same = known.filter(|known| {
        known.uid == uid && known.spec == spec && known.is_terminating == is_terminating
    });
    let since = |version: &str, schema: &Doc| {
        let rows = known.into_iter().flat_map(|known| &known.rows);
        let mut versions = rows.filter_map(|row| Some((row.gvk.version(), row.custom.as_ref()?)));
        let old = versions.find(|(name, custom)| *name == version && custom.source == *schema);
        old.map_or(revision, |(_, custom)| custom.since)
    };
    Definition {
        rows: match same {
            Some(known) => known.rows.clone(),
            None => rows::rows(crd, accepted, since, is_cancelled),
        },
        uid,
        revision: crd.meta().resource_version().to_owned(),
        spec,
        is_terminating,
    }
}

fn publish(server: &Server, served: &Served) {
    let rows: Vec<Arc<Resource>> = served
        .values()
        .flat_map(|known| known.rows.iter().cloned())
        .collect();
    server.inner().registry.set_custom(&rows);
}

/// The definition with the names it gets and whether it gets all it wants.
fn accept_names(crd: &Doc, all: &[Doc], now: Doc) -> Doc {
    let group = crd.at("/spec/group");
    let others = || {
        all.iter().filter(|other| {
            other.meta().uid() != crd.meta().uid() && other.at("/spec/group") == group
        })
    };
    let mut resources: BTreeSet<String> = BTreeSet::new();
    let mut kinds: BTreeSet<String> = BTreeSet::new();
    for other in others() {
        let names = other.at("/status/acceptedNames");
        let short = names
            .at("/shortNames")
            .items()
            .iter()
            .filter_map(Doc::as_str);
        resources.extend(
            [names.str_at("/plural"), names.str_at("/singular")]
                .into_iter()
                .chain(short)
                .map(str::to_owned),
        );
        kinds.extend([names.str_at("/kind"), names.str_at("/listKind")].map(str::to_owned));
    }
    let wanted = crd.at("/spec/names");
    let had = crd.at("/status/acceptedNames");
    let mut accepted = had
        .as_object()
        .cloned()
        .unwrap_or_else(windlass_core::Object::empty);
    let mut conflict: Option<(&str, String)> = None;
    let in_use = |name: &str| format!("{name:?} is already in use");
    for (key, taken, reason) in [
        ("plural", &resources, "PluralConflict"),
        ("singular", &resources, "SingularConflict"),
        ("shortNames", &resources, "ShortNamesConflict"),
        ("kind", &kinds, "KindConflict"),
        ("listKind", &kinds, "ListKindConflict"),
    ] {
        let value = wanted.get(key).cloned().unwrap_or_default();
        let mut names = value
            .items()
            .iter()
            .chain(value.as_str().map(|_| &value))
            .filter_map(Doc::as_str);
        let had_names = had.get(key).cloned().unwrap_or_default();
        let is_had =
            |name: &str| had_names == name || had_names.items().iter().any(|known| *known == name);
        match names.find(|name| !is_had(name) && taken.contains(*name)) {
            Some(name) => conflict = Some((reason, in_use(name))),
            None if value.is_null() => accepted = accepted.without(key),
            None => accepted = accepted.with(key, value),
        }
    }
    accepted = match wanted.get("categories") {
        Some(categories) => accepted.with("categories", categories.clone()),
        None => accepted.without("categories"),
    };
    let named = put(crd.clone(), "/status/acceptedNames", Doc::from(accepted));
    match conflict {
        None => with_condition(
            named,
            "NamesAccepted",
            "True",
            "NoConflicts",
            "no conflicts found",
            now,
        ),
        Some((reason, message)) => {
            let named = with_condition(
                named,
                "NamesAccepted",
                "False",
                reason,
                &message,
                now.clone(),
            );
            if definition::is_true(crd, "Established") {
                return named;
            }
            with_condition(
                named,
                "Established",
                "False",
                "NotAccepted",
                "not all names are accepted",
                now,
            )
        }
    }
}

fn establish(crd: &Doc, now: Doc) -> Doc {
    let message = "the initial names have been accepted";
    with_condition(
        crd.clone(),
        "Established",
        "True",
        "InitialNamesAccepted",
        message,
        now,
    )
}

/// Writes the status of a definition. Gives whether there was nothing to write.
async fn write_status(server: &Server, crd: &Doc, wanted: &Doc) -> Result<bool, Status> {
    if wanted.at("/status") == crd.at("/status") {
        return Ok(true);
    }
    let uid = crd.meta().uid();
    let mut is_too_large = false;
    let decide = |current: Option<&Arc<Entry>>| -> Result<Change, Status> {
        match current.filter(|entry| entry.doc().meta().uid() == uid) {
            // What was stored meanwhile is looked at in the next round.
            Some(entry) if entry.doc().at("/status") == crd.at("/status") => {
                let told = put_checked(put(entry.doc().clone(), "/status", wanted.at("/status")));
                is_too_large = told.is_err();
                Ok(told.unwrap_or(Change::Keep))
            }
            _ => Ok(Change::Keep),
        }
    };
    update(server, crd, decide).await?;
    // One definition that is too large does not stop the others.
    if is_too_large {
        let definition = crd.meta().name();
        tracing::warn!(
            definition,
            "the definition leaves no space for its status within 1.5 MiB; shorten its descriptions"
        );
    }
    Ok(is_too_large)
}

async fn update(
    server: &Server,
    crd: &Doc,
    mut decide: impl FnMut(Option<&Arc<Entry>>) -> Result<Change, Status> + Send,
) -> Result<(), Status> {
    let shelf = Shelf::new(GROUP, RESOURCE);
    let key = Key::cluster(crd.meta().name());
    let decide = |current: Option<&Arc<Entry>>| Ok((decide(current)?, ()));
    let storage = &server.inner().storage;
    let modified = || Status::modified(&GroupResource::new(GROUP, RESOURCE), key.name());
    match storage.settle((&shelf, &key), decide).await {
        Ok(_) => Ok(()),
        Err(error) => Err(storage::unsettled(error, modified)),
    }
}

/// Objects of an earlier definition of the same name, written while that one was deleted.
async fn drop_leftovers(server: &Server, crd: &Doc) -> Result<(), Status> {
    let shelf = Shelf::new(crd.str_at("/spec/group"), crd.str_at("/spec/names/plural"));
    let snapshot = server.inner().storage.snapshot(&shelf);
    for entry in snapshot.iter() {
        let uid = entry.doc().meta().uid();
        let decide = |current: Option<&Arc<Entry>>| match current
            .filter(|entry| entry.doc().meta().uid() == uid)
        {
            Some(_) => Ok((Change::Delete, ())),
            None => Ok((Change::Keep, ())),
        };
        let storage = &server.inner().storage;
        let outcome = storage.settle((&shelf, &entry.key), decide).await;
        let modified = || {
            let resource = GroupResource::new(shelf.group().to_owned(), shelf.name().to_owned());
            Status::modified(&resource, entry.key.name())
        };
        outcome.map_err(|error| storage::unsettled(error, modified))?;
    }
    Ok(())
}

/// Deletes the objects of a deleted definition, and then the definition. Gives whether there was
/// nothing to do.
async fn finish_deletion(server: &Server, served: &mut Served, crd: &Doc) -> Result<bool, Status> {
    if !crd.meta().has_finalizer(CLEANUP) {
        return Ok(true);
    }
    let Some(row) = served
        .get(crd.meta().name())
        .and_then(|known| known.rows.first().cloned())
    else {
        return remove(server, crd).await;
    };
    delete_objects(server, &row).await?;
    if server
        .inner()
        .storage
        .snapshot(&row.shelf)
        .iter()
        .next()
        .is_none()
    {
        return remove(server, crd).await;
    }
    let message = "CustomResource deletion is in progress";
    let waiting = with_condition(
        crd.clone(),
        "Terminating",
        "True",
        "InstanceDeletionInProgress",
        message,
        now(server),
    );
    if waiting.at("/status") == crd.at("/status") {
        return Ok(true);
    }
    write_status(server, crd, &waiting).await
}

async fn delete_objects(server: &Server, row: &Arc<Resource>) -> Result<(), Status> {
    let snapshot = server.inner().storage.snapshot(&row.shelf);
    let mut tasks: JoinSet<Result<(), Status>> = JoinSet::new();
    for entry in snapshot
        .iter()
        .filter(|entry| !entry.doc().meta().is_deleting())
    {
        if tasks.len() >= DELETES_AT_ONCE
            && let Some(outcome) = tasks.join_next().await
        {
            outcome.map_err(Status::internal)??;
        }
        let (server, row, entry) = (server.clone(), Arc::clone(row), Arc::clone(entry));
        tasks.spawn(async move { rest::delete_for_server(&server, &row, &entry).await });
    }
    while let Some(outcome) = tasks.join_next().await {
        outcome.map_err(Status::internal)??;
    }
    Ok(())
}

async fn remove(server: &Server, crd: &Doc) -> Result<bool, Status> {
    let uid = crd.meta().uid();
    let decide = |current: Option<&Arc<Entry>>| -> Result<Change, Status> {
        let Some(entry) = current.filter(|entry| entry.doc().meta().uid() == uid) else {
            return Ok(Change::Keep);
        };
        let freed = entry.doc().without_finalizer(CLEANUP);
        let is_free = freed.meta().finalizers().next().is_none();
        Ok(if is_free {
            Change::Delete
        } else {
            Change::put(freed)
        })
    };
    update(server, crd, decide).await?;
    Ok(false)
}
