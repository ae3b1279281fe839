//! The changes of slices that make them mirror Endpoints.

use std::collections::BTreeMap;

use windlass_core::{Doc, EditError, Env, Gvk, Object, OwnerRef, doc, names};

use super::{
    MANAGED_BY, SERVICE_NAME,
    subsets::{Desired, SliceEndpoints},
};
use crate::endpointslice::pack::{PortsKey, endpoint_key, ports_key};

/// Annotations of Endpoints that are not copied.
const OWN_ANNOTATIONS: [&str; 2] = [
    "endpoints.kubernetes.io/last-change-trigger-time",
    "kubectl.kubernetes.io/last-applied-configuration",
];

/// The family of addresses and the ports of a slice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SliceKey {
    family: String,
    ports: PortsKey,
}

impl SliceKey {
    pub(super) fn new(family: &str, ports: &[Doc]) -> Self {
        Self {
            family: family.to_owned(),
            ports: ports_key(ports),
        }
    }

    pub(super) fn of(slice: &Doc) -> Self {
        Self::new(slice.str_at("/addressType"), slice.at("/ports").items())
    }
}

/// The changes of slices.
pub(super) struct Mirror {
    prefix: String,
    create: Vec<Doc>,
    pub(super) update: Vec<Doc>,
    pub(super) delete: Vec<Doc>,
}

impl Mirror {
    /// Compares the slices that Endpoints ask for with those that are known.
    pub(super) fn plan(
        endpoints: &Doc,
        kind: &Gvk,
        desired: Desired,
        mut known: BTreeMap<SliceKey, Vec<Doc>>,
    ) -> Result<Self, EditError> {
        let meta = endpoints.meta();
        let mut mirror = Self {
            prefix: format!("{}-", meta.name()),
            create: Vec::new(),
            update: Vec::new(),
            delete: Vec::new(),
        };
        let metadata = Metadata::of(endpoints, kind);
        for (key, (ports, wanted)) in desired.slices {
            let mut slices = known.remove(&key).unwrap_or_default().into_iter();
            let first = slices.next();
            mirror.delete.extend(slices);
            let is_new = first.is_none();
            let slice = first.unwrap_or_else(|| new_slice(meta.namespace(), &key.family));
            if !is_new && has_endpoints(&slice, &wanted) && metadata.is_on(&slice) {
                continue;
            }
            let wanted: Vec<Doc> = wanted.into_values().collect();
            let slice = metadata.put_on(&slice)?;
            let slice = slice.with("/ports", ports)?.with("/endpoints", wanted)?;
            match is_new {
                true => mirror.create.push(slice),
                // Upstream's update names the slice and nothing that the name was made of.
                false => {
                    let bare = slice.without("/metadata/generateName");
                    mirror.update.push(bare.unwrap_or(slice));
                }
            }
        }
        mirror.delete.extend(known.into_values().flatten());
        mirror.recycle()?;
        if meta.is_deleting() {
            mirror.create.clear();
        }
        Ok(mirror)
    }

    /// Turns slices that would be deleted into those that are missing of the same family.
    fn recycle(&mut self) -> Result<(), EditError> {
        for slice in std::mem::take(&mut self.delete) {
            let family = slice.str_at("/addressType");
            let mut missing = self.create.iter();
            match missing.position(|it| it.str_at("/addressType") == family) {
                Some(at) => {
                    let meta = slice.at("/metadata").as_object().cloned();
                    let mut meta = meta.unwrap_or_else(Object::empty);
                    let wanted = self.create.remove(at);
                    for field in ["labels", "annotations", "ownerReferences"] {
                        meta = match wanted.at("/metadata").get(field) {
                            Some(value) => meta.with(field, value.clone()),
                            None => meta.without(field),
                        };
                    }
                    self.update.push(wanted.with("/metadata", meta)?);
                }
                None => self.delete.push(slice),
            }
        }
        Ok(())
    }

    /// The slices that are missing, under fresh names.
    pub(super) fn create(&self, env: &Env) -> impl Iterator<Item = Result<Doc, EditError>> {
        self.create.iter().map(|slice| {
            let name = names::generate_name(&self.prefix, env);
            slice
                .with("/metadata/name", name)?
                .with("/metadata/generateName", self.prefix.as_str())
        })
    }
}

/// The parts of the metadata of a slice that follow the Endpoints.
struct Metadata {
    labels: Object,
    annotations: Object,
    owner: OwnerRef,
}

impl Metadata {
    fn of(endpoints: &Doc, kind: &Gvk) -> Self {
        let meta = endpoints.meta();
        let copied = |at: &str| {
            let fields = endpoints.at(at).as_object().cloned();
            fields.unwrap_or_else(Object::empty)
        };
        let labels = copied("/metadata/labels")
            .with(SERVICE_NAME, meta.name().into())
            .with(MANAGED_BY.0, MANAGED_BY.1.into());
        let annotations = copied("/metadata/annotations");
        let annotations = OWN_ANNOTATIONS
            .iter()
            .fold(annotations, |all, key| all.without(key));
        let owner = OwnerRef::controller_of(endpoints, kind);
        Self {
            labels,
            annotations,
            owner,
        }
    }

    /// Returns true if a slice has this metadata.
    fn is_on(&self, slice: &Doc) -> bool {
        let has = |at: &str, wanted: &Object| match slice.at(at).as_object() {
            Some(found) => found == wanted,
            None => wanted.is_empty(),
        };
        let is_stale = |it: &OwnerRef| {
            it.kind == self.owner.kind && it.name == self.owner.name && it.uid != self.owner.uid
        };
        has("/metadata/labels", &self.labels)
            && has("/metadata/annotations", &self.annotations)
            && !slice.meta().owner_refs().any(|it| is_stale(&it))
    }

    fn put_on(&self, slice: &Doc) -> Result<Doc, EditError> {
        let owners = vec![Doc::from(&self.owner)];
        let slice = slice
            .with("/metadata/labels", self.labels.clone())?
            .with("/metadata/ownerReferences", owners)?;
        match self.annotations.is_empty() {
            true => Ok(slice.without("/metadata/annotations").unwrap_or(slice)),
            false => slice.with("/metadata/annotations", self.annotations.clone()),
        }
    }
}

/// Returns true if a slice has these endpoints and no others.
fn has_endpoints(slice: &Doc, wanted: &SliceEndpoints) -> bool {
    let known = slice.at("/endpoints").items();
    let is_wanted = |it: &Doc| wanted.get(&endpoint_key(it)) == Some(it);
    known.len() == wanted.len() && known.iter().all(is_wanted)
}

fn new_slice(namespace: &str, family: &str) -> Doc {
    doc!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "namespace": namespace }, "addressType": family,
    })
}
