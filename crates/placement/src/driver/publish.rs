//! Publishing the devices of a node.

use windlass_cache::{Lister, Obj};
use windlass_client::{DeleteOptions, WriteOptions};
use windlass_core::{Doc, Key, Str, doc};
use windlass_runtime::{Action, Change, Context, Manager, Result};

use super::{
    DRIVER, DeviceFn, NAME, Options, SLICE_DEVICES_LIMIT, class_kind, node_kind, slice_kind,
};

const SLICES_BY_POOL: &str = "pretendDriverPool";

pub(super) struct Publisher {
    nodes: Lister,
    slices: Lister,
    device: DeviceFn,
    devices_per_node: usize,
    class: Option<String>,
}

/// What must be done to the slices of a pool, in this order.
#[derive(Debug, Default)]
struct Work {
    delete: Vec<Obj>,
    update: Vec<Doc>,
    create: Vec<Doc>,
}

/// A node that only renews its heartbeat has the same devices.
pub(super) fn concerns_slices(change: &Change<'_>) -> bool {
    match (change.old, change.new) {
        (Some(old), Some(new)) => old.uid() != new.uid() || change.is_resync(),
        _ => true,
    }
}

impl Publisher {
    pub(super) fn new(manager: &Manager, options: &Options) -> Self {
        let informer = |gvr: &windlass_core::Gvr| manager.factory().dynamic(gvr.clone());
        let slices = informer(slice_kind().gvr());
        if let Err(error) = slices.add_index(SLICES_BY_POOL, pool_of) {
            tracing::debug!(%error, "slices are indexed by their pool already");
        }
        Self {
            nodes: informer(node_kind().gvr()).lister(),
            slices: slices.lister(),
            device: options.device.clone(),
            devices_per_node: options.devices_per_node,
            class: options.class.clone(),
        }
    }

    /// The node whose pool a slice is part of.
    #[expect(
        clippy::unused_self,
        reason = "it is called as a method beside the others"
    )]
    pub(super) fn node_of(&self, slice: &Obj) -> Vec<Key> {
        let pools = pool_of(slice).into_iter();
        pools.map(|pool| Key::cluster(&pool)).collect()
    }

    pub(super) async fn sync(&self, key: &Key, cx: &Context) -> Result<Action> {
        self.provide_class(cx).await?;
        let existing = self.slices.by_index(SLICES_BY_POOL, key.name())?;
        let work = match self.nodes.get(key) {
            Some(node) => self.compare(node.doc(), existing),
            None => Work {
                delete: existing,
                ..Work::default()
            },
        };
        let (api, options) = (cx.api(&slice_kind(), ""), WriteOptions::manager(DRIVER));
        for slice in &work.delete {
            let exactly = DeleteOptions {
                resource_version: Some(slice.meta().resource_version().to_owned()),
                ..DeleteOptions::uid(slice.uid().as_str())
            };
            match api.delete(slice.name(), &exactly).await {
                Err(error) if !error.is_not_found() => return Err(error.into()),
                _ => {}
            }
        }
        for slice in &work.update {
            api.update(slice, &options).await?;
        }
        for slice in &work.create {
            api.create(slice, &options).await?;
        }
        Ok(Action::done())
    }

    /// Makes the class of the devices, unless somebody has.
    async fn provide_class(&self, cx: &Context) -> Result<()> {
        let Some(name) = &self.class else {
            return Ok(());
        };
        let api = cx.api(&class_kind(), "");
        match api.get(name).await {
            Err(error) if error.is_not_found() => {}
            other => return Ok(other.map(drop)?),
        }
        let expression = format!("device.driver == {DRIVER:?}");
        let class = doc!({
            "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
            "metadata": { "name": name },
            "spec": { "selectors": [{ "cel": { "expression": expression } }] }
        });
        match api.create(&class, &WriteOptions::manager(NAME)).await {
            Err(error) if !error.is_already_exists() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// What differs between the slices that are there and those that should be.
    ///
    /// One changed slice is replaced as it is: a reader sees it before or after. More than one, or
    /// another number of them, is a new generation, which nobody uses before it is complete.
    fn compare(&self, node: &Doc, mut existing: Vec<Obj>) -> Work {
        let name = node.meta().name();
        let parts = self.devices(name);
        let generation = |slice: &Obj| slice.doc().at("/spec/pool/generation").as_i64();
        let newest = existing.iter().filter_map(generation).max().unwrap_or(0);
        existing.sort_by(|a, b| a.name().cmp(b.name()));
        let is_usable = |slice: &Obj| {
            generation(slice) == Some(newest)
                && index_of(slice).is_some_and(|index| index < parts.len())
        };
        let (usable, delete): (Vec<Obj>, Vec<Obj>) =
            existing.into_iter().partition(|slice| is_usable(slice));
        let find = |index: usize| usable.iter().find(|slice| index_of(slice) == Some(index));
        let spec = |index: usize, generation: i64| {
            doc!({
                "driver": DRIVER, "nodeName": name,
                "pool": {
                    "name": name, "generation": generation,
                    "resourceSliceCount": (parts.len())
                },
                "devices": (parts[index].clone())
            })
        };
        let differs = |index: &usize| {
            find(*index).is_none_or(|slice| *slice.doc().at("/spec") != spec(*index, newest))
        };
        let changed = (0..parts.len()).filter(differs).count();
        let is_new = (0..parts.len()).any(|index| find(index).is_none());
        if changed == 0 && delete.is_empty() {
            return Work::default();
        }
        let generation = match is_new || changed > 1 {
            true => newest + 1,
            false => newest,
        };
        let mut work = Work {
            delete,
            ..Work::default()
        };
        for index in 0..parts.len() {
            let spec = spec(index, generation);
            match find(index) {
                Some(slice) => {
                    let updated = slice.doc().with("/spec", spec);
                    work.update.extend(updated.ok());
                }
                None => work.create.push(slice_of(node, index, spec)),
            }
        }
        work
    }

    /// The devices of a node, in parts that fit into a slice.
    fn devices(&self, node: &str) -> Vec<Doc> {
        let all = (0..self.devices_per_node).map(|number| (self.device)(node, number));
        let all: Vec<Doc> = all.collect();
        let parts = all.chunks(SLICE_DEVICES_LIMIT);
        parts.map(|part| Doc::from(part.to_vec())).collect()
    }
}

/// The pool that a slice of this driver is part of.
fn pool_of(slice: &Obj) -> Vec<Str> {
    let spec = slice.doc().at("/spec");
    let is_ours = spec.str_at("/driver") == DRIVER;
    let pool = spec.str_at("/pool/name");
    is_ours.then(|| Str::new(pool)).into_iter().collect()
}

/// The name of a slice begins with its number, so that the order of names is that of numbers.
fn index_of(slice: &Obj) -> Option<usize> {
    let (index, _) = slice.name().split_once('-')?;
    usize::from_str_radix(index, 16).ok()
}

fn slice_of(node: &Doc, index: usize, spec: Doc) -> Doc {
    let meta = node.meta();
    let owner = doc!({
        "apiVersion": "v1", "kind": "Node", "name": (meta.name()), "uid": (meta.uid_str()),
        "controller": true
    });
    doc!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {
            "generateName": (format!("{index:02x}-{DRIVER}-{}-", meta.name())),
            "ownerReferences": [owner]
        },
        "spec": spec
    })
}
