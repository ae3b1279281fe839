//! What is written about an allocation.

use windlass_core::{Doc, doc};

use crate::allocator::objects::*;

fn opaque(driver: &str) -> Doc {
    doc!({ "driver": driver, "parameters": { "a": 1 } })
}

fn class_with_config(name: &str) -> Doc {
    class(name, &[])
        .with("/spec/config", doc!([{ "opaque": (opaque(name)) }]))
        .unwrap()
}

fn of_class(class: &str) -> Doc {
    wants(1, &[]).with("/deviceClassName", class).unwrap()
}

#[test]
fn the_config_of_a_class_stands_once_with_all_its_requests() {
    let requests = vec![
        request("a", of_class("fast")),
        request("b", of_class("slow")),
        request("c", of_class("fast")),
    ];
    let world = World::new()
        .class(class_with_config("fast"))
        .class(class_with_config("slow"))
        .pool("p", devices(3))
        .claim(claim("c", requests));
    let expected = doc!([
        { "source": "FromClass", "requests": ["a", "c"], "opaque": (opaque("fast")) },
        { "source": "FromClass", "requests": ["b"], "opaque": (opaque("slow")) }
    ]);
    assert_eq!(*world.allocations()[0].at("/devices/config"), expected);
}

#[test]
fn the_config_of_a_claim_stands_once_if_it_concerns_what_was_chosen() {
    let list = first_of("c", vec![("big", wants(9, &[])), ("small", wants(1, &[]))]);
    let config = doc!([
        { "opaque": (opaque("everybody")) },
        { "requests": ["a", "b"], "opaque": (opaque("both")) },
        { "requests": ["c/big"], "opaque": (opaque("not-chosen")) },
        { "requests": ["c/small"], "opaque": (opaque("chosen")) },
        { "requests": ["c"], "opaque": (opaque("parent")) }
    ]);
    let claim = claim("c", vec![exact("a", 1, &[]), exact("b", 1, &[]), list])
        .with("/spec/devices/config", config)
        .unwrap();
    let world = World::new().pool("p", devices(3)).claim(claim);
    let expected = doc!([
        { "source": "FromClaim", "opaque": (opaque("everybody")) },
        { "source": "FromClaim", "requests": ["a", "b"], "opaque": (opaque("both")) },
        { "source": "FromClaim", "requests": ["c/small"], "opaque": (opaque("chosen")) },
        { "source": "FromClaim", "requests": ["c"], "opaque": (opaque("parent")) }
    ]);
    assert_eq!(*world.allocations()[0].at("/devices/config"), expected);
}

#[test]
fn several_drivers_and_classes_serve_one_claim() {
    let nic = slice("nics", vec![device_with("n0", "kind", "nic")])
        .with("/spec/driver", "nic.example.com")
        .unwrap();
    let requests = vec![
        exact("gpu", 1, &["kind=gpu"]),
        request("nic", of_class("nic")),
    ];
    let world = World::new()
        .class(class("nic", &["kind=nic"]))
        .pool("gpus", vec![device_with("g0", "kind", "gpu")])
        .slice(nic)
        .claim(claim("c", requests));
    assert_eq!(world.results(), [["gpu:gpus/g0", "nic:nics/n0"]]);
    let results = world.allocations()[0].at("/devices/results").clone();
    assert_eq!(results.str_at("/1/driver"), "nic.example.com");
}

#[test]
fn the_order_is_by_driver_pool_slice_and_list() {
    let part = |name: &str, devices: Vec<Doc>| {
        slice("b", devices)
            .with("/metadata/name", name)
            .and_then(|slice| slice.with("/spec/pool/resourceSliceCount", 2))
            .unwrap()
    };
    let slices = [
        part("z", vec![device("first")]),
        part("y", vec![device("z"), device("a")]),
        slice("a", vec![device("only")]),
        slice("c", vec![device("early")])
            .with("/spec/driver", "a.example.com")
            .unwrap(),
    ];
    let expected = ["r:c/early", "r:a/only", "r:b/z", "r:b/a", "r:b/first"];
    for rotation in 0..slices.len() {
        let mut world = World::new().claim(claim("c", vec![exact("r", 5, &[])]));
        world.slices = slices.to_vec();
        world.slices.rotate_left(rotation);
        assert_eq!(world.results(), [expected]);
    }
}

#[test]
fn tolerations_are_copied_to_the_result() {
    let tolerations = doc!([{ "key": "k", "operator": "Exists" }]);
    let wanted = wants(1, &[]).with("/tolerations", &tolerations).unwrap();
    let world = World::new()
        .pool("p", devices(1))
        .claim(claim("c", vec![request("r", wanted)]));
    let allocation = &world.allocations()[0];
    assert_eq!(
        *allocation.at("/devices/results/0/tolerations"),
        tolerations
    );
}
