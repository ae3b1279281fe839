//! Finalizers: a controller that must clean up before an object goes.

use std::time::Duration;

use windlass_cache::Obj;
use windlass_client::Patch;
use windlass_core::{Doc, doc};

use crate::{Action, Context, Result};

/// The task of a controller with a finalizer.
#[derive(Clone, Debug)]
pub enum Finalize<K> {
    /// The object is there, and holds the finalizer.
    Apply(Obj<K>),
    /// The object is to go. When this succeeds the finalizer is removed.
    Cleanup(Obj<K>),
}

/// Reconciles an object under a finalizer: it is put on before anything else is done, and taken
/// off after the clean-up has succeeded.
///
/// ```no_run
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass_cache::Obj;
/// # use windlass_runtime::{Action, Context, Finalize, Result, finalizer};
/// async fn reconcile(map: Obj<ConfigMap>, cx: Context) -> Result<Action> {
///     finalizer(&cx, map, "example.com/bucket", |task| async {
///         match task {
///             Finalize::Apply(map) => println!("make the bucket of {}", map.key()),
///             Finalize::Cleanup(map) => println!("empty the bucket of {}", map.key()),
///         }
///         Ok(Action::done())
///     })
///     .await
/// }
/// ```
///
/// # Errors
/// When the function fails, or the finalizer cannot be written.
pub async fn finalizer<K, F, Fut>(
    cx: &Context,
    object: Obj<K>,
    name: &str,
    reconcile: F,
) -> Result<Action>
where
    F: FnOnce(Finalize<K>) -> Fut,
    Fut: Future<Output = Result<Action>>,
{
    let meta = object.meta();
    match (meta.is_deleting(), meta.has_finalizer(name)) {
        (false, true) => reconcile(Finalize::Apply(object)).await,
        (false, false) => {
            write(cx, object.doc(), &object.doc().with_finalizer(name)).await?;
            // The update that this causes would bring the object back, if no filter of the
            // controller passed over it: the generation is the same.
            Ok(Action::requeue_after(Duration::ZERO))
        }
        (true, true) => {
            let action = reconcile(Finalize::Cleanup(object.clone())).await?;
            write(cx, object.doc(), &object.doc().without_finalizer(name)).await?;
            Ok(action)
        }
        (true, false) => Ok(Action::done()),
    }
}

/// Replaces the list of finalizers, if the object is still what we know: others may have changed
/// the same list.
async fn write(cx: &Context, before: &Doc, after: &Doc) -> Result<()> {
    let meta = before.meta();
    let patch = doc!({
        "metadata": {
            "uid": meta.uid_str(),
            "resourceVersion": meta.resource_version(),
            "finalizers": after.at("/metadata/finalizers").clone()
        }
    });
    let api = cx.api(cx.kind_of(before)?, meta.namespace());
    match api
        .patch(meta.name(), &Patch::Merge(patch), &cx.write_options())
        .await
    {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
    }
}
