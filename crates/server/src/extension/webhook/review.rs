//! The AdmissionReview that is sent to a webhook.

use windlass_core::{Doc, Gvk, Object, Str, doc};

use super::super::{Attributes, Versioned};
use crate::registry::Resource;
use windlass_access::User;

/// A review of a request, in the version that the webhook understands.
pub(super) fn admission_review(
    version: &str,
    uid: &str,
    attributes: &Attributes<'_>,
    versioned: &Versioned,
) -> Doc {
    let null = |object: &Option<Doc>| object.clone().unwrap_or(Doc::NULL);
    let mut fields: Vec<(Str, Doc)> = request_fields(attributes, versioned);
    fields.extend([
        ("uid".into(), uid.into()),
        ("object".into(), null(&versioned.object)),
        ("oldObject".into(), null(&versioned.old)),
    ]);
    let request = Doc::from(Object::new(fields));
    doc!({
        "kind": "AdmissionReview", "apiVersion": (format!("admission.k8s.io/{version}")),
        "request": request
    })
}

/// The request as match conditions see it.
pub(in crate::extension) fn cel_request(attributes: &Attributes<'_>, versioned: &Versioned) -> Doc {
    Object::new(request_fields(attributes, versioned)).into()
}

fn request_fields(attributes: &Attributes<'_>, versioned: &Versioned) -> Vec<(Str, Doc)> {
    let mut fields: Vec<(Str, Doc)> = vec![
        ("kind".into(), kind(&versioned.kind)),
        ("resource".into(), resource(&versioned.row)),
        ("requestKind".into(), kind(&attributes.kind)),
        ("requestResource".into(), resource(attributes.resource)),
        ("operation".into(), attributes.operation.as_str().into()),
        ("userInfo".into(), user_info(attributes.user)),
        ("dryRun".into(), attributes.dry_run.into()),
        ("options".into(), attributes.options.clone()),
    ];
    for (key, text) in [
        ("subResource", attributes.subresource),
        ("requestSubResource", attributes.subresource),
        ("name", attributes.name.as_str()),
        ("namespace", attributes.namespace.as_str()),
    ] {
        if !text.is_empty() {
            fields.push((key.into(), text.into()));
        }
    }
    fields
}

fn kind(gvk: &Gvk) -> Doc {
    doc!({ "group": (gvk.group()), "version": (gvk.version()), "kind": (gvk.kind()) })
}

fn resource(row: &Resource) -> Doc {
    doc!({
        "group": (row.gvk.group()), "version": (row.gvk.version()), "resource": (&*row.plural)
    })
}

fn user_info(user: &User) -> Doc {
    let texts = |texts: &[String]| Doc::from(texts.iter().map(Doc::from).collect::<Vec<_>>());
    let mut fields: Vec<(Str, Doc)> = Vec::new();
    for (key, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            fields.push((key.into(), Doc::from(text)));
        }
    }
    if !user.groups.is_empty() {
        fields.push(("groups".into(), texts(&user.groups)));
    }
    if !user.extra.is_empty() {
        let extra = user.extra.iter();
        let extra = extra.map(|(key, values)| (Str::new(key), texts(values)));
        fields.push((
            "extra".into(),
            Object::new(extra.collect::<Vec<_>>()).into(),
        ));
    }
    Object::new(fields).into()
}
