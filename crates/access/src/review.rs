//! Reviews: questions about users and rights, answered and not stored.

use windlass_core::{Doc, GroupKind, Time, doc};

use windlass_rules::edit::put;
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::status::Status;
use windlass_schema::needs::Review;

use crate::attributes::Attributes;
use crate::authenticator::Authenticator;
use crate::authorizer::authorize;
use crate::node::node_of;
use crate::objects::Objects;
use crate::rbac;
use crate::user::{MASTERS, User};

/// The sources of the answers to reviews.
#[derive(Clone, Copy)]
pub struct Reviewer<'a> {
    /// The tokens.
    pub authenticator: &'a Authenticator,
    /// The roles and bindings.
    pub objects: &'a dyn Objects,
    /// The user who asks.
    pub user: &'a User,
    /// The namespace of the request.
    pub namespace: &'a str,
    /// The time.
    pub now: Time,
}

impl std::fmt::Debug for Reviewer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reviewer(..)")
    }
}

impl Reviewer<'_> {
    /// The review with its answer.
    pub fn answer(&self, sort: Review, review: &Doc) -> Result<Doc, Status> {
        let (from, user) = (self, self.user);
        match sort {
            Review::SelfSubjectAccess => {
                check_attributes(review)?;
                Ok(access(from, user, review))
            }
            Review::SubjectAccess => {
                check_attributes(review)?;
                Ok(access(from, &subject(review)?, review))
            }
            Review::LocalSubjectAccess => {
                check_attributes(review)?;
                check_place(review, from.namespace)?;
                Ok(access(from, &subject(review)?, review))
            }
            Review::SelfSubjectRules => Ok(rules(from, user, review)),
            Review::SelfSubject => {
                let now = from.now.to_string();
                let review = put(review.clone(), "/metadata/creationTimestamp", now);
                let status = doc!({ "userInfo": (describe(user)) });
                Ok(put(review, "/status", status))
            }
            Review::Token => Ok(token(from, review)),
        }
    }
}

/// A review asks about a resource or a path, not both.
fn check_attributes(review: &Doc) -> Result<(), Status> {
    let is_there = |key: &str| review.at("/spec").get(key).is_some();
    if is_there("resourceAttributes") != is_there("nonResourceAttributes") {
        return Ok(());
    }
    let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    let value = review.at("/spec/nonResourceAttributes");
    Err(invalid("spec.resourceAttributes", value, detail))
}

/// A review in a namespace is about that namespace.
fn check_place(review: &Doc, namespace: &str) -> Result<(), Status> {
    let asked = review.at("/spec/resourceAttributes/namespace");
    if asked.as_str().unwrap_or_default() == namespace {
        return Ok(());
    }
    let field = "spec.resourceAttributes.namespace";
    Err(invalid(field, asked, "must match metadata.namespace"))
}

fn invalid(field: &str, value: &Doc, detail: &str) -> Status {
    let mut errors = FieldErrors::default();
    errors.invalid(&FieldPath::new(field), value, detail);
    Status::invalid(&GroupKind::new("authorization.k8s.io", ""), "", &errors)
}

fn subject(review: &Doc) -> Result<User, Status> {
    let groups = review.at("/spec/groups").items();
    let name = review.str_at("/spec/user");
    if name.is_empty() && groups.is_empty() {
        let detail = "at least one of user or group must be specified";
        return Err(invalid("spec.user", &"".into(), detail));
    }
    Ok(User {
        name: name.to_owned(),
        uid: review.str_at("/spec/uid").to_owned(),
        groups: groups
            .iter()
            .filter_map(|group| group.as_str().map(str::to_owned))
            .collect(),
        extra: Vec::new(),
    })
}

fn access(from: &Reviewer<'_>, user: &User, review: &Doc) -> Doc {
    let paths = review.at("/spec/nonResourceAttributes");
    let wish = review.at("/spec/resourceAttributes");
    let wanted = if paths.is_null() {
        Attributes {
            verb: wish.str_at("/verb").to_owned(),
            group: wish.str_at("/group").to_owned(),
            resource: Attributes::join(wish.str_at("/resource"), wish.str_at("/subresource")),
            namespace: wish.str_at("/namespace").to_owned(),
            name: wish.str_at("/name").to_owned(),
            fields: fields(wish),
            path: None,
        }
    } else {
        Attributes {
            verb: paths.str_at("/verb").to_owned(),
            path: Some(paths.str_at("/path").to_owned()),
            ..Attributes::default()
        }
    };
    let decision = authorize(user, &wanted, from.objects);
    let mut status = doc!({ "allowed": (decision.is_allowed) });
    if !decision.reason.is_empty() {
        status = put(status, "/reason", decision.reason);
    }
    put(review.clone(), "/status", status)
}

/// The fields that the attributes of a review limit a list to.
fn fields(attributes: &Doc) -> Vec<(String, String)> {
    let raw = attributes.str_at("/fieldSelector/rawSelector");
    let given = attributes.at("/fieldSelector/requirements").items().iter();
    let given = given.filter(|term| term.str_at("/operator") == "In");
    let given = given.filter_map(|term| match term.at("/values").items() {
        [value] => Some((term.str_at("/key").to_owned(), value.as_str()?.to_owned())),
        _ => None,
    });
    let raw = Attributes::default().selecting(raw).fields;
    raw.into_iter().chain(given).collect()
}

fn rules(from: &Reviewer<'_>, user: &User, review: &Doc) -> Doc {
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    let namespace = review.str_at("/spec/namespace");
    let everything = doc!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] });
    if user.is_in(MASTERS) {
        resources.push(everything);
        paths.push(doc!({ "verbs": ["*"], "nonResourceURLs": ["*"] }));
    }
    let (known, absent) = rbac::rules_of(user, namespace, from.objects);
    for rule in known {
        if !rule.at("/resources").items().is_empty() {
            resources.push(rule.clone());
        }
        if !rule.at("/nonResourceURLs").items().is_empty() {
            paths.push(rule);
        }
    }
    let is_node = node_of(user).is_some();
    let mut status =
        doc!({ "resourceRules": resources, "nonResourceRules": paths, "incomplete": is_node });
    let mut absent = absent;
    if is_node {
        let why = "node authorizer does not support user rule resolution";
        absent.insert(0, why.to_owned());
    }
    match absent.as_slice() {
        [] => {}
        [one] => status = put(status, "/evaluationError", one.as_str()),
        many => status = put(status, "/evaluationError", format!("[{}]", many.join(", "))),
    }
    put(review.clone(), "/status", status)
}

fn token(from: &Reviewer<'_>, review: &Doc) -> Doc {
    let token = review.str_at("/spec/token");
    let asked = review.at("/spec/audiences").items();
    let signer = from.authenticator.signer();
    let is_own = |audience: &&String| {
        asked.is_empty() || asked.iter().any(|it| it.as_str() == Some(audience))
    };
    // The audiences of the server that the caller asked for; all of them if it asked for none.
    let audiences: Vec<Doc> = signer
        .audiences()
        .iter()
        .filter(is_own)
        .map(Doc::from)
        .collect();
    let is_for_us = !audiences.is_empty();
    let user = from.authenticator.token_user(token, from.objects);
    let status = match user.filter(|_| is_for_us) {
        Some(user) => doc!({
            "authenticated": true, "user": (describe(&user)), "audiences": audiences
        }),
        None => doc!({ "user": {}, "error": "invalid bearer token" }),
    };
    put(review.clone(), "/status", status)
}

fn describe(user: &User) -> Doc {
    let groups: Vec<Doc> = user.groups.iter().map(Doc::from).collect();
    let mut described = doc!({ "username": (&user.name), "groups": groups });
    if !user.uid.is_empty() {
        described = put(described, "/uid", user.uid.as_str());
    }
    for (key, values) in &user.extra {
        let values: Vec<Doc> = values.iter().map(Doc::from).collect();
        // A key may have a slash, which a pointer would read as a step.
        let key = key.replace('~', "~0").replace('/', "~1");
        described = put(described, &format!("/extra/{key}"), values);
    }
    described
}
