//! What pretend devices are like.

use windlass_core::{Doc, doc};

/// A pretend GPU. Two of them share a root of the bus, half of them a NUMA node, and every other
/// one has twice the memory.
#[must_use]
pub fn gpu(node: &str, number: usize) -> Doc {
    let is_large = number % 2 == 1;
    let (model, memory) = match is_large {
        true => ("pretend-80", "80Gi"),
        false => ("pretend-40", "40Gi"),
    };
    doc!({
        "name": (format!("gpu-{number}")),
        "attributes": {
            "model": { "string": model },
            "index": { "int": number },
            "uuid": { "string": (uuid(node, number)) },
            "driverVersion": { "version": "1.0.0" },
            "numaNode": { "int": (number / 4) },
            "pcieRoot": { "string": (format!("pci0000:{:02x}", number / 2)) },
            "pretend": { "bool": true }
        },
        "capacity": { "memory": { "value": memory } }
    })
}

/// A name for the device that fits into an attribute.
fn uuid(node: &str, number: usize) -> String {
    let node = &node[node.len().saturating_sub(40)..];
    format!("gpu-{node}-{number}")
}
