//! Server-side apply.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
};

use windlass_cache::Obj;
use windlass_client::{Patch, WriteOptions};
use windlass_core::{Doc, OwnerRef};

use super::Context;
use crate::{Error, ResourceKind, Result};

/// An object to be applied. It is sent when this is awaited.
#[must_use = "nothing is applied until this is awaited"]
#[derive(Debug)]
pub struct Apply {
    cx: Context,
    kind: ResourceKind,
    object: Result<Doc>,
    options: WriteOptions,
}

impl Apply {
    pub(super) fn new(cx: Context, kind: ResourceKind, object: Result<Doc>) -> Self {
        let options = cx.write_options().force();
        Self {
            cx,
            kind,
            object,
            options,
        }
    }

    /// Makes an object the owner that manages this one, in the same namespace.
    ///
    /// The apply fails if this object names another namespace, or is in none although its owner is
    /// in one: the garbage collector would not find the owner, and delete this object.
    pub fn owned_by<K>(mut self, owner: &Obj<K>) -> Self {
        let kind = &self.kind;
        self.object = self
            .object
            .and_then(|object| owned(object, kind, owner.doc()));
        self
    }

    /// Applies in another name than that of the controller.
    pub fn field_manager(mut self, name: impl Into<String>) -> Self {
        self.options.field_manager = name.into();
        self
    }

    /// Fails with a conflict where others manage the same fields, in place of taking them over.
    pub fn without_force(mut self) -> Self {
        self.options.is_forced = false;
        self
    }

    async fn send(self) -> Result<Doc> {
        let object = self.object?;
        let object = object.with("/apiVersion", self.kind.gvk().api_version())?;
        let object = object.with("/kind", self.kind.gvk().kind())?;
        let meta = object.meta();
        let api = self.cx.api(&self.kind, meta.namespace());
        let name = meta.name().to_owned();
        Ok(api
            .patch(&name, &Patch::Apply(object), &self.options)
            .await?)
    }
}

impl IntoFuture for Apply {
    type Output = Result<Doc>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Doc>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

fn owned(object: Doc, kind: &ResourceKind, owner: &Doc) -> Result<Doc> {
    let gvk = owner
        .gvk()
        .ok_or_else(|| Error::msg("the owner has no apiVersion and kind"))?;
    let reference = Doc::from(&OwnerRef::controller_of(owner, &gvk));
    let object = in_namespace_of(object, kind, owner.meta().namespace())?;
    Ok(object.with("/metadata/ownerReferences", vec![reference])?)
}

/// The object in the namespace of its owner, if that has one.
fn in_namespace_of(object: Doc, kind: &ResourceKind, owner: &str) -> Result<Doc> {
    let own = object.meta().namespace();
    if owner.is_empty() || own == owner {
        return Ok(object);
    }
    if !kind.is_namespaced() {
        let text = format!(
            "cluster-scoped resource must not have a namespace-scoped owner, owner's namespace \
             {owner}"
        );
        return Err(Error::msg(text).terminal());
    }
    if !own.is_empty() {
        let text = format!(
            "cross-namespace owner references are disallowed, owner's namespace {owner}, obj's \
             namespace {own}"
        );
        return Err(Error::msg(text).terminal());
    }
    Ok(object.with("/metadata/namespace", owner)?)
}
