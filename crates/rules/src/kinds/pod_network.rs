//! What a pod is called in its network, and whom it asks for names.

use std::net::IpAddr;

use windlass_core::{Doc, names};

use crate::field::{FieldErrors, FieldPath};

const NAME_SERVERS_LIMIT: usize = 3;
const SEARCHES_LIMIT: usize = 32;
const SEARCH_CHARACTERS_LIMIT: usize = 2048;
const HOST_NAME_BYTES_LIMIT: usize = 64;
const SEARCH_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
     characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. \
     'example.com', regex used for validation is \
     '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";

/// Finds what is wrong with how a pod asks for names.
pub(super) fn validate_dns(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let (config, path) = (spec.at("/dnsConfig"), path.child("dnsConfig"));
    let servers = config.at("/nameservers").items();
    if spec.str_at("/dnsPolicy") == "None" {
        if config.is_null() {
            let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
            return errors.required(&path, detail);
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return errors.required(&path.child("nameservers"), detail);
        }
    }
    validate_servers(
        config.at("/nameservers"),
        &path.child("nameservers"),
        errors,
    );
    validate_searches(config.at("/searches"), &path.child("searches"), errors);
    for (index, option) in config.at("/options").items().iter().enumerate() {
        if option.str_at("/name").is_empty() {
            errors.required(&path.child("options").index(index), "must not be empty");
        }
    }
}

fn validate_servers(servers: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if servers.items().len() > NAME_SERVERS_LIMIT {
        let detail = format!("must not have more than {NAME_SERVERS_LIMIT} nameservers");
        errors.invalid(path, servers, detail);
    }
    for (index, server) in servers.items().iter().enumerate() {
        validate_address(
            server.as_str().unwrap_or_default(),
            &path.index(index),
            errors,
        );
    }
}

fn validate_searches(searches: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let texts = searches
        .items()
        .iter()
        .map(|it| it.as_str().unwrap_or_default());
    let texts: Vec<&str> = texts.collect();
    if texts.len() > SEARCHES_LIMIT {
        let detail = format!("must not have more than {SEARCHES_LIMIT} search paths");
        errors.invalid(path, searches, detail);
    }
    if texts.join(" ").len() > SEARCH_CHARACTERS_LIMIT {
        let detail = format!(
            "must not have more than {SEARCH_CHARACTERS_LIMIT} characters (including spaces) in \
             the search list"
        );
        errors.invalid(path, searches, detail);
    }
    for (index, search) in texts.iter().enumerate().filter(|(_, text)| **text != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        if search.len() > names::SUBDOMAIN_BYTES_MAX {
            let detail = format!(
                "must be no more than {} characters",
                names::SUBDOMAIN_BYTES_MAX
            );
            errors.invalid(&path.index(index), search, detail);
        }
        if !search.split('.').all(is_search_label) {
            errors.invalid(&path.index(index), search, SEARCH_RULE);
        }
    }
}

/// A label of a domain in a search path may begin with an underscore, and have more inside.
fn is_search_label(label: &str) -> bool {
    let label = label.strip_prefix('_').unwrap_or(label).as_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    label.first().is_some_and(is_plain)
        && label.last().is_some_and(is_plain)
        && label
            .iter()
            .all(|byte| is_plain(byte) || matches!(byte, b'-' | b'_'))
}

/// Finds what is wrong with the host name that stands in for the one which follows from a pod.
pub(super) fn validate_host_name(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let Some(name) = spec.at("/hostnameOverride").as_str() else {
        return;
    };
    let path = path.child("hostnameOverride");
    for (field, key) in [
        ("/setHostnameAsFQDN", "setHostnameAsFQDN"),
        ("/hostNetwork", "hostNetwork"),
    ] {
        if spec.at(field).as_bool() == Some(true) {
            errors.forbidden(&path, format!("may not be specified when {key} is true"));
        }
    }
    if name.len() > HOST_NAME_BYTES_LIMIT {
        errors.too_long(&path, HOST_NAME_BYTES_LIMIT);
    }
    errors.invalid_each(&path, name, names::dns1123_subdomain(name));
}

/// Finds what is wrong with names that a pod's hosts file gets.
pub(super) fn validate_aliases(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    for (index, alias) in spec.at("/hostAliases").items().iter().enumerate() {
        let path = path.child("hostAliases").index(index);
        validate_address(alias.str_at("/ip"), &path.child("ip"), errors);
        for (index, name) in alias.at("/hostnames").items().iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            let path = path.child("hostnames").index(index);
            errors.invalid_each(&path, name, names::dns1123_subdomain(name));
        }
    }
}

/// Finds what is wrong with an address in a field that once took more spellings.
pub(super) fn validate_address(text: &str, path: &FieldPath, errors: &mut FieldErrors) {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            errors.invalid(path, text, "must not be an IPv4-mapped IPv6 address");
        }
        Ok(_) => {}
        Err(_) if has_leading_zeros(text) => {
            errors.invalid(path, text, "must not have leading 0s");
        }
        Err(_) => {
            let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            errors.invalid(path, text, detail);
        }
    }
}

/// Whether a text is an address but for zeros before its numbers.
fn has_leading_zeros(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let is_number =
        |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit()) && part.parse::<u8>().is_ok();
    parts.len() == 4 && parts.iter().all(is_number)
}
