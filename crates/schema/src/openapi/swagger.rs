//! OpenAPI v2 documents in parts: the definitions and paths of the rows of one group version.
//!
//! OpenAPI v2 has no `nullable`, `oneOf` or `anyOf`, and kubectl reads a schema without `type` as
//! "anything"; so schemas are simplified where v3 shows them in full. Upstream's rules are in
//! `apiextensions-apiserver/pkg/controller/openapi/v2/conversion.go`.

mod custom;
mod definition;
mod gnostic;
mod operations;
mod parameters;

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_core::{Doc, Gvk, doc};

use super::built_in;
use super::{Descriptions, Schemas};
use crate::resource::Resource;

pub use gnostic::{SwaggerHead, named_path, named_schema, protobuf_document};
pub use parameters::shared as shared_parameters;

/// The group versions in which upstream registers the options of requests and the events of
/// watches.
const EVERY_GROUP_VERSION: &str = "/v1 admission.k8s.io/v1 admission.k8s.io/v1beta1 \
    admissionregistration.k8s.io/v1 admissionregistration.k8s.io/v1alpha1 \
    admissionregistration.k8s.io/v1beta1 apiextensions.k8s.io/v1 apiextensions.k8s.io/v1beta1 \
    apiregistration.k8s.io/v1 apiregistration.k8s.io/v1beta1 apps/v1 apps/v1beta1 apps/v1beta2 \
    authentication.k8s.io/v1 authentication.k8s.io/v1alpha1 authentication.k8s.io/v1beta1 \
    authorization.k8s.io/v1 authorization.k8s.io/v1beta1 autoscaling/v1 autoscaling/v2 batch/v1 \
    batch/v1beta1 certificates.k8s.io/v1 certificates.k8s.io/v1alpha1 \
    certificates.k8s.io/v1beta1 coordination.k8s.io/v1 coordination.k8s.io/v1alpha2 \
    coordination.k8s.io/v1beta1 discovery.k8s.io/v1 discovery.k8s.io/v1beta1 events.k8s.io/v1 \
    events.k8s.io/v1beta1 extensions/v1beta1 flowcontrol.apiserver.k8s.io/v1 \
    flowcontrol.apiserver.k8s.io/v1beta1 flowcontrol.apiserver.k8s.io/v1beta2 \
    flowcontrol.apiserver.k8s.io/v1beta3 imagepolicy.k8s.io/v1alpha1 \
    internal.apiserver.k8s.io/v1alpha1 networking.k8s.io/v1 networking.k8s.io/v1beta1 \
    node.k8s.io/v1 node.k8s.io/v1alpha1 node.k8s.io/v1beta1 policy/v1 policy/v1beta1 \
    rbac.authorization.k8s.io/v1 rbac.authorization.k8s.io/v1alpha1 \
    rbac.authorization.k8s.io/v1beta1 resource.k8s.io/v1 resource.k8s.io/v1alpha3 \
    resource.k8s.io/v1beta1 resource.k8s.io/v1beta2 scheduling.k8s.io/v1 \
    scheduling.k8s.io/v1alpha2 scheduling.k8s.io/v1beta1 storage.k8s.io/v1 \
    storage.k8s.io/v1alpha1 storage.k8s.io/v1beta1 storagemigration.k8s.io/v1beta1";

/// The prefix of the types that every API has in common.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// A part of an OpenAPI v2 document.
#[derive(Clone, Debug, Default)]
pub struct SwaggerPart {
    /// The schemas by name.
    pub definitions: BTreeMap<String, Doc>,
    /// The operations by path.
    pub paths: BTreeMap<String, Doc>,
}

/// The part of the rows of one group version.
#[must_use]
pub fn swagger_part(rows: &[Arc<Resource>], descriptions: &Descriptions) -> SwaggerPart {
    let mut schemas = Schemas {
        by_name: BTreeMap::new(),
        descriptions,
    };
    let mut part = SwaggerPart::default();
    for row in rows {
        if let Some(custom) = &row.custom {
            part.definitions
                .extend(custom::definitions(row, custom, descriptions));
        } else {
            built_in::add_kind(&row.gvk, &mut schemas);
            let list = list_gvk(row);
            built_in::add_kind(&list, &mut schemas);
        }
        for sub in &row.subresources {
            built_in::add_kind(&sub.gvk, &mut schemas);
        }
        part.paths.extend(operations::paths(row));
    }
    if let Some(row) = rows.first() {
        part.paths.insert(
            format!("{}/", operations::prefix(row)),
            operations::resources(row),
        );
    }
    let built_in = schemas.by_name.iter();
    let built_in = built_in.map(|(name, schema)| (name.clone(), definition::of_built_in(schema)));
    part.definitions.extend(built_in);
    part
}

/// The part that documents have whatever is served: the types that operations name, and the pages
/// besides the group versions.
#[must_use]
pub fn common_part(groups: &[&str], descriptions: &Descriptions) -> SwaggerPart {
    let mut schemas = Schemas {
        by_name: BTreeMap::new(),
        descriptions,
    };
    for name in [
        "APIGroup",
        "APIGroupList",
        "APIResourceList",
        "APIVersions",
        "DeleteOptions",
        "ListMeta",
        "ObjectMeta",
        "Status",
        "WatchEvent",
    ] {
        built_in::add_meta(name, &mut schemas);
    }
    let mut part = SwaggerPart::default();
    for (name, schema) in &schemas.by_name {
        let mut schema = definition::of_built_in(schema);
        for kind in ["DeleteOptions", "WatchEvent"] {
            if *name == format!("{META}.{kind}") {
                schema = definition::with(&schema, GVK, every_kind(kind));
            }
        }
        part.definitions.insert(name.clone(), schema);
    }
    let patch = doc!({
        "type": "object",
        "description": "Patch is provided to give a concrete name and type to the Kubernetes PATCH \
                        request body."
    });
    part.definitions.insert(format!("{META}.Patch"), patch);
    part.definitions
        .insert(VERSION_INFO.to_owned(), version_info());
    part.paths = operations::pages(groups);
    part
}

const GVK: &str = "x-kubernetes-group-version-kind";
const VERSION_INFO: &str = "io.k8s.apimachinery.pkg.version.Info";

/// The kind of the lists of a row.
fn list_gvk(row: &Resource) -> Gvk {
    row.gvk.group_version().clone().with_kind(row.list_kind())
}

/// A kind in every group version that has it.
fn every_kind(kind: &str) -> Doc {
    let all = EVERY_GROUP_VERSION.split_whitespace();
    let pairs = all.filter_map(|text| text.split_once('/'));
    let kinds =
        pairs.map(|(group, version)| doc!({ "group": group, "version": version, "kind": kind }));
    kinds.collect::<Vec<Doc>>().into()
}

/// The schema of the page `/version`.
fn version_info() -> Doc {
    let text = doc!({ "type": "string" });
    let mut properties = windlass_core::Object::empty();
    let required = [
        "major",
        "minor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    ];
    for name in required.iter().chain(&[
        "emulationMajor",
        "emulationMinor",
        "minCompatibilityMajor",
        "minCompatibilityMinor",
    ]) {
        properties = properties.with(name, text.clone());
    }
    let required: Vec<Doc> = required.iter().map(|name| Doc::from(*name)).collect();
    doc!({
        "type": "object", "required": required, "properties": properties,
        "description": "Info contains versioning information. how we'll want to distribute that \
                        information."
    })
}
