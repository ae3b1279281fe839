//! Networks of cluster addresses (ServiceCIDR), and the addresses that are taken (IPAddress).

use std::net::IpAddr;

use windlass_core::{Doc, names};

use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;

/// An address, as upstream's messages show one.
const ADDRESS_EXPECTED: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const NETWORK_EXPECTED: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
const IMMUTABLE: &str = "field is immutable";
/// Networks of one ServiceCIDR: one of each family.
const NETWORKS_LIMIT: usize = 2;

/// Hooks of IPAddresses.
#[derive(Debug)]
pub struct IpAddresses;

/// Hooks of ServiceCIDRs.
#[derive(Debug)]
pub struct ServiceCidrs;

/// The fault of an address that is not in canonical form; `None` if there is none.
#[must_use]
pub fn address_fault(text: &str) -> Option<String> {
    let Some(address) = parse_sloppy(text) else {
        return Some(ADDRESS_EXPECTED.to_owned());
    };
    if has_leading_zeros(text) {
        return Some("must not have leading 0s".to_owned());
    }
    if is_mapped(address) {
        return Some("must not be an IPv4-mapped IPv6 address".to_owned());
    }
    let canonical = address.to_string();
    (canonical != text).then(|| format!("must be in canonical form ({canonical:?})"))
}

/// An address, with the leading zeros that old clients wrote.
fn parse_sloppy(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse().ok();
    }
    let parts: Vec<String> = text
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0".to_owned(),
            trimmed => trimmed.to_owned(),
        })
        .collect();
    parts.join(".").parse().ok()
}

fn has_leading_zeros(address: &str) -> bool {
    let is_long = |part: &str| part.len() > 1 && part.starts_with('0');
    !address.contains(':') && address.split('.').any(is_long)
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// A network: its address and the bits of its prefix.
fn parse_network(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = text.split_once('/')?;
    let address = parse_sloppy(address)?;
    let is_number = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    let bits: u32 = is_number.then(|| bits.parse().ok()).flatten()?;
    let all = if address.is_ipv4() { 32 } else { 128 };
    (bits <= all).then_some((address, bits))
}

/// The first address of the network that an address is in.
fn masked(address: IpAddr, bits: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}

/// The fault of a network that is not in canonical form; `None` if there is none.
fn network_fault(text: &str) -> Option<String> {
    let Some((address, bits)) = parse_network(text) else {
        return Some(NETWORK_EXPECTED.to_owned());
    };
    let (given, prefix) = text.split_once('/').unwrap_or((text, ""));
    if has_leading_zeros(given) || prefix.len() > 1 && prefix.starts_with('0') {
        return Some("must not have leading 0s in IP or prefix length".to_owned());
    }
    if is_mapped(address) {
        return Some("must not have an IPv4-mapped IPv6 address".to_owned());
    }
    let first = masked(address, bits);
    if first != address {
        return Some("must not have bits set beyond the prefix length".to_owned());
    }
    let canonical = format!("{first}/{bits}");
    (canonical != text).then(|| format!("must be in canonical form ({canonical:?})"))
}

impl Hooks for IpAddresses {
    fn validate(&self, address: &Doc, errors: &mut FieldErrors) {
        let field = FieldPath::new("spec").child("parentRef");
        let parent = address.at("/spec/parentRef");
        if parent.is_null() {
            return errors.required(&field, "");
        }
        let group = parent.str_at("/group");
        if !group.is_empty() {
            let faults = names::dns1123_subdomain(group);
            errors.invalid_each(&field.child("group"), group, faults);
        }
        for (key, is_required) in [("resource", true), ("name", true), ("namespace", false)] {
            let value = parent.get(key).and_then(Doc::as_str).unwrap_or_default();
            match value {
                "" if is_required => errors.required(&field.child(key), ""),
                value => {
                    errors.invalid_each(&field.child(key), value, names::path_segment(value));
                }
            }
        }
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        let parent = new.at("/spec/parentRef");
        if parent != old.at("/spec/parentRef") {
            let field = FieldPath::new("spec").child("parentRef");
            errors.invalid_shown(&field, shown_parent(parent), IMMUTABLE);
        }
    }
}

/// A parent reference as upstream shows its internal form.
fn shown_parent(parent: &Doc) -> String {
    let text = |key: &str| parent.get(key).and_then(Doc::as_str).unwrap_or_default();
    format!(
        "{{\"Group\":{:?},\"Resource\":{:?},\"Namespace\":{:?},\"Name\":{:?}}}",
        text("group"),
        text("resource"),
        text("namespace"),
        text("name")
    )
}

fn networks(object: &Doc) -> Vec<&str> {
    let items = object.at("/spec/cidrs").items().iter();
    items.filter_map(Doc::as_str).collect()
}

fn check_networks(object: &Doc, errors: &mut FieldErrors) {
    let field = FieldPath::new("spec").child("cidrs");
    let given = networks(object);
    if given.is_empty() {
        return errors.required(&field, "at least one CIDR required");
    }
    let list = object.at("/spec/cidrs");
    if given.len() > NETWORKS_LIMIT {
        let shown = format!("{{\"CIDRs\":{list}}}");
        return errors.invalid_shown(&field, shown, "may only hold up to 2 values");
    }
    for (index, network) in given.iter().enumerate() {
        if let Some(fault) = network_fault(network) {
            errors.invalid(&field.index(index), *network, fault);
        }
    }
    let family = |text: &&str| parse_network(text).map(|(address, _)| address.is_ipv4());
    if let [first, second] = &given[..]
        && family(first).is_some()
        && family(first) == family(second)
    {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and \
                   2001:db8::/64";
        errors.invalid(&field, list.clone(), why);
    }
}

impl Hooks for ServiceCidrs {
    fn validate_create(&self, object: &Doc, errors: &mut FieldErrors) {
        check_networks(object, errors);
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        let field = FieldPath::new("spec").child("cidrs");
        let (before, after) = (networks(old), networks(new));
        let changed = |count: usize, errors: &mut FieldErrors| {
            for index in (0..count).filter(|index| before[*index] != after[*index]) {
                errors.invalid(&field.index(index), after[index], IMMUTABLE);
            }
        };
        match (before.len(), after.len()) {
            (old_count, count) if old_count == count => changed(count, errors),
            // A second family may be added.
            (1, 2) => {
                changed(1, errors);
                check_networks(new, errors);
            }
            _ => errors.invalid(&field, new.at("/spec/cidrs").clone(), IMMUTABLE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_addresses_are_canonical() {
        for good in ["10.0.0.0/8", "0.0.0.0/0", "2001:db8::/64", "::/0"] {
            assert_eq!(network_fault(good), None, "{good}");
        }
        for bad in [
            "10.0.0.0",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "x/8",
            "10.0.0.1/8",
        ] {
            assert!(network_fault(bad).is_some(), "{bad}");
        }
        assert_eq!(address_fault("10.0.0.1"), None);
        assert!(address_fault("").is_some());
    }
}
