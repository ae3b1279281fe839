//! Selectors in the expression language of Kubernetes.

use windlass_core::{Doc, doc};
use windlass_placement::allocator::{Outcome, Selectors};

use crate::allocator::objects::*;

fn device() -> Doc {
    doc!({
        "name": "d0",
        "attributes": {
            "model": { "string": "a100" },
            "other.example.com/numa": { "int": 1 },
            "version": { "version": "1.2.3" },
            "ecc": { "bool": true }
        },
        "capacity": { "memory": { "value": "40Gi" } }
    })
}

fn world(expression: &str) -> World {
    let mut world = World::new()
        .pool("p", vec![device()])
        .claim(claim("c", vec![exact("r", 1, &[expression])]));
    world.selectors = Selectors::default();
    world
}

#[test]
fn devices_are_chosen_by_driver_attributes_and_capacity() {
    let cases = [
        ("device.driver == 'gpu.example.com'", true),
        ("device.driver == 'other'", false),
        ("device.attributes['gpu.example.com'].model == 'a100'", true),
        (
            "device.attributes['gpu.example.com']['model'] == 'a100'",
            true,
        ),
        ("device.attributes['other.example.com'].numa == 1", true),
        ("'numa' in device.attributes['other.example.com']", true),
        ("'numa' in device.attributes['gpu.example.com']", false),
        ("'absent.example.com' in device.attributes", false),
        ("has(device.attributes['absent.example.com'].x)", false),
        ("has(device.attributes['gpu.example.com'].ecc)", true),
        (
            "device.attributes['gpu.example.com'].?absent.orValue('b') == 'b'",
            true,
        ),
        (
            "device.attributes['gpu.example.com'].version.isGreaterThan(semver('1.0.0'))",
            true,
        ),
        (
            "device.capacity['gpu.example.com'].memory.compareTo(quantity('80Gi')) >= 0",
            false,
        ),
        (
            "device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) == 0",
            true,
        ),
        (
            "cel.bind(a, device.attributes['gpu.example.com'], a.ecc && a.model != 'x')",
            true,
        ),
        (
            "device.attributes['gpu.example.com'].model.matches('^a[0-9]+$')",
            true,
        ),
        (
            "device.attributes.exists_one(x, x == 'other.example.com')",
            true,
        ),
        ("device.allowMultipleAllocations", false),
    ];
    for (expression, expected) in cases {
        let outcome = world(expression).allocate();
        let found = matches!(outcome, Ok(Outcome::Fits { .. }));
        assert_eq!(found, expected, "{expression}: {outcome:?}");
    }
}

#[test]
fn an_unknown_attribute_fails_the_whole() {
    let world = world("device.attributes['gpu.example.com'].absent == 'x'");
    let text = "claim ns/c: selector #0: CEL runtime error: no such key: absent";
    assert_eq!(world.error(), text);
}

#[test]
fn an_expression_that_costs_too_much_is_ended() {
    let list = "[0,1,2,3,4,5,6,7,8,9]";
    let mut text = "true".to_owned();
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        text = format!("{list}.all({name}, {text})");
    }
    let error = world(&text).error();
    assert!(error.contains("actual cost limit exceeded"), "{error}");
}

#[test]
fn what_is_no_question_does_not_compile() {
    assert!(
        world("1")
            .error()
            .contains("must evaluate to bool or the unknown type, not int")
    );
    assert!(
        world("bogus")
            .error()
            .contains("undeclared reference to 'bogus'")
    );
}
