//! Writes.

use http::Response;
use windlass_client::Content;
use windlass_core::{Doc, Env, doc, names};

use super::{
    answer::{failure, object},
    missing, patch,
    request::Parsed,
    state::State,
};

type Answer = Response<Content>;

/// The metadata that no client writes.
const KEPT_FIELDS: [&str; 6] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
];

/// The built-in resources whose deletion is answered with the object, at the revision of the
/// deletion. Others are answered with a Status.
const RETURNS_DELETED: [&str; 19] = [
    "csidrivers",
    "csinodes",
    "deviceclasses",
    "devicetaintrules",
    "namespaces",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "resourceclaims",
    "resourceclaimtemplates",
    "resourcepoolstatusrequests",
    "resourcequotas",
    "resourceslices",
    "serviceaccounts",
    "services",
    "storageclasses",
    "volumeattachments",
    "volumeattributesclasses",
];

impl State {
    pub(super) fn create(&mut self, at: &Parsed, body: &Doc, env: &Env) -> Answer {
        let meta = body.meta();
        let name = match (meta.name(), meta.generate_name()) {
            ("", "") => return failure(422, "Invalid", "name or generateName is required"),
            ("", base) => names::generate_name(base, env),
            (name, _) => name.to_owned(),
        };
        let at = Parsed {
            name: Some(name.clone()),
            ..at.clone()
        };
        if self.objects.contains_key(&at.place()) {
            let resource = at.resource.group_resource();
            let message = format!("{resource} \"{name}\" already exists");
            return failure(409, "AlreadyExists", &message);
        }
        let fields = [
            ("/metadata/name", Doc::from(name)),
            ("/metadata/uid", Doc::from(env.uid().as_str())),
            (
                "/metadata/creationTimestamp",
                Doc::from(env.now().to_string()),
            ),
            ("/metadata/generation", Doc::from(1)),
        ];
        let mut stored = with_all(body, fields);
        if !at.namespace.is_empty() {
            stored = with_all(&stored, [("/metadata/namespace", Doc::from(&at.namespace))]);
        }
        object(201, self.commit(at.place(), Some(stored)))
    }

    pub(super) fn update(&mut self, at: &Parsed, body: &Doc) -> Answer {
        let Some(old) = self.get(at) else {
            return missing(at);
        };
        let version = body.meta().resource_version();
        if !version.is_empty() && version != old.meta().resource_version() {
            return changed(at);
        }
        self.replace(at, &old, body.clone())
    }

    pub(super) fn patch(
        &mut self,
        at: &Parsed,
        body: &Doc,
        content_type: &str,
        env: &Env,
    ) -> Answer {
        let is_apply = content_type.contains("apply-patch");
        let Some(old) = self.get(at) else {
            return if is_apply {
                self.create(at, body, env)
            } else {
                missing(at)
            };
        };
        let version = body.str_at("/metadata/resourceVersion");
        if !version.is_empty() && version != old.meta().resource_version() {
            return changed(at);
        }
        match patch::apply(&old, body, content_type) {
            Ok(new) => self.replace(at, &old, new),
            Err(message) => failure(422, "Invalid", &message),
        }
    }

    /// Stores a new version of an object: the status, or all but the status.
    fn replace(&mut self, at: &Parsed, old: &Doc, new: Doc) -> Answer {
        let uid = new.meta().uid_str();
        if !uid.is_empty() && uid != old.meta().uid_str() {
            return changed(at);
        }
        let mut new = match at.part.as_deref() {
            Some("status") => with_all(old, [("/status", new.at("/status").clone())]),
            _ if old.get("status").is_some() => {
                with_all(&new, [("/status", old.at("/status").clone())])
            }
            _ => new,
        };
        for field in KEPT_FIELDS {
            let pointer = format!("/metadata/{field}");
            if let Some(value) = old.pointer(&pointer) {
                new = with_all(&new, [(&*pointer, value.clone())]);
            }
        }
        new = with_all(
            &new,
            [(
                "/metadata/resourceVersion",
                Doc::from(old.meta().resource_version()),
            )],
        );
        if new == *old {
            return object(200, new);
        }
        if new.get("spec") != old.get("spec") {
            let generation = old.meta().generation() + 1;
            new = with_all(&new, [("/metadata/generation", Doc::from(generation))]);
        }
        let is_gone = new.meta().is_deleting() && new.meta().finalizers().next().is_none();
        if is_gone {
            // The last word on the object is its new state.
            self.objects.insert(at.place(), new);
            return object(200, self.commit(at.place(), None));
        }
        object(200, self.commit(at.place(), Some(new)))
    }

    pub(super) fn delete(&mut self, at: &Parsed, body: &Doc, env: &Env) -> Answer {
        let Some(old) = self.get(at) else {
            return missing(at);
        };
        let uid = body.str_at("/preconditions/uid");
        let version = body.str_at("/preconditions/resourceVersion");
        let is_other = !uid.is_empty() && uid != old.meta().uid_str()
            || !version.is_empty() && version != old.meta().resource_version();
        if is_other {
            return changed(at);
        }
        if old.meta().finalizers().next().is_none() {
            let gone = self.commit(at.place(), None);
            if RETURNS_DELETED.contains(&at.resource.resource()) {
                return object(200, gone);
            }
            return object(
                200,
                doc!({
                    "kind": "Status",
                    "apiVersion": "v1",
                    "metadata": {},
                    "status": "Success",
                    "details": { "name": gone.meta().name(), "uid": gone.meta().uid_str() }
                }),
            );
        }
        if old.meta().is_deleting() {
            return object(200, old);
        }
        let marked = with_all(
            &old,
            [
                (
                    "/metadata/deletionTimestamp",
                    Doc::from(env.now().to_string()),
                ),
                ("/metadata/deletionGracePeriodSeconds", Doc::from(0)),
            ],
        );
        object(200, self.commit(at.place(), Some(marked)))
    }
}

fn changed(at: &Parsed) -> Answer {
    let (resource, name) = (
        at.resource.group_resource(),
        at.name.as_deref().unwrap_or(""),
    );
    failure(
        409,
        "Conflict",
        &format!(
            "Operation cannot be fulfilled on {resource} \"{name}\": the object has been modified; \
         please apply your changes to the latest version and try again"
        ),
    )
}

fn with_all<const N: usize>(doc: &Doc, fields: [(&str, Doc); N]) -> Doc {
    fields
        .into_iter()
        .fold(doc.clone(), |doc, (pointer, value)| {
            let edited = if value.is_null() {
                doc.without(pointer)
            } else {
                doc.with(pointer, value)
            };
            edited.unwrap_or(doc)
        })
}
