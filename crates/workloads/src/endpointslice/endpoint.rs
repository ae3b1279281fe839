//! The endpoint of a pod: its addresses, its readiness and its ports.

use windlass_core::{Doc, Object, doc};

use super::topology::is_auto;
use crate::{is_pod_ready, is_pod_terminal};

/// The label of a node with its zone.
const ZONE: &str = "topology.kubernetes.io/zone";

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressType {
    V4,
    V6,
}

impl AddressType {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// The families that a Service has.
    pub(super) fn of_service(service: &Doc) -> Vec<Self> {
        let families = service.at("/spec/ipFamilies").items().iter();
        let families: Vec<Self> = families
            .filter_map(|family| match family.as_str()? {
                "IPv4" => Some(Self::V4),
                "IPv6" => Some(Self::V6),
                _ => None,
            })
            .collect();
        match service.str_at("/spec/clusterIP") {
            _ if !families.is_empty() => families,
            "" | "None" => vec![Self::V4, Self::V6],
            address if address.contains(':') => vec![Self::V6],
            _ => vec![Self::V4],
        }
    }

    /// The addresses of a pod of this family.
    fn addresses(self, pod: &Doc) -> Vec<Doc> {
        let all = pod.at("/status/podIPs").items().iter();
        let all = all.map(|it| it.str_at("/ip"));
        let is_v6 = self == Self::V6;
        let of = all.filter(|ip| !ip.is_empty() && ip.contains(':') == is_v6);
        of.map(Doc::from).collect()
    }
}

/// Returns true if a pod has an address and has not ended.
pub(crate) fn is_endpoint(pod: &Doc) -> bool {
    let has_address =
        !pod.at("/status/podIPs").items().is_empty() || !pod.str_at("/status/podIP").is_empty();
    has_address && !is_pod_terminal(pod)
}

/// The endpoint of a pod; `None` if it has no address of the family.
pub(super) fn endpoint(
    service: &Doc,
    pod: &Doc,
    node: Option<&Doc>,
    family: AddressType,
) -> Option<Doc> {
    let addresses = family.addresses(pod);
    if addresses.is_empty() {
        return None;
    }
    let (meta, spec) = (pod.meta(), pod.at("/spec"));
    let (is_serving, is_terminating) = (is_pod_ready(pod), meta.is_deleting());
    let is_ready = publishes_all(service) || (is_serving && !is_terminating);
    let conditions = doc!({
        "ready": is_ready, "serving": is_serving, "terminating": is_terminating
    });
    let mut fields = vec![
        ("addresses", Doc::from(addresses)),
        ("conditions", conditions),
        ("targetRef", target(pod)),
    ];
    let node_name = spec.str_at("/nodeName");
    if !node_name.is_empty() {
        fields.push(("nodeName", node_name.into()));
    }
    let zone = node.and_then(|node| node.meta().label(ZONE)).unwrap_or("");
    if !zone.is_empty() {
        fields.push(("zone", zone.into()));
    }
    if let Some(name) = hostname(service, pod) {
        fields.push(("hostname", name.into()));
    }
    fields.extend(hints(service, is_ready, zone, node_name).map(|hints| ("hints", hints)));
    Some(fields.into_iter().collect::<Object>().into())
}

/// The reference to a pod.
pub(crate) fn target(pod: &Doc) -> Doc {
    let meta = pod.meta();
    doc!({
        "kind": "Pod", "namespace": (meta.namespace()), "name": (meta.name()),
        "uid": (meta.uid_str())
    })
}

/// The name by which a pod is known within a Service, if it has one there.
pub(crate) fn hostname<'p>(service: &Doc, pod: &'p Doc) -> Option<&'p str> {
    let (name, meta) = (pod.str_at("/spec/hostname"), service.meta());
    let is_of_service =
        pod.str_at("/spec/subdomain") == meta.name() && pod.meta().namespace() == meta.namespace();
    (!name.is_empty() && is_of_service).then_some(name)
}

/// Returns true if a Service lists pods whether they are ready or not.
pub(crate) fn publishes_all(service: &Doc) -> bool {
    *service.at("/spec/publishNotReadyAddresses") == true
}

/// The nodes and zones that should use an endpoint, as the Service prefers them to.
fn hints(service: &Doc, is_ready: bool, zone: &str, node: &str) -> Option<Doc> {
    let wants_node = match service.str_at("/spec/trafficDistribution") {
        "PreferClose" | "PreferSameZone" => false,
        "PreferSameNode" => true,
        _ => return None,
    };
    if !is_ready || is_auto(service) {
        return None;
    }
    let zones = (!zone.is_empty()).then(|| ("forZones", doc!([{ "name": zone }])));
    let nodes = (wants_node && !node.is_empty()).then(|| ("forNodes", doc!([{ "name": node }])));
    let hints: Object = zones.into_iter().chain(nodes).collect();
    (!hints.is_empty()).then(|| hints.into())
}

/// The ports of a Service on a pod. One that the pod does not have is left out.
pub(crate) fn ports(service: &Doc, pod: &Doc) -> Vec<Doc> {
    let ports = service.at("/spec/ports").items().iter();
    ports
        .filter_map(|port| {
            let protocol = port.at("/protocol").as_str().unwrap_or("TCP");
            let number = target_port(pod, port, protocol)?;
            let mut fields = vec![
                ("name", Doc::from(port.str_at("/name"))),
                ("port", Doc::from(number)),
                ("protocol", Doc::from(protocol)),
            ];
            let app = port.get("appProtocol").filter(|it| !it.is_null());
            fields.extend(app.map(|it| ("appProtocol", it.clone())));
            Some(fields.into_iter().collect::<Object>().into())
        })
        .collect()
}

/// The number of a port on a pod. A name is looked for in containers, then in sidecars.
fn target_port(pod: &Doc, port: &Doc, protocol: &str) -> Option<i64> {
    let target = port.at("/targetPort");
    let Some(name) = target.as_str() else {
        return target.as_i64().or_else(|| port.at("/port").as_i64());
    };
    let containers = pod.at("/spec/containers").items().iter();
    let inits = pod.at("/spec/initContainers").items().iter();
    let sidecars = inits.filter(|it| it.str_at("/restartPolicy") == "Always");
    let mut all = containers
        .chain(sidecars)
        .flat_map(|it| it.at("/ports").items());
    let is_meant = |it: &&Doc| {
        let known = it.at("/protocol").as_str().unwrap_or("TCP");
        it.str_at("/name") == name && known == protocol
    };
    all.find(is_meant)?.at("/containerPort").as_i64()
}
