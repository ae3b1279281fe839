//! The service account controller: every namespace has the account `default`.

use windlass_client::{Error, WriteOptions};
use windlass_core::{GroupVersion, Key, doc};
use windlass_runtime::{Action, Change, Context, Controller, Manager, ResourceKind, Result};

/// The name of the controller.
pub const NAME: &str = "serviceaccount-controller";

/// The account that every namespace has.
const ACCOUNT: &str = "default";

const CORE: GroupVersion = GroupVersion::constant("", "v1");

/// Options of the service account controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many namespaces are worked on at the same time.
    pub workers: usize,
}

impl Default for Options {
    /// Upstream's: one worker.
    fn default() -> Self {
        Self { workers: 1 }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let reconcile = |key: Key, cx: Context| async move { ensure(&key, &cx).await };
    let controller = Controller::of_kind(namespaces(), reconcile)
        .filter(|change| change.new.is_some())
        .watches_kind(accounts(), |account| {
            vec![Key::cluster(account.namespace())]
        })
        .only(|spec| spec.fields(format!("metadata.name={ACCOUNT}")))
        .filter(is_gone)
        .named(NAME)
        .queue_named("serviceaccount")
        .workers(options.workers);
    manager.add(controller);
}

fn namespaces() -> ResourceKind {
    ResourceKind::cluster(CORE, "Namespace", "namespaces")
}

fn accounts() -> ResourceKind {
    ResourceKind::namespaced(CORE, "ServiceAccount", "serviceaccounts")
}

fn is_gone(change: &Change<'_>) -> bool {
    change.new.is_none()
}

async fn ensure(key: &Key, cx: &Context) -> Result<Action> {
    let namespace = cx.lister_of(&namespaces())?.get(key);
    if namespace.is_none_or(|it| it.doc().str_at("/status/phase") != "Active") {
        return Ok(Action::done());
    }
    let account = Key::new(key.name(), ACCOUNT);
    if cx.lister_of(&accounts())?.get(&account).is_some() {
        return Ok(Action::done());
    }
    let object = doc!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": { "name": ACCOUNT, "namespace": key.name() },
    });
    let api = cx.api(&accounts(), key.name());
    match api.create(&object, &WriteOptions::manager(NAME)).await {
        Err(error) if !error.is_already_exists() && !is_namespace_ending(&error) => {
            Err(error.into())
        }
        _ => Ok(Action::done()),
    }
}

/// Whether something was not created because its namespace is going or gone.
pub(crate) fn is_namespace_ending(error: &Error) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    let mut causes = details.into_iter().flat_map(|details| &details.causes);
    error.is_not_found() || causes.any(|cause| cause.reason == "NamespaceTerminating")
}
