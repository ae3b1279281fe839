//! Rows of the registry for the versions of a definition.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_core::ResourceName;
use windlass_core::{Doc, GroupResource, Gvk};

use crate::custom::schema::{self, Node};
use crate::custom::{CustomHooks, Scale, Version};
use crate::needs::Needs;
use crate::resource::Verb;
use crate::resource::{
    GarbagePolicy, Generation, NameRule, Resource, Scope, SelectableField, Sub, Subresource,
};
use crate::version_order::priority;
use windlass_rules::json_path::JsonPath;
use windlass_rules::table::{self, Cell, Column};

/// In the order in which upstream lists them.
const VERBS: [Verb; 8] = [
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Create,
    Verb::Update,
    Verb::Watch,
];
const READ_WRITE: &[Verb] = &[Verb::Get, Verb::Patch, Verb::Update];
const SCALE: Gvk = Gvk::constant("autoscaling", "v1", "Scale");

/// The rows of all served versions, the preferred one first. `since` is the revision after which
/// written objects are as the schema of their version wants them. The evaluation of rules ends when `is_cancelled`
/// returns true.
pub fn rows(
    crd: &Doc,
    accepted: &Doc,
    since: impl Fn(&str, &Doc) -> u64,
    is_cancelled: fn() -> bool,
) -> Vec<Arc<Resource>> {
    let versions = crd.at("/spec/versions").items();
    let stored = versions
        .iter()
        .find(|version| *version.at("/storage") == true);
    let stored = stored.map_or("", |version| version.str_at("/name"));
    let siblings = Siblings {
        is_cancelled,
        ..siblings(crd, stored)
    };
    let mut served: Vec<&Doc> = versions
        .iter()
        .filter(|version| *version.at("/served") == true)
        .collect();
    served.sort_by_key(|version| priority(version.str_at("/name")));
    let make = |version: &&Doc| {
        let since = since(
            version.str_at("/name"),
            version.at("/schema/openAPIV3Schema"),
        );
        row(crd, accepted, version, &siblings, since).map(Arc::new)
    };
    served.iter().filter_map(make).collect()
}

fn texts(list: &Doc) -> Vec<Cow<'static, str>> {
    list.items()
        .iter()
        .filter_map(Doc::as_str)
        .map(|text| Cow::Owned(text.to_owned()))
        .collect()
}

/// What the versions of a definition know of each other.
struct Siblings {
    storage_version: String,
    schemas: Arc<BTreeMap<String, Arc<Node>>>,
    /// The version that is recommended to users of deprecated ones.
    recommended: Option<String>,
    /// Returns true if nobody waits any more for the work of this thread.
    is_cancelled: fn() -> bool,
}

fn siblings(crd: &Doc, stored: &str) -> Siblings {
    let group = crd.str_at("/spec/group");
    let versions = crd.at("/spec/versions").items();
    let api_version = |version: &Doc| format!("{group}/{}", version.str_at("/name"));
    let schema = |version: &Doc| schema::compiled(version.at("/schema/openAPIV3Schema"));
    let is_sound =
        |version: &&Doc| *version.at("/served") == true && *version.at("/deprecated") != true;
    let best = versions
        .iter()
        .filter(is_sound)
        .min_by_key(|version| priority(version.str_at("/name")));
    let schemas = versions
        .iter()
        .map(|version| (api_version(version), schema(version)));
    Siblings {
        storage_version: format!("{group}/{stored}"),
        schemas: Arc::new(schemas.collect()),
        recommended: best.map(|version| version.str_at("/name").to_owned()),
        is_cancelled: || false,
    }
}

fn row(crd: &Doc, names: &Doc, version: &Doc, siblings: &Siblings, since: u64) -> Option<Resource> {
    let spec = crd.at("/spec");
    let group = spec.str_at("/group").to_owned();
    let plural = names.str_at("/plural").to_owned();
    let api_version = format!("{group}/{}", version.str_at("/name"));
    let gvk = Gvk::parse(&api_version, names.str_at("/kind")).ok()?;
    let source = version.at("/schema/openAPIV3Schema");
    let has_status = version.at("/subresources/status").as_object().is_some();
    let custom = Arc::new(Version {
        schema: schema::compiled(source),
        source: source.clone(),
        api_version: gvk.api_version(),
        storage_version: siblings.storage_version.clone(),
        siblings: Arc::clone(&siblings.schemas),
        list_kind: names.str_at("/listKind").to_owned(),
        has_status,
        scale: scale(version.at("/subresources/scale")),
        deprecation: deprecation(version, &gvk, siblings),
        since,
        is_terminating: crd.meta().is_deleting(),
        resource: GroupResource::new(group.clone(), plural.clone()),
        is_cancelled: siblings.is_cancelled,
    });
    Some(Resource {
        plural: Cow::Owned(plural.clone()),
        singular: Cow::Owned(names.str_at("/singular").to_owned()),
        short_names: texts(names.at("/shortNames")),
        categories: texts(names.at("/categories")),
        scope: match spec.str_at("/scope") {
            "Cluster" => Scope::Cluster,
            _ => Scope::Namespaced,
        },
        verbs: VERBS.to_vec(),
        subresources: subresources(&gvk, &custom),
        columns: columns(version.at("/additionalPrinterColumns")),
        fields: fields(version.at("/selectableFields")),
        names: NameRule::Subdomain,
        generation: if has_status {
            Generation::AllButStatus
        } else {
            Generation::Content
        },
        unconditional_update: false,
        create_on_update: false,
        returns_deleted: false,
        garbage: GarbagePolicy::Background,
        is_custom: true,
        shelf: ResourceName::new(&group, &plural),
        conversion: None,
        ttl: None,
        needs: Needs::default(),
        hooks: Arc::new(CustomHooks(Arc::clone(&custom))),
        custom: Some(custom),
        gvk,
    })
}

fn deprecation(version: &Doc, gvk: &Gvk, siblings: &Siblings) -> Option<String> {
    if *version.at("/deprecated") != true {
        return None;
    }
    if let Some(given) = version.get("deprecationWarning").and_then(Doc::as_str) {
        return Some(given.to_owned());
    }
    let better = siblings.recommended.as_deref();
    let better = better.filter(|better| priority(better) < priority(gvk.version()));
    let (group, kind) = (gvk.group(), gvk.kind());
    let advice = better.map(|better| format!("; use {group}/{better} {kind}"));
    let advice = advice.unwrap_or_default();
    Some(format!(
        "{} {kind} is deprecated{advice}",
        gvk.api_version()
    ))
}

fn pointer(path: &str) -> Option<String> {
    JsonPath::parse(path)?.pointer()
}

fn scale(scale: &Doc) -> Option<Scale> {
    Some(Scale {
        spec_replicas: pointer(scale.str_at("/specReplicasPath"))?,
        status_replicas: pointer(scale.str_at("/statusReplicasPath"))?,
        selector: pointer(scale.str_at("/labelSelectorPath")),
    })
}

fn subresources(gvk: &Gvk, custom: &Version) -> Vec<Subresource> {
    let mut subresources = Vec::new();
    if custom.has_status {
        subresources.push(Subresource {
            name: "status",
            gvk: gvk.clone(),
            verbs: READ_WRITE,
            sort: Sub::Status,
        });
    }
    if custom.scale.is_some() {
        subresources.push(Subresource {
            name: "scale",
            gvk: SCALE,
            verbs: READ_WRITE,
            sort: Sub::Scale,
        });
    }
    subresources
}

fn fields(selectable: &Doc) -> Vec<SelectableField> {
    let field = |field: &Doc| {
        let path = field.str_at("/jsonPath");
        Some(SelectableField {
            label: Cow::Owned(path.trim_start_matches('.').to_owned()),
            pointer: Cow::Owned(pointer(path)?),
            fallback: "",
            absent: "",
        })
    };
    selectable.items().iter().filter_map(field).collect()
}

fn columns(given: &Doc) -> Cow<'static, [Column]> {
    if given.items().is_empty() {
        return Cow::Borrowed(table::CUSTOM);
    }
    let column = |column: &Doc| {
        Some(Column {
            name: Cow::Owned(column.str_at("/name").to_owned()),
            sort: Cow::Owned(column.str_at("/type").to_owned()),
            priority: column.at("/priority").as_i64().unwrap_or(0),
            cell: Cell::Custom(Arc::new(table::CustomCell {
                path: JsonPath::parse(column.str_at("/jsonPath"))?,
                format: column.str_at("/format").to_owned(),
                description: column.str_at("/description").to_owned(),
            })),
        })
    };
    let name = table::CUSTOM.iter().take(1).cloned();
    name.chain(given.items().iter().filter_map(column))
        .collect::<Vec<_>>()
        .into()
}
