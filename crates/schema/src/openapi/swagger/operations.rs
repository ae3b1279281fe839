//! Paths and what can be done at them.

use std::collections::BTreeMap;

use windlass_core::{Doc, Gvk, Object, Str, doc};

use super::definition::{reference_to, with};
use super::parameters::{self, Parameter};
use super::{GVK, META, VERSION_INFO, custom, list_gvk};
use crate::openapi::built_in::{kind_doc, name_of_kind};
use crate::resource::{Resource, Sub, Verb};

const ENCODINGS: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];
const STREAMS: &[&str] = &[
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];
const CUSTOM_PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
];
const WATCH_INSTEAD: &str = "deprecated: use the 'watch' parameter with a list operation instead";

/// One operation in the making.
struct Operation {
    method: &'static str,
    action: &'static str,
    id: String,
    description: String,
    gvk: Gvk,
    /// The schema of the answer.
    answer: Doc,
    /// The schema of the body of a create or update.
    body: Option<Doc>,
    parameters: Vec<Parameter>,
    is_log: bool,
}

/// The path of a group version.
pub(super) fn prefix(row: &Resource) -> String {
    match row.gvk.group() {
        "" => format!("/api/{}", row.gvk.version()),
        group => format!("/apis/{group}/{}", row.gvk.version()),
    }
}

/// The paths of a resource and of its parts.
pub(super) fn paths(row: &Resource) -> Vec<(String, Doc)> {
    let prefix = prefix(row);
    let place = match row.is_namespaced() {
        true => "/namespaces/{namespace}",
        false => "",
    };
    let plural = &row.plural;
    let mut paths: Vec<(String, Vec<Operation>)> = vec![
        (
            format!("{prefix}{place}/{plural}"),
            among(row, &[Verb::List, Verb::Create, Verb::DeleteCollection]),
        ),
        (
            format!("{prefix}{place}/{plural}/{{name}}"),
            among(row, &[Verb::Get, Verb::Update, Verb::Patch, Verb::Delete]),
        ),
    ];
    if row.is_namespaced() && row.allows(Verb::List) {
        let mut everywhere = operation(row, Verb::List);
        everywhere.id = operation_id(row, "list", &format!("{}ForAllNamespaces", row.gvk.kind()));
        paths.push((format!("{prefix}/{plural}"), vec![everywhere]));
    }
    for sub in &row.subresources {
        let operations = sub.verbs.iter().map(|&verb| {
            let mut operation = operation(row, verb);
            part_of(&mut operation, row, sub.name, &sub.gvk, verb);
            if sub.sort == Sub::Log {
                operation.is_log = true;
                operation.answer = doc!({ "type": "string" });
            }
            operation
        });
        let path = format!("{prefix}{place}/{plural}/{{name}}/{}", sub.name);
        paths.push((path, operations.collect()));
    }
    if row.allows(Verb::Watch) && !row.is_custom {
        paths.extend(watches(row, &prefix, place));
    }
    let paths = paths.into_iter().filter(|(_, all)| !all.is_empty());
    paths
        .map(|(path, operations)| {
            let item = path_item(row, &path, operations);
            (path, item)
        })
        .collect()
}

fn among(row: &Resource, wanted: &[Verb]) -> Vec<Operation> {
    let verbs = row.verbs.iter().filter(|verb| wanted.contains(verb));
    verbs.map(|&verb| operation(row, verb)).collect()
}

/// The deprecated paths of watches.
fn watches(row: &Resource, prefix: &str, place: &str) -> Vec<(String, Vec<Operation>)> {
    let (kind, plural) = (row.gvk.kind(), &row.plural);
    let scope = scope(row);
    let watch = |action: &'static str, name: String, description: String| Operation {
        method: "get",
        action,
        id: operation_id(row, "watch", &name),
        description,
        gvk: row.gvk.clone(),
        answer: reference_to(&format!("{META}.WatchEvent")),
        body: None,
        parameters: parameters::of_action(action),
        is_log: false,
    };
    let of_list = format!("watch individual changes to a list of {kind}. {WATCH_INSTEAD}.");
    let of_one = format!(
        "watch changes to an object of kind {kind}. {WATCH_INSTEAD}, filtered to a single item \
         with the 'fieldSelector' parameter."
    );
    let list = watch("watchlist", format!("{scope}{kind}List"), of_list.clone());
    let mut paths = vec![(format!("{prefix}/watch{place}/{plural}"), vec![list])];
    if row.allows(Verb::Get) {
        let one = watch("watch", format!("{scope}{kind}"), of_one);
        paths.push((
            format!("{prefix}/watch{place}/{plural}/{{name}}"),
            vec![one],
        ));
    }
    if row.is_namespaced() {
        let name = format!("{kind}ListForAllNamespaces");
        let everywhere = watch("watchlist", name, of_list);
        paths.push((format!("{prefix}/watch/{plural}"), vec![everywhere]));
    }
    paths
}

fn scope(row: &Resource) -> &'static str {
    match row.is_namespaced() {
        true => "Namespaced",
        false => "",
    }
}

/// The operation of a verb on a whole object or on many.
fn operation(row: &Resource, verb: Verb) -> Operation {
    let (kind, scope) = (row.gvk.kind(), scope(row));
    let name = format!("{scope}{kind}");
    let (method, action, word, name) = match verb {
        Verb::Get => ("get", "get", "read", name),
        Verb::List | Verb::Watch => ("get", "list", "list", name),
        Verb::Create => ("post", "post", "create", name),
        Verb::Update => ("put", "put", "replace", name),
        Verb::Patch => ("patch", "patch", "patch", name),
        Verb::Delete => ("delete", "delete", "delete", name),
        Verb::DeleteCollection => (
            "delete",
            "deletecollection",
            "delete",
            format!("Collection{name}"),
        ),
    };
    let article = article(kind);
    let description = match verb {
        Verb::Get => format!("read the specified {kind}"),
        Verb::List | Verb::Watch if row.allows(Verb::Watch) && !row.is_custom => {
            format!("list or watch objects of kind {kind}")
        }
        Verb::List | Verb::Watch => format!("list objects of kind {kind}"),
        Verb::Create => format!("create{article}{kind}"),
        Verb::Update => format!("replace the specified {kind}"),
        Verb::Patch => format!("partially update the specified {kind}"),
        Verb::Delete => format!("delete{article}{kind}"),
        Verb::DeleteCollection => format!("delete collection of {kind}"),
    };
    let object = schema_of(row, &row.gvk);
    let answer = match verb {
        Verb::List | Verb::Watch => schema_of(row, &list_gvk(row)),
        Verb::DeleteCollection => reference_to(&format!("{META}.Status")),
        Verb::Delete if !row.returns_deleted => reference_to(&format!("{META}.Status")),
        _ => object.clone(),
    };
    let has_body = matches!(verb, Verb::Create | Verb::Update);
    Operation {
        method,
        action,
        id: operation_id(row, word, &name),
        description,
        gvk: row.gvk.clone(),
        answer,
        body: has_body.then_some(object),
        parameters: parameters::of_action(action),
        is_log: false,
    }
}

/// Makes the operation of a whole object that of a part of it.
fn part_of(operation: &mut Operation, row: &Resource, name: &str, gvk: &Gvk, verb: Verb) {
    let kind = row.gvk.kind();
    let mut letters = name.chars();
    let first = letters.next().map(|it| it.to_ascii_uppercase());
    let title: String = first.into_iter().chain(letters).collect();
    operation.id.push_str(&title);
    operation.description = match verb {
        Verb::Create => format!("create {name} of{}{kind}", article(kind)),
        Verb::Update => format!("replace {name} of the specified {kind}"),
        Verb::Patch => format!("partially update {name} of the specified {kind}"),
        _ => format!("read {name} of the specified {kind}"),
    };
    let schema = schema_of(row, gvk);
    operation.gvk = match row.is_custom {
        true => row.gvk.clone(),
        false => gvk.clone(),
    };
    operation.answer = schema.clone();
    operation.body = operation.body.take().map(|_| schema);
}

fn schema_of(row: &Resource, gvk: &Gvk) -> Doc {
    match name_of_kind(gvk) {
        Some(name) => reference_to(&name),
        None if row.is_custom => {
            reference_to(&custom::name(gvk.group(), gvk.version(), gvk.kind()))
        }
        None => doc!({ "type": "string" }),
    }
}

fn operation_id(row: &Resource, word: &str, name: &str) -> String {
    let group = match row.gvk.group() {
        "" => "core",
        group => group.strip_suffix(".k8s.io").unwrap_or(group),
    };
    let version = camel(row.gvk.version(), true);
    format!("{word}{}{version}{name}", camel(group, true))
}

/// The tag of a group version.
fn tag(group: &str, version: &str) -> String {
    let group = match group {
        "" => "core",
        group => group.strip_suffix(".k8s.io").unwrap_or(group),
    };
    format!("{}_{}", camel(group, false), camel(version, false))
}

/// A text without its punctuation, in camel case.
fn camel(text: &str, starts_upper: bool) -> String {
    let mut is_upper = starts_upper;
    let mut out = String::new();
    for (at, letter) in text.chars().enumerate() {
        let is_kept = letter.is_alphabetic() || letter == '_' || at > 0 && letter.is_ascii_digit();
        if !is_kept {
            is_upper = true;
        } else if std::mem::take(&mut is_upper) {
            out.extend(letter.to_uppercase());
        } else {
            out.push(letter);
        }
    }
    out
}

/// The article of a kind between spaces; plurals have none.
fn article(kind: &str) -> &'static str {
    let is_plural = kind.ends_with('s') && !kind.ends_with("ss");
    match kind.chars().next() {
        _ if is_plural => " ",
        Some('A' | 'E' | 'I' | 'O' | 'U' | 'a' | 'e' | 'i' | 'o' | 'u') => " an ",
        _ => " a ",
    }
}

/// A path with its operations. Parameters that all of them have belong to the path.
fn path_item(row: &Resource, path: &str, mut operations: Vec<Operation>) -> Doc {
    for operation in &mut operations {
        if path.contains("{namespace}") {
            operation.parameters.extend(parameters::namespace());
        }
        if path.contains("{name}") {
            let name = parameters::object_name(row.gvk.kind());
            operation.parameters.push(name);
        }
    }
    let is_common = |parameter: &&Parameter| {
        let has = |operation: &Operation| operation.parameters.contains(parameter);
        !parameter.is_body() && operations.iter().all(has)
    };
    let first = operations.first().map_or(&[][..], |it| &it.parameters);
    let common: Vec<Parameter> = first.iter().filter(is_common).cloned().collect();
    let mut fields: Vec<(Str, Doc)> = Vec::new();
    for mut operation in operations {
        operation.parameters.retain(|it| !common.contains(it));
        if let Some(body) = operation.body.take() {
            operation.parameters.push(parameters::body(body));
        }
        fields.push((operation.method.into(), operation.into_doc(row)));
    }
    fields.push(("parameters".into(), parameters::sorted(common)));
    Object::new(fields).into()
}

impl Operation {
    fn into_doc(self, row: &Resource) -> Doc {
        let produces: Vec<&str> = match (self.action, row.is_custom) {
            (_, true) => ENCODINGS[..2].to_vec(),
            _ if self.is_log => [&["text/plain"], ENCODINGS].concat(),
            ("list" | "watch" | "watchlist", _) => [ENCODINGS, STREAMS].concat(),
            _ => ENCODINGS.to_vec(),
        };
        let consumes: &[&str] = match (self.action, row.is_custom) {
            ("patch", true) => CUSTOM_PATCHES,
            ("patch", false) => PATCHES,
            (_, true) => &ENCODINGS[..2],
            _ => &["*/*"],
        };
        let mut operation = doc!({
            "consumes": (texts(consumes)), "produces": (texts(&produces)), "schemes": ["https"],
            "description": (self.description), "operationId": (self.id),
            "tags": [(tag(row.gvk.group(), row.gvk.version()))],
            "responses": (responses(self.action, &self.answer)),
            "x-kubernetes-action": (self.action), GVK: (kind_doc(&self.gvk))
        });
        if !self.parameters.is_empty() {
            let parameters = parameters::sorted(self.parameters);
            operation = with(&operation, "parameters", parameters);
        }
        operation
    }
}

fn responses(action: &str, answer: &Doc) -> Doc {
    let codes: &[(&str, &str)] = match action {
        "post" => &[("200", "OK"), ("201", "Created"), ("202", "Accepted")],
        "put" | "patch" => &[("200", "OK"), ("201", "Created")],
        "delete" => &[("200", "OK"), ("202", "Accepted")],
        _ => &[("200", "OK")],
    };
    let mut responses = Object::empty();
    for (code, text) in codes {
        responses = responses.with(
            code,
            doc!({ "description": (*text), "schema": (answer.clone()) }),
        );
    }
    responses
        .with("401", doc!({ "description": "Unauthorized" }))
        .into()
}

fn texts(texts: &[&str]) -> Doc {
    let texts = texts.iter().map(|text| Doc::from(*text));
    texts.collect::<Vec<Doc>>().into()
}

/// A page that is only read.
fn page(id: &str, description: &str, tag: &str, schema: &str) -> Doc {
    let encodings = match schema {
        VERSION_INFO => &ENCODINGS[..1],
        _ => ENCODINGS,
    };
    doc!({ "get": {
        "consumes": (texts(encodings)), "produces": (texts(encodings)), "schemes": ["https"],
        "description": description, "operationId": id, "tags": [tag],
        "responses": (responses("get", &reference_to(schema)))
    } })
}

/// The page of a group version.
pub(super) fn resources(row: &Resource) -> Doc {
    page(
        &operation_id(row, "get", "APIResources"),
        "get available resources",
        &tag(row.gvk.group(), row.gvk.version()),
        &format!("{META}.APIResourceList"),
    )
}

/// The pages besides those of group versions.
pub(super) fn pages(groups: &[&str]) -> BTreeMap<String, Doc> {
    let mut pages = BTreeMap::new();
    let versions = "get available API versions";
    let core = page(
        "getCoreAPIVersions",
        versions,
        "core",
        &format!("{META}.APIVersions"),
    );
    pages.insert("/api/".to_owned(), core);
    let all = page(
        "getAPIVersions",
        versions,
        "apis",
        &format!("{META}.APIGroupList"),
    );
    pages.insert("/apis/".to_owned(), all);
    let about = "get the version information for this server";
    let version = page("getCodeVersion", about, "version", VERSION_INFO);
    pages.insert("/version/".to_owned(), version);
    for group in groups {
        let name = group.strip_suffix(".k8s.io").unwrap_or(group);
        let id = format!("get{}APIGroup", camel(name, true));
        let schema = format!("{META}.APIGroup");
        let page = page(
            &id,
            "get information of a group",
            &camel(name, false),
            &schema,
        );
        pages.insert(format!("/apis/{group}/"), page);
    }
    pages
}
