//! Lists of alternatives, of which the first that can be met is taken.

use windlass_placement::allocator::Outcome;

use crate::allocator::objects::*;

fn score(world: &World) -> i64 {
    match world.allocate().unwrap() {
        Outcome::Fits { score, .. } => score,
        Outcome::Refused => panic!("refused"),
    }
}

#[test]
fn the_first_alternative_that_can_be_met_is_taken() {
    let list = first_of(
        "gpu",
        vec![("big", wants(2, &[])), ("small", wants(1, &[]))],
    );
    let one = World::new()
        .pool("p", devices(1))
        .claim(claim("c", vec![list.clone()]));
    assert_eq!(one.results(), [["gpu/small:p/d0000"]]);
    assert_eq!(score(&one), 7);
    let two = World::new()
        .pool("p", devices(2))
        .claim(claim("c", vec![list.clone()]));
    assert_eq!(two.results(), [["gpu/big:p/d0000", "gpu/big:p/d0001"]]);
    assert_eq!(score(&two), 8);
    let none = World::new().claim(claim("c", vec![list]));
    assert_eq!(
        none.refusal(),
        "node n1: claim ns/c, request gpu/big needs 2 devices, 0 free; claim ns/c, request \
         gpu/small needs 1 device, 0 free; no device is free"
    );
}

#[test]
fn another_request_can_force_a_later_alternative() {
    let list = first_of("a", vec![("two", wants(2, &[])), ("one", wants(1, &[]))]);
    let world = World::new()
        .pool("p", devices(2))
        .claim(claim("c", vec![list, exact("b", 1, &[])]));
    assert_eq!(world.results(), [["a/one:p/d0000", "b:p/d0001"]]);
}

#[test]
fn alternatives_have_their_own_selectors_and_constraints() {
    let pool = vec![device_with("x", "kind", "a"), device_with("y", "kind", "b")];
    let list = first_of(
        "r",
        vec![("a", wants(2, &["kind=a"])), ("b", wants(1, &["kind=b"]))],
    );
    let world = World::new()
        .pool("p", pool.clone())
        .claim(claim("c", vec![list]));
    assert_eq!(world.results(), [["r/b:p/y"]]);

    let list = || first_of("r", vec![("two", wants(2, &[])), ("one", wants(1, &[]))]);
    for reference in ["r", "r/two"] {
        let world = World::new().pool("p", pool.clone()).claim(constrained(
            "c",
            vec![list()],
            vec![matching("gpu.example.com/kind", &[reference])],
        ));
        assert_eq!(world.results(), [["r/one:p/x"]], "{reference}");
    }
    let world = World::new().pool("p", pool).claim(constrained(
        "c",
        vec![list()],
        vec![matching("gpu.example.com/kind", &["r/one"])],
    ));
    assert_eq!(world.results(), [["r/two:p/x", "r/two:p/y"]]);
}

#[test]
fn an_alternative_that_is_too_big_for_a_claim_gives_way() {
    let list = first_of("a", vec![("big", wants(32, &[])), ("small", wants(1, &[]))]);
    let world = World::new()
        .pool("p", devices(64))
        .claim(claim("c", vec![list, exact("b", 31, &[])]));
    let results = &world.results()[0];
    assert_eq!(results.len(), 32);
    assert_eq!(results[0], "a/small:p/d0000");
}

#[test]
fn all_devices_of_nothing_gives_way_to_the_next() {
    let list = first_of(
        "a",
        vec![("all", wants_all(&["false"])), ("one", wants(1, &[]))],
    );
    let world = World::new()
        .pool("p", devices(1))
        .claim(claim("c", vec![list]));
    assert_eq!(world.results(), [["a/one:p/d0000"]]);
}
