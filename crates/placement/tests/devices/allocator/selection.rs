//! Which devices: selectors, constraints and taints.

use windlass_core::{Doc, doc};

use crate::allocator::objects::*;

#[test]
fn an_unfavourable_order_is_undone_within_a_claim_and_across_claims() {
    let pools = || {
        World::new().pool(
            "p",
            vec![
                device_with_memory("b", "2Gi"),
                device_with_memory("a", "1Gi"),
            ],
        )
    };
    let (small, large) = (&["memory>=1Gi"][..], &["memory>=2Gi"][..]);
    let one = pools().claim(claim(
        "c",
        vec![exact("r0", 1, small), exact("r1", 1, large)],
    ));
    assert_eq!(one.results(), [["r0:p/a", "r1:p/b"]]);
    let two = pools()
        .claim(claim("c0", vec![exact("r", 1, small)]))
        .claim(claim("c1", vec![exact("r", 1, large)]));
    assert_eq!(two.results(), [["r:p/a"], ["r:p/b"]]);
}

#[test]
fn devices_must_pass_the_class_and_the_request() {
    let world = World::new().class(class("big", &["memory>=2Gi"])).pool(
        "p",
        vec![
            device_with_memory("a", "1Gi"),
            device_with_memory("b", "2Gi"),
        ],
    );
    let mut wanted = wants(1, &["memory>=1Gi"]);
    wanted = wanted.with("/deviceClassName", "big").unwrap();
    let world = world.claim(claim("c", vec![request("r", wanted)]));
    assert_eq!(world.results(), [["r:p/b"]]);
}

#[test]
fn a_class_must_be_named_and_exist() {
    let of_class = |name: &str| {
        let wanted = wants(1, &[]).with("/deviceClassName", name).unwrap();
        World::new().claim(claim("c", vec![request("r", wanted)]))
    };
    assert_eq!(
        of_class("").error(),
        "claim ns/c, request r: missing device class name (unsupported request type?)"
    );
    assert_eq!(
        of_class("fpga").error(),
        "claim ns/c, request r: could not retrieve device class fpga: \
         deviceclass.resource.k8s.io \"fpga\" not found"
    );
}

#[test]
fn an_expression_that_does_not_compile_is_an_error_wherever_it_stands() {
    let text = "CEL compile error: undeclared reference to 'bogus'";
    let world = World::new().claim(claim("c", vec![exact("r", 1, &["true", "bogus"])]));
    assert_eq!(world.error(), format!("claim ns/c: selector #1: {text}"));
    let world = World::new().claim(claim("c", vec![request("r", wants_all(&["bogus"]))]));
    assert_eq!(world.error(), format!("claim ns/c: selector #0: {text}"));
    let mut world = World::new().claim(claim("c", vec![exact("r", 1, &[])]));
    world.classes = vec![class("gpu", &["bogus"])];
    assert_eq!(world.error(), format!("class gpu: selector #0: {text}"));
}

#[test]
fn an_expression_that_fails_on_a_device_fails_the_whole() {
    let text = "CEL runtime error: no such key: absent";
    let world = World::new()
        .pool("p", devices(2))
        .claim(claim("c", vec![exact("r", 1, &["fail"])]));
    assert_eq!(world.error(), format!("claim ns/c: selector #0: {text}"));
    let world = World::new()
        .pool("p", devices(1))
        .claim(claim("c", vec![request("r", wants_all(&["fail"]))]));
    assert_eq!(world.error(), format!("claim ns/c: selector #0: {text}"));
    let without_devices = World::new().claim(claim("c", vec![exact("r", 1, &["fail"])]));
    assert!(without_devices.refusal().contains("0 free"));
}

#[test]
fn a_match_constraint_compares_type_and_value() {
    let domain = "gpu.example.com/x";
    let values = [
        doc!({ "int": 1 }),
        doc!({ "string": "1" }),
        doc!({ "bool": true }),
        doc!({ "version": "1.0.0" }),
    ];
    let fits = |a: &Doc, b: &Doc| {
        let pool = vec![
            device_of("a", "x", a.clone()),
            device_of("b", "x", b.clone()),
        ];
        let world = World::new().pool("p", pool).claim(constrained(
            "c",
            vec![exact("r", 2, &[])],
            vec![matching(domain, &[])],
        ));
        matches!(
            world.allocate().unwrap(),
            windlass_placement::allocator::Outcome::Fits { .. }
        )
    };
    for (at, a) in values.iter().enumerate() {
        for (other, b) in values.iter().enumerate() {
            assert_eq!(fits(a, b), at == other, "{a:?} and {b:?}");
        }
    }
    assert!(!fits(&doc!({ "int": 1 }), &doc!({ "int": 2 })));
    let lacks = World::new()
        .pool(
            "p",
            vec![device_of("a", "x", doc!({ "int": 1 })), device("b")],
        )
        .claim(constrained(
            "c",
            vec![exact("r", 2, &[])],
            vec![matching(domain, &[])],
        ));
    assert!(lacks.refusal().contains("no combination"));
}

#[test]
fn an_attribute_with_its_domain_and_one_without_are_the_same() {
    let pool = vec![
        device_with("a", "x", "1"),
        device_with("b", "gpu.example.com/x", "1"),
        device_with("c", "other.example.com/x", "1"),
    ];
    let world = World::new().pool("p", pool).claim(constrained(
        "c",
        vec![exact("r", 2, &[])],
        vec![matching("gpu.example.com/x", &[])],
    ));
    assert_eq!(world.results(), [["r:p/a", "r:p/b"]]);
}

#[test]
fn a_first_choice_that_nothing_matches_is_undone() {
    let numa = |name: &str, node: i64| device_of(name, "numa", doc!({ "int": node }));
    let pool = vec![numa("d1", 0), numa("d2", 1), numa("d3", 1)];
    let world = World::new().pool("p", pool).claim(constrained(
        "c",
        vec![exact("r", 2, &[])],
        vec![matching("gpu.example.com/numa", &[])],
    ));
    assert_eq!(world.results(), [["r:p/d2", "r:p/d3"]]);
}

#[test]
fn a_constraint_on_some_requests_ignores_the_others() {
    let numa = |name: &str, node: i64| device_of(name, "numa", doc!({ "int": node }));
    let pool = vec![numa("d1", 0), numa("d2", 1), numa("d3", 1)];
    let requests = vec![exact("a", 1, &[]), exact("b", 1, &[]), exact("c", 1, &[])];
    let world = World::new().pool("p", pool).claim(constrained(
        "c",
        requests,
        vec![matching("gpu.example.com/numa", &["a", "c"])],
    ));
    assert_eq!(world.results(), [["a:p/d2", "b:p/d1", "c:p/d3"]]);
}

#[test]
fn a_violated_constraint_on_all_devices_is_an_error() {
    let pool = vec![device_with("a", "x", "1"), device_with("b", "x", "2")];
    let world = World::new().pool("p", pool).claim(constrained(
        "c",
        vec![request("r", wants_all(&[]))],
        vec![matching("gpu.example.com/x", &[])],
    ));
    assert_eq!(
        world.error(),
        "claim ns/c, request r: cannot add device gpu.example.com/p/b because a claim constraint \
         would not be satisfied"
    );
}

#[test]
fn distinct_values_are_distinct_within_one_request_too() {
    let pool = vec![
        device_with("a", "x", "1"),
        device_with("b", "x", "1"),
        device_with("c", "x", "2"),
    ];
    let wanted = |count| {
        World::new().pool("p", pool.clone()).claim(constrained(
            "c",
            vec![exact("r", count, &[])],
            vec![distinct("gpu.example.com/x", &[])],
        ))
    };
    assert_eq!(wanted(2).results(), [["r:p/a", "r:p/c"]]);
    assert!(wanted(3).refusal().contains("no combination"));
}

#[test]
fn an_empty_constraint_is_an_error() {
    let world = World::new().claim(constrained("c", vec![exact("r", 1, &[])], vec![doc!({})]));
    assert_eq!(
        world.error(),
        "claim ns/c, constraint #0: empty constraint (unsupported constraint type?)"
    );
}

#[test]
fn tainted_devices_need_a_toleration() {
    let tainted = |effects: &[&str]| {
        let taints: Vec<Doc> = effects
            .iter()
            .map(|effect| doc!({ "key": (format!("k-{effect}")), "value": "v", "effect": (*effect) }))
            .collect();
        device("d").with("/taints", taints).unwrap()
    };
    let fits = |effects: &[&str], tolerations: Vec<Doc>| {
        let wanted = wants(1, &[]).with("/tolerations", tolerations).unwrap();
        let world = World::new()
            .pool("p", vec![tainted(effects)])
            .claim(claim("c", vec![request("r", wanted)]));
        matches!(
            world.allocate().unwrap(),
            windlass_placement::allocator::Outcome::Fits { .. }
        )
    };
    let exists = |effect: &str| doc!({ "operator": "Exists", "effect": effect });
    assert!(!fits(&["NoSchedule"], vec![]));
    assert!(!fits(&["NoExecute"], vec![]));
    assert!(fits(&["None"], vec![]));
    assert!(fits(&["NoSchedule", "NoExecute"], vec![exists("")]));
    assert!(!fits(
        &["NoSchedule", "NoExecute"],
        vec![exists("NoExecute")]
    ));
    let equal = |value: &str| doc!({ "key": "k-NoSchedule", "operator": "Equal", "value": value });
    assert!(fits(&["NoSchedule"], vec![equal("v")]));
    assert!(!fits(&["NoSchedule"], vec![equal("w")]));
}
