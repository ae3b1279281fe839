//! Requests for certificates: who asks, and when it was decided.

use windlass_core::{Doc, Object, Str};

use super::Request;
use crate::kinds::edit;

pub(super) const GROUP: &str = "certificates.k8s.io";
pub(super) const PLURAL: &str = "certificatesigningrequests";

/// A new request with the user who asks, whatever it says itself.
pub(super) fn admit(request: &Request<'_>, object: &Doc) -> Doc {
    let user = request.user;
    let texts =
        |texts: &[String]| -> Doc { texts.iter().map(Doc::from).collect::<Vec<_>>().into() };
    let extra = user.extra.iter();
    let extra = extra.map(|(key, values)| (Str::new(key), texts(values)));
    let extra = Object::new(extra.collect());
    edit(object, |object| {
        object.inside("spec", |spec| {
            edit(spec, |spec| {
                for key in ["username", "uid", "groups", "extra"] {
                    spec.remove(key);
                }
                spec.set("username", user.name.as_str());
                if !user.uid.is_empty() {
                    spec.set("uid", user.uid.as_str());
                }
                if !user.groups.is_empty() {
                    spec.set("groups", texts(&user.groups));
                }
                if !extra.is_empty() {
                    spec.set("extra", extra);
                }
            })
        });
    })
}

/// A request whose conditions all say since when they hold.
pub(super) fn date(request: &Request<'_>, object: &Doc, old: &Doc) -> Doc {
    let now = Doc::from(request.env.now().to_string());
    let before = old.at("/status/conditions").items();
    let dated = |condition: &Doc| {
        let is_same = |known: &&Doc| {
            known.at("/type") == condition.at("/type")
                && known.at("/status") == condition.at("/status")
        };
        let known = before.iter().find(is_same);
        let since = known.map(|known| known.at("/lastTransitionTime").clone());
        let since = since.filter(|since| !since.is_null());
        edit(condition, |condition| {
            condition.default("lastUpdateTime", now.clone());
            condition.default("lastTransitionTime", since.unwrap_or_else(|| now.clone()));
        })
    };
    edit(object, |object| {
        object.inside("status", |status| {
            edit(status, |status| status.each("conditions", dated))
        });
    })
}
