//! How many devices, from where, and which are left.

use windlass_core::doc;
use windlass_placement::allocator::{AllocateError, Outcome};

use crate::allocator::objects::*;

#[test]
fn one_device_is_taken_and_pinned_to_its_node() {
    let world = World::new()
        .pool("p", devices(1))
        .claim(claim("c", vec![exact("r", 1, &[])]));
    let allocation = &world.allocations()[0];
    assert_eq!(results(allocation), ["r:p/d0000"]);
    let term = doc!({ "matchFields": [
        { "key": "metadata.name", "operator": "In", "values": ["n1"] }
    ] });
    assert_eq!(
        *allocation.at("/nodeSelector"),
        doc!({ "nodeSelectorTerms": [term] })
    );
    let result = doc!({ "request": "r", "driver": DRIVER, "pool": "p", "device": "d0000" });
    assert_eq!(*allocation.at("/devices/results/0"), result);
}

#[test]
fn a_claim_without_requests_needs_no_device() {
    let world = World::new().claim(claim("c", vec![]));
    assert_eq!(world.results(), [Vec::<String>::new()]);
    assert!(world.allocations()[0].at("/nodeSelector").is_null());
}

#[test]
fn devices_of_another_node_do_not_count() {
    let world = World::new()
        .pool("p", devices(1))
        .claim(claim("c", vec![exact("r", 1, &[])]));
    let outcome = world.allocate_on(&node("n2")).unwrap();
    assert!(matches!(outcome, Outcome::Refused));
}

#[test]
fn devices_of_every_node_and_of_selected_nodes_count() {
    let everywhere = slice("e", devices(1));
    let everywhere = everywhere.without("/spec/nodeName").unwrap();
    let selector = doc!({ "nodeSelectorTerms": [{ "matchExpressions": [
        { "key": "zone", "operator": "In", "values": ["a"] }
    ] }] });
    let selected = slice("s", devices(1));
    let selected = selected.without("/spec/nodeName").unwrap();
    let selected = selected.with("/spec/nodeSelector", &selector).unwrap();
    let world = World::new()
        .slice(everywhere.with("/spec/allNodes", true).unwrap())
        .slice(selected)
        .claim(claim("c", vec![exact("r", 2, &[])]));
    assert_eq!(world.results(), [["r:e/d0000", "r:s/d0000"]]);
    assert_eq!(*world.allocations()[0].at("/nodeSelector"), selector);

    let other = doc!({ "metadata": { "name": "n1", "labels": { "zone": "b" } } });
    assert!(matches!(world.allocate_on(&other), Ok(Outcome::Refused)));
}

#[test]
fn a_device_that_is_usable_everywhere_leaves_no_selector() {
    let everywhere = slice("e", devices(1));
    let everywhere = everywhere.without("/spec/nodeName").unwrap();
    let world = World::new()
        .slice(everywhere.with("/spec/allNodes", true).unwrap())
        .claim(claim("c", vec![exact("r", 1, &[])]));
    assert!(world.allocations()[0].at("/nodeSelector").is_null());
}

#[test]
fn a_selector_that_cannot_be_understood_names_its_slice() {
    let term = doc!({ "matchExpressions": [{ "key": "zone", "operator": "Like" }] });
    let slice = slice("p", devices(1)).without("/spec/nodeName").unwrap();
    let slice = slice.with("/spec/nodeSelector", doc!({ "nodeSelectorTerms": [term] }));
    let world = World::new()
        .slice(slice.unwrap())
        .claim(claim("c", vec![exact("r", 1, &[])]));
    assert_eq!(
        world.error(),
        "node selector in ResourceSlice slice-p: \"Like\" is not a valid selector operator"
    );
}

#[test]
fn one_request_takes_from_several_pools() {
    let world = World::new()
        .pool("b", devices(1))
        .pool("a", devices(1))
        .claim(claim("c", vec![exact("r", 2, &[])]));
    assert_eq!(world.results(), [["r:a/d0000", "r:b/d0000"]]);
}

#[test]
fn a_newer_generation_that_is_incomplete_takes_the_old_one_out() {
    let newer = slice("p", devices(3))
        .with("/metadata/name", "newer")
        .and_then(|slice| slice.with("/spec/pool/generation", 2))
        .and_then(|slice| slice.with("/spec/pool/resourceSliceCount", 2))
        .unwrap();
    let world = World::new()
        .pool("p", devices(1))
        .slice(newer.clone())
        .claim(claim("c", vec![exact("r", 1, &[])]));
    assert_eq!(
        world.refusal(),
        "node n1: claim ns/c, request r needs 1 device, 0 free; pools being updated: \
         gpu.example.com/p; no device is free"
    );
    let second = newer.with("/metadata/name", "second").unwrap();
    let second = second.with("/spec/devices", vec![device("e0")]).unwrap();
    let complete = world.slice(second);
    assert_eq!(complete.results(), [["r:p/d0000"]]);
}

#[test]
fn an_old_generation_is_forgotten_when_a_newer_one_began_elsewhere() {
    let elsewhere = slice("p", devices(1))
        .with("/metadata/name", "elsewhere")
        .and_then(|slice| slice.with("/spec/nodeName", "n2"))
        .and_then(|slice| slice.with("/spec/pool/generation", 2))
        .unwrap();
    let here = slice("p", devices(1));
    let here = here.with("/spec/pool/resourceSliceCount", 2).unwrap();
    let world = World::new()
        .slice(here)
        .slice(elsewhere)
        .claim(claim("c", vec![exact("r", 1, &[])]));
    assert!(world.refusal().ends_with("0 free; no device is free"));
}

#[test]
fn duplicate_devices_make_a_pool_invalid() {
    let world = World::new()
        .pool("p", vec![device("d"), device("d")])
        .claim(claim("c", vec![exact("r", 1, &[])]));
    assert_eq!(world.allocate(), Err(AllocateError::InvalidPools));
    assert_eq!(world.error(), "invalid resource pools were encountered");
    let world = world.pool("q", devices(1));
    assert_eq!(world.results(), [["r:q/d0000"]]);
}

#[test]
fn too_few_devices_are_a_refusal_and_not_an_error() {
    let world = World::new().claim(claim("c", vec![exact("r", 1, &[])]));
    assert_eq!(
        world.refusal(),
        "node n1: claim ns/c, request r needs 1 device, 0 free; no device is free"
    );
    let world = World::new()
        .pool("p", devices(3))
        .in_use("p", "d0001")
        .claim(claim("c", vec![exact("r", 3, &[])]));
    assert_eq!(
        world.refusal(),
        "node n1: claim ns/c, request r needs 3 devices, 2 free, 1 in use; free: \
         gpu.example.com/p/d0000, gpu.example.com/p/d0002"
    );
}

#[test]
fn devices_in_use_are_passed_over() {
    let world = World::new()
        .pool("p", devices(2))
        .in_use("p", "d0000")
        .claim(claim("c", vec![exact("r", 1, &[])]));
    assert_eq!(world.results(), [["r:p/d0001"]]);
}

#[test]
fn requests_of_several_claims_get_different_devices() {
    let world = World::new()
        .pool("p", devices(3))
        .claim(claim("a", vec![exact("r", 1, &[]), exact("s", 1, &[])]))
        .claim(claim("b", vec![exact("r", 1, &[])]));
    let expected = [vec!["r:p/d0000", "s:p/d0001"], vec!["r:p/d0002"]];
    assert_eq!(world.results(), expected);
}

#[test]
fn all_devices_that_match_are_taken() {
    let pools = || {
        World::new()
            .pool(
                "p",
                vec![
                    device_with("d0", "kind", "a"),
                    device_with("d1", "kind", "b"),
                ],
            )
            .pool("q", vec![device_with("d0", "kind", "a")])
    };
    let all = |selectors: &[&str]| request("all", wants_all(selectors));
    let world = pools().claim(claim("c", vec![all(&["kind=a"])]));
    assert_eq!(world.results(), [["all:p/d0", "all:q/d0"]]);

    let after = pools().claim(claim(
        "c",
        vec![exact("one", 1, &["kind=b"]), all(&["kind=a"])],
    ));
    assert_eq!(after.results(), [["one:p/d1", "all:p/d0", "all:q/d0"]]);
    let before = pools().claim(claim("c", vec![all(&["kind=a"]), exact("one", 1, &[])]));
    assert_eq!(before.results(), [["all:p/d0", "all:q/d0", "one:p/d1"]]);

    for requests in [
        vec![all(&[]), exact("one", 1, &[])],
        vec![exact("one", 1, &[]), all(&[])],
    ] {
        let world = pools().claim(claim("c", requests));
        assert!(world.refusal().contains("no combination of devices"));
    }
}

#[test]
fn all_means_at_least_one_and_none_in_use() {
    let world = World::new()
        .pool("p", devices(2))
        .claim(claim("c", vec![request("r", wants_all(&["false"]))]));
    assert_eq!(
        world.refusal(),
        "node n1: claim ns/c, request r needs all matching devices, 0 free, 2 not matching; no \
         device is free"
    );
    let used = World::new()
        .pool("p", devices(2))
        .in_use("p", "d0001")
        .claim(claim("c", vec![request("r", wants_all(&[]))]));
    assert!(
        used.refusal()
            .contains("needs all matching devices, 1 free, 1 in use")
    );
    let shared = World::new()
        .pool("p", devices(2))
        .in_use("p", "d0001")
        .claim(claim("c", vec![admin("r", &wants_all(&[]))]));
    assert_eq!(shared.results(), [["r:p/d0000", "r:p/d0001"]]);
}

#[test]
fn all_needs_to_know_every_pool() {
    let incomplete = slice("p", devices(1));
    let incomplete = incomplete.with("/spec/pool/resourceSliceCount", 2).unwrap();
    let world = World::new()
        .slice(incomplete)
        .claim(claim("c", vec![request("r", wants_all(&[]))]));
    assert_eq!(
        world.error(),
        "claim ns/c, request r: asks for all devices, but resource pool gpu.example.com/p is \
         currently being updated"
    );
    let world = World::new()
        .pool("p", vec![device("d"), device("d")])
        .claim(claim("c", vec![request("r", wants_all(&[]))]));
    assert!(
        world
            .error()
            .ends_with("pool gpu.example.com/p is currently invalid")
    );
}

#[test]
fn administrators_share_devices_but_no_claim_gets_one_twice() {
    let world = World::new()
        .pool("p", devices(1))
        .in_use("p", "d0000")
        .claim(claim("a", vec![admin("r", &wants(1, &[]))]))
        .claim(claim("b", vec![admin("r", &wants(1, &[]))]));
    assert_eq!(world.results(), [["r:p/d0000"], ["r:p/d0000"]]);
    let result = world.allocations()[0].at("/devices/results/0").clone();
    assert_eq!(*result.at("/adminAccess"), true);

    let twice = World::new().pool("p", devices(1)).claim(claim(
        "a",
        vec![admin("r", &wants(1, &[])), admin("s", &wants(1, &[]))],
    ));
    assert!(twice.refusal().contains("no combination of devices"));
}
