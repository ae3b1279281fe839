//! The limits: of devices, and of time.

use std::{cell::Cell, time::Duration};

use windlass_placement::allocator::{AllocateError, Deadline, Inventory, Outcome};

use crate::allocator::objects::*;

#[test]
fn a_claim_has_at_most_thirty_two_devices() {
    let wanted = |counts: &[u64]| {
        let requests = counts.iter().enumerate();
        let requests = requests.map(|(at, count)| exact(&format!("r{at}"), *count, &[]));
        World::new()
            .pool("p", devices(40))
            .claim(claim("c", requests.collect()))
    };
    assert_eq!(wanted(&[32]).results()[0].len(), 32);
    let text = "claim ns/c: number of requested devices 33 exceeds the claim limit of 32";
    assert_eq!(wanted(&[33]).error(), text);
    assert_eq!(wanted(&[16, 17]).error(), text);
}

#[test]
fn a_search_ends_when_its_time_is_up() {
    // Each device is one of a kind, so that no two choices are alike.
    let pool = (0..24).map(|at| device_with(&format!("d{at}"), "x", &at.to_string()));
    let requests = (0..12).map(|at| exact(&format!("r{at}"), 1, &[]));
    let mut constraints = vec![distinct("gpu.example.com/x", &[])];
    constraints.push(distinct("gpu.example.com/absent", &["r11"]));
    let world = World::new().pool("p", pool.collect()).claim(constrained(
        "c",
        requests.collect(),
        constraints,
    ));
    let now = Cell::new(Duration::ZERO);
    let clock = || {
        now.set(now.get() + Duration::from_millis(1));
        now.get()
    };
    let deadline = Deadline::after(Duration::from_millis(10), &clock);
    let inventory = Inventory::of(&world.slices);
    let plan = world.plan().unwrap();
    let outcome = world.allocate_from(&plan, &inventory, &node("n1"), &deadline);
    assert_eq!(outcome, Err(AllocateError::TimedOut));
    assert_eq!(
        outcome.unwrap_err().to_string(),
        "timed out trying to allocate devices"
    );
}

#[test]
fn selectors_are_not_asked_any_more_when_the_time_is_up() {
    let world = World::new()
        .pool("p", devices(24))
        .claim(claim("c", vec![exact("r", 1, &["true"])]));
    let looks = Cell::new(0);
    let clock = || {
        looks.set(looks.get() + 1);
        Duration::from_millis(looks.get())
    };
    let deadline = Deadline::after(Duration::from_millis(10), &clock);
    let inventory = Inventory::of(&world.slices);
    let plan = world.plan().unwrap();
    let outcome = world.allocate_from(&plan, &inventory, &node("n1"), &deadline);
    assert_eq!(outcome, Err(AllocateError::TimedOut));
    assert!(looks.get() <= 11, "{} looks", looks.get());
    // What was not asked is not remembered either.
    let outcome = world.allocate_from(&plan, &inventory, &node("n1"), &Deadline::never());
    assert!(matches!(outcome, Ok(Outcome::Fits { .. })));
}

#[test]
fn a_limit_of_zero_is_none() {
    let world = World::new()
        .pool("p", devices(1))
        .claim(claim("c", vec![exact("r", 1, &[])]));
    let deadline = Deadline::after(Duration::ZERO, &|| Duration::MAX);
    let inventory = Inventory::of(&world.slices);
    let plan = world.plan().unwrap();
    let outcome = world.allocate_from(&plan, &inventory, &node("n1"), &deadline);
    assert!(matches!(outcome, Ok(Outcome::Fits { .. })));
}

#[test]
fn one_device_too_few_is_found_without_trying_every_set() {
    let looks = Cell::new(0);
    let clock = || {
        looks.set(looks.get() + 1);
        Duration::ZERO
    };
    let deadline = Deadline::after(Duration::from_secs(1), &clock);
    let cases = [
        World::new()
            .pool("p", devices(20))
            .claim(claim("c", vec![exact("r", 21, &[])])),
        World::new()
            .pool("p", devices(20))
            .claim(claim("c", vec![exact("r", 10, &[]), exact("s", 11, &[])])),
        World::new()
            .pool("p", devices(31))
            .claim(claim("a", vec![exact("r", 16, &[])]))
            .claim(claim("b", vec![exact("r", 16, &[])])),
    ];
    for world in cases {
        let inventory = Inventory::of(&world.slices);
        let plan = world.plan().unwrap();
        let outcome = world.allocate_from(&plan, &inventory, &node("n1"), &deadline);
        assert!(matches!(outcome, Ok(Outcome::Refused)));
    }
    // The clock is looked at every 64 steps.
    assert!(looks.get() < 20, "{} looks", looks.get());
}

#[test]
fn an_inventory_follows_its_slices() {
    let world = World::new().claim(claim("c", vec![exact("r", 1, &[])]));
    let plan = world.plan().unwrap();
    let mut inventory = Inventory::default();
    let fits = |inventory: &Inventory| {
        let outcome = world.allocate_from(&plan, inventory, &node("n1"), &Deadline::never());
        matches!(outcome, Ok(Outcome::Fits { .. }))
    };
    assert!(!fits(&inventory));
    inventory.insert(&slice("p", devices(1)));
    assert!(fits(&inventory));
    inventory.insert(&slice("p", vec![]));
    assert!(!fits(&inventory));
    let everywhere = slice("q", devices(1)).without("/spec/nodeName").unwrap();
    inventory.insert(&everywhere.with("/spec/allNodes", true).unwrap());
    assert!(fits(&inventory));
    inventory.remove("slice-q");
    assert!(!fits(&inventory));
    assert_eq!(inventory.len(), 1);
}
