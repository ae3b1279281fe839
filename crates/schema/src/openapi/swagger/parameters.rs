//! Parameters of operations.

use windlass_core::{Doc, Object, Str, doc};

use super::META;
use super::definition::reference_to;

/// The parameters that operations share: the name of the definition, where the parameter is, its
/// name and its type. The names are upstream's, where their ends are hashes.
const SHARED: &[(&str, &str, &str, &str)] = &[
    (
        "allowWatchBookmarks-HC2hJt-J",
        "query",
        "allowWatchBookmarks",
        "boolean",
    ),
    ("continue-QfD61s0i", "query", "continue", "string"),
    ("fieldManager-7c6nTn1T", "query", "fieldManager", "string"),
    ("fieldManager-Qy4HdaTW", "query", "fieldManager", "string"),
    ("fieldSelector-xIcQKXFG", "query", "fieldSelector", "string"),
    ("force-tOGGb0Yi", "query", "force", "boolean"),
    (
        "gracePeriodSeconds--K5HaBOS",
        "query",
        "gracePeriodSeconds",
        "integer",
    ),
    (
        "ignoreStoreReadErrorWithClusterBreakingPotential-QbNkfIqj",
        "query",
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "boolean",
    ),
    ("labelSelector-5Zw57w4C", "query", "labelSelector", "string"),
    ("limit-1NfNmdNH", "query", "limit", "integer"),
    ("namespace-vgWSWtn3", "path", "namespace", "string"),
    (
        "orphanDependents-uRB25kX5",
        "query",
        "orphanDependents",
        "boolean",
    ),
    ("pretty-tJGM1-ng", "query", "pretty", "string"),
    (
        "propagationPolicy-6jk3prlO",
        "query",
        "propagationPolicy",
        "string",
    ),
    (
        "resourceVersion-5WAnf1kx",
        "query",
        "resourceVersion",
        "string",
    ),
    (
        "resourceVersionMatch-t8XhRHeC",
        "query",
        "resourceVersionMatch",
        "string",
    ),
    (
        "sendInitialEvents-rLXlEK_k",
        "query",
        "sendInitialEvents",
        "boolean",
    ),
    (
        "timeoutSeconds-yvYezaOC",
        "query",
        "timeoutSeconds",
        "integer",
    ),
    ("watch-XNNPZGbK", "query", "watch", "boolean"),
];

/// The body of a delete, and that of a patch.
const DELETE_BODY: &str = "body-2Y1dVQaQ";
const PATCH_BODY: &str = "body-78PwaGsr";

const LIST: &[&str] = &[
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
];
const DELETE: &[&str] = &[
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];

/// A parameter of an operation, and by what parameters are sorted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parameter {
    key: (String, &'static str),
    pub(super) doc: Doc,
}

impl Parameter {
    /// Returns true if the parameter is the body of a request.
    pub(super) fn is_body(&self) -> bool {
        self.key.1 == "body"
    }
}

/// The definitions of the shared parameters.
#[must_use]
pub fn shared() -> Doc {
    let mut all: Vec<(Str, Doc)> = SHARED
        .iter()
        .map(|&(definition, place, name, sort)| (definition.into(), plain(place, name, sort)))
        .collect();
    let body = |name: &str| {
        let schema = reference_to(&format!("{META}.{name}"));
        doc!({ "in": "body", "name": "body", "schema": schema })
    };
    all.push((DELETE_BODY.into(), body("DeleteOptions")));
    let patch = super::definition::with(&body("Patch"), "required", true.into());
    all.push((PATCH_BODY.into(), patch));
    Object::new(all).into()
}

fn plain(place: &str, name: &str, sort: &str) -> Doc {
    let parameter = doc!({ "in": place, "name": name, "type": sort, "uniqueItems": true });
    match place {
        "path" => super::definition::with(&parameter, "required", true.into()),
        _ => parameter,
    }
}

fn named(name: &str) -> Option<Parameter> {
    let found = SHARED.iter().find(|(_, _, known, _)| *known == name)?;
    Some(by_definition(found.0, found.2, found.1))
}

fn by_definition(definition: &str, name: &str, place: &'static str) -> Parameter {
    Parameter {
        key: (name.to_owned(), place),
        doc: doc!({ "$ref": (format!("#/parameters/{definition}")) }),
    }
}

/// The name of an object in a path.
pub(super) fn object_name(kind: &str) -> Parameter {
    let doc = super::definition::with(
        &plain("path", "name", "string"),
        "description",
        format!("name of the {kind}").into(),
    );
    Parameter {
        key: ("name".to_owned(), "path"),
        doc,
    }
}

/// The namespace in a path.
pub(super) fn namespace() -> Option<Parameter> {
    named("namespace")
}

/// The body of a create or update.
pub(super) fn body(schema: Doc) -> Parameter {
    Parameter {
        key: ("body".to_owned(), "body"),
        doc: doc!({ "in": "body", "name": "body", "required": true, "schema": schema }),
    }
}

/// What a write is done with.
const WRITE: &[&str] = &["dryRun", "fieldValidation"];

/// The parameters of an action, besides its body and those of the path.
pub(super) fn of_action(action: &str) -> Vec<Parameter> {
    let (names, write): (Vec<&str>, &[&str]) = match action {
        "list" | "watch" | "watchlist" => ([&["allowWatchBookmarks", "watch"], LIST].concat(), &[]),
        "deletecollection" => ([DELETE, LIST].concat(), &["dryRun"]),
        "delete" => (DELETE.to_vec(), &["dryRun"]),
        "post" | "put" => (Vec::new(), WRITE),
        "patch" => (vec!["force"], WRITE),
        _ => (Vec::new(), &[]),
    };
    let mut parameters: Vec<Parameter> = names.iter().filter_map(|name| named(name)).collect();
    parameters.extend(write.iter().map(|&name| Parameter {
        key: (name.to_owned(), "query"),
        doc: plain("query", name, "string"),
    }));
    match action {
        "post" | "put" => {
            parameters.push(by_definition(
                "fieldManager-Qy4HdaTW",
                "fieldManager",
                "query",
            ));
        }
        "patch" => {
            parameters.push(by_definition(
                "fieldManager-7c6nTn1T",
                "fieldManager",
                "query",
            ));
            parameters.push(by_definition(PATCH_BODY, "body", "body"));
        }
        "delete" | "deletecollection" => {
            parameters.push(by_definition(DELETE_BODY, "body", "body"));
        }
        _ => {}
    }
    parameters.extend(named("pretty"));
    parameters
}

/// Parameters in the order in which documents list them.
pub(super) fn sorted(mut parameters: Vec<Parameter>) -> Doc {
    parameters.sort_by(|a, b| a.key.cmp(&b.key));
    let docs: Vec<Doc> = parameters.into_iter().map(|it| it.doc).collect();
    docs.into()
}
