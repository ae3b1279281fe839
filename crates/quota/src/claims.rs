//! Resource claims: devices by class.

use windlass_core::Doc;

use crate::amounts::{Amounts, add_amounts};
use crate::{OF_DEVICE_CLASS, whole};

/// The most devices that a claim can be given; what asks for all of them is charged for so many.
const DEVICES_LIMIT: i64 = 32;

pub(super) fn add_usage(used: &mut Amounts, claim: &Doc) {
    for request in claim.at("/spec/devices/requests").items() {
        let alternatives = request.at("/firstAvailable").items();
        if alternatives.is_empty() {
            add_amounts(used, &devices(request.at("/exactly")));
            continue;
        }
        // Of each class the worst that can come.
        let mut most = Amounts::new();
        for (class, count) in alternatives.iter().flat_map(devices) {
            if most.get(&class).is_none_or(|known| count > *known) {
                most.insert(class, count);
            }
        }
        add_amounts(used, &most);
    }
}

/// The largest number of devices of its class that a request can be given.
fn devices(request: &Doc) -> Amounts {
    let class = request.str_at("/deviceClassName");
    if class.is_empty() {
        return Amounts::new();
    }
    let count = match request.str_at("/allocationMode") {
        "ExactCount" => request.at("/count").as_i64().unwrap_or(0),
        "All" => DEVICES_LIMIT,
        // A mode of the future is not counted.
        _ => 0,
    };
    Amounts::from([(format!("{class}{OF_DEVICE_CLASS}"), whole(count))])
}
