//! The search against one that tries everything.

use std::collections::HashSet;

use windlass_core::{Doc, Env, doc};
use windlass_placement::allocator::{Deadline, Inventory, Outcome};

use crate::allocator::objects::*;

const CASES: u64 = 10_000;

/// A small random world: up to six devices, and up to three requests in up to two claims.
fn world(env: &Env) -> World {
    let below = |bound: u64| env.random_below(bound);
    let letters = ["a", "b", "c"];
    let letter = || letters[usize::try_from(below(3)).unwrap()];
    let mut world = World::new();
    let count = below(7);
    let pool: Vec<Doc> = (0..count)
        .map(|at| {
            let mut device = device_with(&format!("d{at}"), "kind", letter());
            if below(4) > 0 {
                let value = doc!({ "string": (letter()) });
                device = device.with("/attributes/x", value).unwrap();
            }
            device
        })
        .collect();
    for at in 0..count {
        if below(5) == 0 {
            world = world.in_use("p", &format!("d{at}"));
        }
    }
    world = world.pool("p", pool);
    let mut names = vec![vec![]];
    for at in 0..=below(3) {
        if names.len() < 2 && below(3) == 0 {
            names.push(vec![]);
        }
        let claim = names.len() - 1;
        names[claim].push(format!("r{at}"));
    }
    for (at, names) in names.iter().enumerate() {
        let requests: Vec<Doc> = names.iter().map(|name| random_request(env, name)).collect();
        let mut constraints = Vec::new();
        if below(3) == 0 {
            let some: Vec<&str> = names
                .iter()
                .map(String::as_str)
                .filter(|_| below(2) == 0)
                .collect();
            let rule = if below(2) == 0 { matching } else { distinct };
            constraints.push(rule("gpu.example.com/x", &some));
        }
        world = world.claim(constrained(&format!("c{at}"), requests, constraints));
    }
    world
}

fn random_request(env: &Env, name: &str) -> Doc {
    let below = |bound: u64| env.random_below(bound);
    let selectors = ["true", "kind=a", "kind=b"];
    let wanted = || {
        let selector = selectors[usize::try_from(below(3)).unwrap()];
        wants(1 + below(3), &[selector])
    };
    match below(4) {
        0 => first_of(name, vec![("s0", wanted()), ("s1", wanted())]),
        1 => admin(name, &wanted()),
        _ => request(name, wanted()),
    }
}

/// One way to meet the requests: for each of them the alternative and the devices.
type Ways = Vec<(usize, Vec<usize>)>;

/// Whether any way to meet all requests is allowed, found by trying all.
fn exists(world: &World) -> bool {
    let devices = world.slices[0].at("/spec/devices").items();
    let mut asked = Vec::new();
    for (claim, doc) in world.claims.iter().enumerate() {
        for request in doc.at("/spec/devices/requests").items() {
            asked.push((claim, request.clone()));
        }
    }
    let mut options = Vec::new();
    for (_, request) in &asked {
        let list = match request.at("/firstAvailable").items() {
            [] => vec![request.at("/exactly").clone()],
            list => list.to_vec(),
        };
        let mut ways = Vec::new();
        for (at, wanted) in list.iter().enumerate() {
            let count = usize::try_from(wanted.at("/count").as_u64().unwrap()).unwrap();
            for set in subsets(devices.len(), count) {
                if set
                    .iter()
                    .all(|one| is_usable(world, wanted, &devices[*one]))
                {
                    ways.push((at, set));
                }
            }
        }
        options.push(ways);
    }
    any_way(&options, &mut Vec::new(), &|ways| {
        is_allowed(world, &asked, devices, ways)
    })
}

fn any_way(options: &[Ways], chosen: &mut Ways, allowed: &dyn Fn(&Ways) -> bool) -> bool {
    let Some(ways) = options.get(chosen.len()) else {
        return allowed(chosen);
    };
    ways.iter().any(|way| {
        chosen.push(way.clone());
        let found = any_way(options, chosen, allowed);
        chosen.pop();
        found
    })
}

fn subsets(count: usize, size: usize) -> Vec<Vec<usize>> {
    let all = 0u32..1 << count;
    all.filter(|set| set.count_ones() as usize == size)
        .map(|set| (0..count).filter(|at| set >> at & 1 == 1).collect())
        .collect()
}

fn is_usable(world: &World, wanted: &Doc, device: &Doc) -> bool {
    let is_admin = wanted.at("/adminAccess").as_bool() == Some(true);
    let name = device.str_at("/name");
    let in_use = world.allocated.iter().any(|id| id.device == *name);
    let selector = wanted.str_at("/selectors/0/cel/expression");
    let kind = device.str_at("/attributes/kind/string");
    (is_admin || !in_use) && (selector == "true" || selector == format!("kind={kind}"))
}

/// Whether no device is given twice and all constraints hold.
fn is_allowed(world: &World, asked: &[(usize, Doc)], devices: &[Doc], ways: &Ways) -> bool {
    let mut takers: Vec<Vec<(usize, bool)>> = vec![Vec::new(); devices.len()];
    for ((claim, request), (_, set)) in asked.iter().zip(ways) {
        let is_admin = request.at("/exactly/adminAccess").as_bool() == Some(true);
        for device in set {
            // A later request sees what earlier ones took; an administrator's is seen by others.
            let is_blocked = match is_admin {
                true => takers[*device].iter().any(|(other, _)| other == claim),
                false => !takers[*device].is_empty(),
            };
            if is_blocked {
                return false;
            }
            takers[*device].push((*claim, is_admin));
        }
    }
    world.claims.iter().enumerate().all(|(at, claim)| {
        let constraints = claim.at("/spec/devices/constraints").items().iter();
        let mut constraints = constraints;
        constraints.all(|constraint| {
            let names = constraint.at("/requests").items();
            let own = asked.iter().zip(ways).filter(|((claim, request), _)| {
                let is_named = names.iter().any(|name| name == request.str_at("/name"));
                *claim == at && (names.is_empty() || is_named)
            });
            let values: Vec<&str> = own
                .flat_map(|(_, (_, set))| set)
                .map(|one| devices[*one].str_at("/attributes/x/string"))
                .collect();
            let kinds: HashSet<&str> = values.iter().copied().collect();
            let wanted = match constraint.str_at("/matchAttribute") {
                "" => values.len(),
                _ => values.len().min(1),
            };
            !values.contains(&"") && kinds.len() == wanted
        })
    })
}

#[test]
fn a_solution_is_found_if_and_only_if_there_is_one() {
    let env = Env::seeded(20);
    let mut fits = 0;
    for case in 0..CASES {
        let world = world(&env);
        let expected = exists(&world);
        let inventory = Inventory::of(&world.slices);
        let plan = world.plan().unwrap();
        let deadline = Deadline::never();
        let outcome = world.allocate_from(&plan, &inventory, &node("n1"), &deadline);
        let outcome = outcome.unwrap();
        let is_found = matches!(outcome, Outcome::Fits { .. });
        let (claims, slices) = (&world.claims, &world.slices);
        assert_eq!(
            is_found, expected,
            "case {case}: {claims:?} from {slices:?}"
        );
        let again = world.allocate_from(&plan, &inventory, &node("n1"), &deadline);
        assert_eq!(again, Ok(outcome), "case {case} differs when repeated");
        fits += u64::from(is_found);
    }
    // Both answers must be common, or the comparison shows little.
    assert!(
        (CASES / 5..CASES * 4 / 5).contains(&fits),
        "{fits} of {CASES} fit"
    );
}
