//! The two forms of a reconcile function.

use std::{future::Future, pin::Pin, sync::Arc};

use windlass_cache::Obj;
use windlass_client::Typed;
use windlass_core::Key;

use crate::{Action, Context, ResourceKind, Result};

/// A reconcile function that gets the object: `async fn(Obj<K>, Context) -> Result<Action>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a reconcile function for `{K}`",
    label = "not a reconcile function",
    note = "expected `async fn(Obj<{K}>, Context) -> Result<Action>`, with a future that is `Send`",
    note = "a function that gets the key belongs to `Controller::of_keys`"
)]
pub trait Reconciler<K>: Send + Sync + 'static {
    /// Brings the world one step closer to what the object says.
    fn reconcile(&self, object: Obj<K>, cx: Context)
    -> impl Future<Output = Result<Action>> + Send;
}

impl<K, F, Fut> Reconciler<K> for F
where
    F: Fn(Obj<K>, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action>> + Send,
{
    fn reconcile(
        &self,
        object: Obj<K>,
        cx: Context,
    ) -> impl Future<Output = Result<Action>> + Send {
        self(object, cx)
    }
}

/// A reconcile function that gets the key: `async fn(Key, Context) -> Result<Action>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a reconcile function for keys",
    label = "not a reconcile function",
    note = "expected `async fn(Key, Context) -> Result<Action>`, with a future that is `Send`",
    note = "a function that gets the object belongs to `Controller::of`"
)]
pub trait KeyReconciler: Send + Sync + 'static {
    /// Brings the world one step closer to what the object of the key says, or to its absence.
    fn reconcile(&self, key: Key, cx: Context) -> impl Future<Output = Result<Action>> + Send;
}

impl<F, Fut> KeyReconciler for F
where
    F: Fn(Key, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action>> + Send,
{
    fn reconcile(&self, key: Key, cx: Context) -> impl Future<Output = Result<Action>> + Send {
        self(key, cx)
    }
}

pub(super) type ReconcileFuture = Pin<Box<dyn Future<Output = Result<Action>> + Send>>;

/// A reconcile function of either form, without its types.
pub(super) type ReconcileFn = Arc<dyn Fn(Key, Context) -> ReconcileFuture + Send + Sync>;

pub(super) fn by_key(reconciler: impl KeyReconciler) -> ReconcileFn {
    let reconciler = Arc::new(reconciler);
    Arc::new(move |key, cx| {
        let reconciler = reconciler.clone();
        Box::pin(async move { reconciler.reconcile(key, cx).await })
    })
}

pub(super) fn by_object<K: Typed>(
    kind: ResourceKind,
    reconciler: impl Reconciler<K>,
) -> ReconcileFn {
    let (kind, reconciler) = (Arc::new(kind), Arc::new(reconciler));
    Arc::new(move |key, cx| {
        let (kind, reconciler) = (kind.clone(), reconciler.clone());
        Box::pin(async move {
            match cx.lister_of(&kind)?.get(&key) {
                Some(object) => reconciler.reconcile(object.cast(), cx).await,
                None => Ok(Action::done()),
            }
        })
    })
}
