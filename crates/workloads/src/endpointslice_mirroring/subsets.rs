//! The endpoints that Endpoints ask for, by family of addresses and ports.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use windlass_core::{Doc, Object, doc};

use super::{MAX_ADDRESSES_PER_SUBSET, mirror::SliceKey};
use crate::endpointslice::pack::endpoint_key;

/// The endpoints of one slice, by what makes an endpoint the same one.
pub(super) type SliceEndpoints = BTreeMap<String, Doc>;

/// The slices that Endpoints ask for.
#[derive(Debug, Default)]
pub(super) struct Desired {
    /// The ports and endpoints of each slice.
    pub(super) slices: BTreeMap<SliceKey, (Vec<Doc>, SliceEndpoints)>,
    /// Addresses that are none.
    pub(super) invalid: usize,
    /// Addresses that are not mirrored, for whatever reason.
    pub(super) skipped: usize,
}

/// An address as the key of a map: the address, and the UID of what it belongs to.
type AddressKey = (String, String);

/// Addresses by key, true for those that are ready.
type Readiness = BTreeMap<AddressKey, bool>;

impl Desired {
    pub(super) fn of(endpoints: &Doc) -> Self {
        let mut desired = Self::default();
        let (addresses, by_port) = addresses_by_port(endpoints);
        // Ports with the same addresses make one subset.
        let mut subsets: BTreeMap<Readiness, Vec<Doc>> = BTreeMap::new();
        for (port, readiness) in by_port {
            subsets.entry(readiness).or_default().extend(port.port);
        }
        for (readiness, ports) in &subsets {
            desired.add_subset(&addresses, readiness, ports);
        }
        desired
    }

    /// Adds as many addresses of a subset as fit, the ready ones first.
    fn add_subset(
        &mut self,
        addresses: &BTreeMap<AddressKey, Doc>,
        readiness: &Readiness,
        ports: &[Doc],
    ) {
        let mut added = 0;
        let ready = readiness.iter().filter(|(_, is_ready)| **is_ready);
        let others = readiness.iter().filter(|(_, is_ready)| !**is_ready);
        for (key, is_ready) in ready.chain(others) {
            if added >= MAX_ADDRESSES_PER_SUBSET {
                break;
            }
            let Some((family, endpoint)) = endpoint(&addresses[key], *is_ready) else {
                self.invalid += 1;
                continue;
            };
            added += 1;
            let slice = self.slices.entry(SliceKey::new(family, ports));
            let (_, endpoints) = slice.or_insert_with(|| (ports.to_vec(), BTreeMap::new()));
            endpoints.insert(endpoint_key(&endpoint), endpoint);
        }
        self.skipped += readiness.len() - added;
    }
}

/// A port as the key of a map. `None` stands for a subset without ports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PortKey {
    key: Option<[String; 4]>,
}

/// A port with its key.
#[derive(Clone, Debug)]
struct KeyedPort {
    port: Option<Doc>,
}

/// All addresses, and those of each port. An address that is not ready in one subset is not ready.
fn addresses_by_port(endpoints: &Doc) -> (BTreeMap<AddressKey, Doc>, Vec<(KeyedPort, Readiness)>) {
    let mut addresses = BTreeMap::new();
    let mut ports: BTreeMap<PortKey, (KeyedPort, Readiness)> = BTreeMap::new();
    for subset in endpoints.at("/subsets").items() {
        let mut of_subset: Vec<Option<&Doc>> =
            subset.at("/ports").items().iter().map(Some).collect();
        if of_subset.is_empty() {
            of_subset.push(None);
        }
        for (at, is_ready) in [("/addresses", true), ("/notReadyAddresses", false)] {
            for address in subset.at(at).items() {
                let text = |at: &str| address.str_at(at).to_owned();
                let key = (text("/ip"), text("/targetRef/uid"));
                addresses
                    .entry(key.clone())
                    .or_insert_with(|| address.clone());
                for port in &of_subset {
                    let entry = ports.entry(port_key(*port));
                    let (_, readiness) = entry.or_insert_with(|| keyed(*port));
                    let known = readiness.entry(key.clone()).or_insert(is_ready);
                    *known &= is_ready;
                }
            }
        }
    }
    (addresses, ports.into_values().collect())
}

fn port_key(port: Option<&Doc>) -> PortKey {
    let key = port.map(|port| {
        let text = |at: &str| port.str_at(at).to_owned();
        let number = port.at("/port").as_i64().unwrap_or(0).to_string();
        [
            text("/name"),
            number,
            text("/protocol"),
            text("/appProtocol"),
        ]
    });
    PortKey { key }
}

fn keyed(port: Option<&Doc>) -> (KeyedPort, Readiness) {
    let port = port.map(slice_port);
    (KeyedPort { port }, Readiness::new())
}

/// A port of Endpoints as a port of an EndpointSlice.
fn slice_port(port: &Doc) -> Doc {
    let protocol = port.at("/protocol").as_str().unwrap_or("TCP");
    let mut fields = vec![
        ("name", Doc::from(port.str_at("/name"))),
        ("port", port.at("/port").clone()),
        ("protocol", Doc::from(protocol)),
    ];
    let app = port.get("appProtocol").filter(|it| !it.is_null());
    fields.extend(app.map(|it| ("appProtocol", it.clone())));
    fields.into_iter().collect::<Object>().into()
}

/// An address of Endpoints as an endpoint with its family; `None` if it is no address.
fn endpoint(address: &Doc, is_ready: bool) -> Option<(&'static str, Doc)> {
    let ip = parse(address.str_at("/ip"))?;
    let family = if ip.is_ipv4() { "IPv4" } else { "IPv6" };
    let mut fields = vec![
        ("addresses", Doc::from(vec![Doc::from(ip.to_string())])),
        ("conditions", doc!({ "ready": is_ready })),
    ];
    for field in ["hostname", "nodeName", "targetRef"] {
        let value = address.get(field).filter(|it| !it.is_null());
        let value = value.filter(|it| it.as_str() != Some(""));
        fields.extend(value.map(|it| (field, it.clone())));
    }
    Some((family, fields.into_iter().collect::<Object>().into()))
}

/// Reads an address as Kubernetes always has: numbers may start with zeros.
fn parse(text: &str) -> Option<IpAddr> {
    if let Ok(v6) = text.parse::<Ipv6Addr>() {
        return Some(v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4));
    }
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        let is_number = !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
        *octet = part.parse::<u8>().ok().filter(|_| is_number)?;
    }
    parts
        .next()
        .is_none()
        .then(|| Ipv4Addr::from(octets).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subset(addresses: &[&str], others: &[&str], ports: &[i64]) -> Doc {
        let list =
            |ips: &[&str]| -> Vec<Doc> { ips.iter().map(|ip| doc!({ "ip": (*ip) })).collect() };
        let ports: Vec<Doc> = ports.iter().map(|it| doc!({ "port": (*it) })).collect();
        doc!({
            "addresses": (list(addresses)), "notReadyAddresses": (list(others)), "ports": ports
        })
    }

    fn sizes(subsets: &[Doc]) -> Vec<usize> {
        let desired = Desired::of(&doc!({ "subsets": (subsets.to_vec()) }));
        let sizes = desired
            .slices
            .values()
            .map(|(ports, all)| 10 * ports.len() + all.len());
        sizes.collect()
    }

    #[test]
    fn addresses_are_parsed_as_ever() {
        let text = |text: &str| parse(text).map(|it| it.to_string());
        assert_eq!(text("10.0.0.010").as_deref(), Some("10.0.0.10"));
        assert_eq!(text("::ffff:10.0.0.1").as_deref(), Some("10.0.0.1"));
        assert_eq!(text("2001:DB8::0:1").as_deref(), Some("2001:db8::1"));
        for wrong in [
            "",
            "10.0.0",
            "10.0.0.256",
            "10.0.0.1.2",
            "a.b.c.d",
            "10.0.0.+1",
        ] {
            assert_eq!(text(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn subsets_are_repacked() {
        let one = subset(&["10.0.0.1"], &[], &[80]);
        let two = subset(&["10.0.0.1"], &[], &[90]);
        assert_eq!(
            sizes(&[one.clone(), two]),
            [21],
            "both ports have the same addresses"
        );
        let more = subset(&["10.0.0.2"], &[], &[80]);
        assert_eq!(
            sizes(&[one.clone(), more]),
            [12],
            "both addresses have the same port"
        );
        let v6 = subset(&["10.0.0.1", "::1"], &["10.0.0.2"], &[80]);
        assert_eq!(sizes(&[v6]), [12, 11], "a slice for each family");
        let bare = subset(&["10.0.0.1"], &[], &[]);
        assert_eq!(sizes(std::slice::from_ref(&bare)), [1]);
        assert_eq!(
            sizes(&[bare, one]),
            [11],
            "no ports and some ports of the same addresses"
        );
    }

    #[test]
    fn not_ready_wins_and_invalid_addresses_are_counted() {
        let subsets = doc!([
            (subset(&["10.0.0.1", "x"], &[], &[80])),
            (subset(&[], &["10.0.0.1"], &[80]))
        ]);
        let desired = Desired::of(&doc!({ "subsets": subsets }));
        assert_eq!((desired.invalid, desired.skipped), (1, 1));
        let (_, endpoints) = desired.slices.values().next().unwrap();
        let endpoint = endpoints.values().next().unwrap();
        assert_eq!(*endpoint.at("/conditions/ready"), false);
    }
}
