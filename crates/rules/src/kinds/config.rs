//! Config maps and secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use windlass_core::{Doc, Object};

use crate::edit::edit;
use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;

/// The keys and values of one object together.
const DATA_BYTES_MAX: usize = 1 << 20;

/// Where a secret with a token names the account whose token it is.
const ACCOUNT: &str = "kubernetes.io/service-account.name";

/// Hooks of config maps.
#[derive(Debug)]
pub struct ConfigMaps;

/// Hooks of secrets.
#[derive(Debug)]
pub struct Secrets;

impl Hooks for ConfigMaps {
    fn validate(&self, object: &Doc, errors: &mut FieldErrors) {
        let mut bytes = 0;
        for map in ["data", "binaryData"] {
            let fields = object.get(map).and_then(Doc::as_object);
            for (key, value) in fields.into_iter().flat_map(|fields| fields.iter()) {
                check_key(&FieldPath::new(map).key(key), key, errors);
                let is_twice = map == "binaryData" && object.at("/data").get(key).is_some();
                if is_twice {
                    let detail = "duplicate of key present in binaryData";
                    errors.invalid(&FieldPath::new("data").key(key), &**key, detail);
                }
                bytes += value.as_str().unwrap_or_default().len();
            }
        }
        if bytes > DATA_BYTES_MAX {
            // The object itself has no name among its fields.
            errors.too_long(&FieldPath::new("[]"), DATA_BYTES_MAX);
        }
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        check_immutable(new, old, &["data", "binaryData"], errors);
    }
}

impl Hooks for Secrets {
    fn default(&self, object: Doc) -> Doc {
        edit(&object, |secret| {
            secret.default("type", "Opaque");
            // What is written as text is kept like everything else.
            if let Some(texts) = secret.get("stringData").and_then(Doc::as_object).cloned() {
                let data = secret.get("data").and_then(Doc::as_object).cloned();
                let encoded = texts.iter().map(|(key, text)| {
                    let text = BASE64.encode(text.as_str().unwrap_or_default());
                    (key.clone(), Some(text.into()))
                });
                let data = data.unwrap_or_else(Object::empty);
                secret.set("data", data.with_changes(encoded.collect()));
            }
            secret.remove("stringData");
        })
    }

    fn validate(&self, object: &Doc, errors: &mut FieldErrors) {
        let mut bytes = 0;
        let path = FieldPath::new("data");
        for (key, value) in object
            .at("/data")
            .as_object()
            .into_iter()
            .flat_map(|data| data.iter())
        {
            check_key(&path.key(key), key, errors);
            let text = value.as_str().unwrap_or_default();
            match BASE64.decode(text) {
                Ok(decoded) => bytes += decoded.len(),
                Err(_) => errors.invalid(&path.key(key), "", "must be base64 encoded"),
            }
        }
        if bytes > DATA_BYTES_MAX {
            errors.too_long(&path, DATA_BYTES_MAX);
        }
        validate_type(object, &path, errors);
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        errors.immutable(&FieldPath::new("type"), new.at("/type"), old.at("/type"));
        check_immutable(new, old, &["data"], errors);
    }
}

/// Finds what a secret of its type has to have and lacks.
fn validate_type(secret: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let has = |key: &str| secret.at("/data").get(key).is_some();
    for key in required_keys(secret.str_at("/type")) {
        if !has(key) {
            errors.required(&path.key(key), "");
        }
    }
    match secret.str_at("/type") {
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            errors.required(&path.key("username"), "");
            errors.required(&path.key("password"), "");
        }
        "kubernetes.io/service-account-token" => {
            let account = secret.meta().annotation(ACCOUNT).unwrap_or_default();
            if account.is_empty() {
                let path = FieldPath::new("metadata").child("annotations");
                errors.required(&path.key(ACCOUNT), "");
            }
        }
        _ => {}
    }
}

/// The keys that a secret of a type has to have.
fn required_keys(secret_type: &str) -> &'static [&'static str] {
    match secret_type {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        _ => &[],
    }
}

/// An object that was made immutable stays as it is.
fn check_immutable(new: &Doc, old: &Doc, keys: &[&str], errors: &mut FieldErrors) {
    if *old.at("/immutable") != true {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    if *new.at("/immutable") != true {
        errors.forbidden(&FieldPath::new("immutable"), detail);
    }
    for key in keys {
        if new.get(key) != old.get(key) {
            errors.forbidden(&FieldPath::new(key), detail);
        }
    }
}

fn check_key(path: &FieldPath, key: &str, errors: &mut FieldErrors) {
    if key.len() > 253 {
        errors.invalid(path, key, "must be no more than 253 characters");
    }
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    if key.is_empty() || !key.bytes().all(is_plain) {
        let detail = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
                      (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation \
                      is '[-._a-zA-Z0-9]+')";
        errors.invalid(path, key, detail);
    }
    match key {
        "." => errors.invalid(path, key, "must not be '.'"),
        ".." => errors.invalid(path, key, "must not be '..'"),
        _ if key.starts_with("..") => errors.invalid(path, key, "must not start with '..'"),
        _ => {}
    }
}
