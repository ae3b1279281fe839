//! Acting as somebody else, for those who may.

use std::collections::BTreeMap;

use http::HeaderMap;

use super::rbac::{Attributes, is_allowed};
use super::{AUTHENTICATED, User, denied_wish};
use crate::status::Status;
use crate::storage::Storage;

/// The user that a request is to be judged by: whom the headers name, if the sender may act as
/// them, or else the sender.
pub(crate) fn effective_user(
    sender: User,
    headers: &HeaderMap,
    storage: &Storage,
) -> Result<User, Status> {
    let texts = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter();
        values
            .filter_map(|value| value.to_str().ok().map(str::to_owned))
            .collect()
    };
    let (names, groups) = (texts("impersonate-user"), texts("impersonate-group"));
    let uid = texts("impersonate-uid").into_iter().next();
    let extra = extra(headers);
    let Some(name) = names.into_iter().next() else {
        if groups.is_empty() && uid.is_none() && extra.is_empty() {
            return Ok(sender);
        }
        return Err(Status::bad_request(
            "requested groups, a uid or extras without impersonating a user",
        ));
    };
    let check = |wish: Attributes| match is_allowed(&sender, &wish, storage) {
        true => Ok(()),
        false => Err(denied_wish(&sender, &wish)),
    };
    check(wish_for(&name))?;
    for group in &groups {
        check(wish("", "groups", "", group))?;
    }
    if let Some(uid) = &uid {
        check(wish("authentication.k8s.io", "uids", "", uid))?;
    }
    for (key, values) in &extra {
        let resource = format!("userextras/{key}");
        for value in values {
            check(wish("authentication.k8s.io", &resource, "", value))?;
        }
    }
    let mut user = match service_account(&name) {
        Some((namespace, account)) => User::service_account(namespace, account),
        None => User {
            name: name.clone(),
            ..User::default()
        },
    };
    user.groups.extend(groups);
    if user.name != "system:anonymous" && !user.is_in(AUTHENTICATED) {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    user.uid = uid.unwrap_or_default();
    user.extra.extend(extra);
    Ok(user)
}

/// What else is to be known of the user, by the ends of the names of headers.
fn extra(headers: &HeaderMap) -> Vec<(String, Vec<String>)> {
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        let key = name.as_str().strip_prefix("impersonate-extra-");
        if let (Some(key), Ok(value)) = (key, value.to_str()) {
            extra
                .entry(decoded(key))
                .or_default()
                .push(value.to_owned());
        }
    }
    extra.into_iter().collect()
}

/// A key in which percent signs stand for what a header's name cannot have.
fn decoded(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn wish_for(name: &str) -> Attributes {
    match service_account(name) {
        Some((namespace, account)) => wish("", "serviceaccounts", namespace, account),
        None => wish("", "users", "", name),
    }
}

fn service_account(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("system:serviceaccount:")?.split_once(':')
}

fn wish(group: &str, resource: &str, namespace: &str, name: &str) -> Attributes {
    Attributes {
        verb: "impersonate".to_owned(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        path: None,
    }
}
