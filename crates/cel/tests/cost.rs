//! What expressions cost, before and while they are evaluated.

use std::cell::Cell;

use windlass_cel::{
    Bindings, Budget, DEVICE, Decl, Environment, EvalError, ListIdentity, ProgramCache, Type,
    Value, device_environment, device_value,
};
use windlass_core::{Doc, doc};

fn device() -> Doc {
    doc!({
        "name": "gpu-0",
        "attributes": {
            "model": { "string": "a100" },
            "count": { "int": 4 },
            "ecc": { "bool": true },
            "driverVersion": { "version": "1.2.3" },
            "other.example.com/id": { "string": "x" }
        },
        "capacity": { "memory": { "value": "40Gi" } }
    })
}

fn matches(expression: &str) -> Result<bool, String> {
    let program = device_environment()
        .compile(expression)
        .map_err(|error| error.to_string())?;
    let device = device_value("dra.example.com", &device()).map_err(|error| error.to_string())?;
    let value = program
        .evaluate(
            &Bindings::new().with(DEVICE, device),
            &mut Budget::new(1_000_000, 1_000_000),
        )
        .map_err(|error| error.to_string())?;
    value.as_bool().ok_or_else(|| format!("{value:?}"))
}

#[test]
fn device_selectors_read_driver_attributes_and_capacity() {
    for expression in [
        "device.driver == 'dra.example.com'",
        "device.attributes['dra.example.com'].model == 'a100'",
        "device.attributes['dra.example.com']['count'] > 3",
        "device.attributes['dra.example.com'].ecc",
        "device.attributes['other.example.com'].id == 'x'",
        "device.attributes['dra.example.com'].driverVersion.isGreaterThan(semver('1.2.0'))",
        "device.capacity['dra.example.com'].memory.compareTo(quantity('40Gi')) >= 0",
        "device.capacity['dra.example.com'].memory.isGreaterThan(quantity('8Gi'))",
        "!has(device.attributes['unknown.example.com'].x)",
        "device.attributes['unknown.example.com'].size() == 0",
        "!('unknown.example.com' in device.attributes)",
        "'dra.example.com' in device.attributes && 'model' in device.attributes['dra.example.com']",
        "cel.bind(dra, device.attributes['dra.example.com'], dra.model == 'a100' && dra.ecc)",
        "device.attributes['dra.example.com'].model.split('1') == ['a', '00']",
        "device.attributes['dra.example.com'].model.matches('^a[0-9]+$')",
        "device.attributes.exists_one(x, x == 'dra.example.com')",
        "device.attributes['dra.example.com'].?nothing.orValue(7) == 7",
        "!device.allowMultipleAllocations",
    ] {
        assert_eq!(matches(expression), Ok(true), "{expression}");
    }
    assert_eq!(
        matches("device.attributes['dra.example.com'].exists == 1"),
        Err("no such key: exists".to_owned())
    );
    assert_eq!(
        matches("device.attributes['unknown.example.com'].id == 'x'"),
        Err("no such key: id".to_owned())
    );
    let error = matches("devices.driver == 'x'").expect_err("no such variable");
    assert!(
        error.contains("undeclared reference to 'devices' (in container '')"),
        "{error}"
    );
    let shared = device()
        .with("/allowMultipleAllocations", true)
        .expect("an object");
    let shared = device_value("d", &shared).expect("a sound device");
    let program = device_environment()
        .compile("device.allowMultipleAllocations")
        .expect("declared");
    let value = program.evaluate(
        &Bindings::new().with(DEVICE, shared),
        &mut Budget::default(),
    );
    assert_eq!(value.ok().and_then(|value| value.as_bool()), Some(true));
}

#[test]
fn devices_with_unknown_attribute_values_cannot_be_looked_at() {
    let list = doc!({ "attributes": { "a": { "ints": [1] } } });
    let error = device_value("d", &list).expect_err("lists are not supported");
    assert_eq!(
        error.to_string(),
        "attribute a: unsupported attribute value"
    );
}

#[test]
fn estimates_of_device_selectors_are_upstreams() {
    for (expression, cost) in [
        ("device.driver == \"dra.example.com\"", 4),
        ("device.attributes[\"dra.example.com\"].name", 4),
        ("device.attributes[\"dra.example.com\"].name > 0", 5),
        (
            "device.capacity[\"dra.example.com\"].name.isGreaterThan(quantity(\"1\"))",
            6,
        ),
        (
            "cel.bind(dra, device.attributes[\"dra.example.com\"], dra.name)",
            15,
        ),
        (
            "device.attributes.exists_one(x, x == \"dra.example.com\")",
            164,
        ),
    ] {
        let program = device_environment().compile(expression).expect(expression);
        assert_eq!(program.estimated_cost().max, cost, "{expression}");
    }
}

fn runaway() -> String {
    let ten = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
    let mut expression = "true".to_owned();
    for name in ["a", "b", "c", "d", "e", "f"] {
        expression = format!("{ten}.all({name}, {expression})");
    }
    expression
}

#[test]
fn a_runaway_expression_stops_at_its_limit() {
    let program = device_environment()
        .compile(&runaway())
        .expect("well formed");
    assert!(program.estimated_cost().max > 1_000_000);
    let mut budget = Budget::new(10_000_000, 1_000_000);
    let error = program
        .evaluate(&Bindings::new(), &mut budget)
        .expect_err("too expensive");
    assert_eq!(error, EvalError::CostLimit);
    assert!(error.to_string().contains("actual cost limit exceeded"));
    assert!(budget.spent() > 1_000_000 && budget.spent() < 1_100_000);
}

#[test]
fn the_budget_of_an_object_runs_out() {
    let program = device_environment()
        .compile("lists.range(100).all(x, x >= 0)")
        .expect("well formed");
    let mut budget = Budget::new(1_000, 1_000_000);
    assert!(program.evaluate(&Bindings::new(), &mut budget).is_ok());
    assert_eq!(
        program.evaluate(&Bindings::new(), &mut budget).err(),
        Some(EvalError::Budget)
    );
}

#[test]
fn a_cancelled_evaluation_stops_within_a_hundred_rounds() {
    let program = device_environment()
        .compile("lists.range(100000).all(x, x >= 0)")
        .expect("well formed");
    let asked = Cell::new(0);
    let is_cancelled = || {
        asked.set(asked.get() + 1);
        true
    };
    let mut budget = Budget::new(u64::MAX, u64::MAX).with_cancellation(&is_cancelled);
    assert_eq!(
        program.evaluate(&Bindings::new(), &mut budget).err(),
        Some(EvalError::Interrupted)
    );
    assert_eq!(asked.get(), 1);
    assert!(budget.spent() < 102_000, "{}", budget.spent());
}

#[test]
fn sizes_from_declarations_bound_the_estimate() {
    let cost = |items: u64, length: u64| {
        let list = Decl::list(
            Decl::plain(Type::String, length),
            ListIdentity::Place,
            items,
        );
        let env = Environment::builder().variable("self", list).build();
        env.compile("self.all(x, x.contains('abc'))")
            .expect("well formed")
            .estimated_cost()
            .max
    };
    assert!(cost(10, 10) < cost(100, 10));
    assert!(cost(10, 10) < cost(10, 1_000));
    assert!(cost(1_000_000, 1_000_000) > 10_000_000);
}

#[test]
fn compiled_programs_are_kept_up_to_the_limit() {
    let cache = ProgramCache::new(device_environment().clone(), 2);
    let first = cache.get("true").expect("well formed");
    assert!(std::sync::Arc::ptr_eq(
        &first,
        &cache.get("true").expect("kept")
    ));
    cache.get("false").expect("well formed");
    cache.get("1 == 1").expect("well formed");
    assert!(!std::sync::Arc::ptr_eq(
        &first,
        &cache.get("true").expect("compiled again")
    ));
    assert!(cache.get("nothing").is_err());
}

proptest::proptest! {
    /// What was accepted with an estimate never costs more than it.
    #[test]
    fn evaluation_never_costs_more_than_estimated(items in proptest::collection::vec("[a-z]{0,8}", 0..8), pick in 0_usize..7) {
        let expressions = [
            "self.all(x, x.startsWith('a'))",
            "self.exists_one(x, x == 'abc')",
            "self.map(x, x + x).filter(x, x.contains('aa')).size() > 0",
            "self.join(',').split(',').size() == self.size()",
            "self.all(x, self.exists(y, x == y))",
            "'b' in self || self.isSorted()",
            "self.map(x, size(x)).sum() >= 0",
        ];
        let decl = Decl::list(Decl::plain(Type::String, 8), ListIdentity::Place, 8);
        let env = Environment::builder().variable("self", std::sync::Arc::clone(&decl)).build();
        let program = env.compile(expressions[pick]).expect("well formed");
        let doc = Doc::from(items.iter().map(|item| Doc::from(item.as_str())).collect::<Vec<_>>());
        let mut budget = Budget::default();
        let value = program.evaluate(&Bindings::new().with("self", Value::declared(&doc, &decl)), &mut budget);
        proptest::prop_assert!(value.is_ok());
        proptest::prop_assert!(budget.spent() <= program.estimated_cost().max);
    }

    /// Whatever the text, the compiler answers.
    #[test]
    fn compiling_never_panics(text in "[-a-z0-9 .,()\\[\\]{}'\"+*/%!?:<>=&|\\\\]{0,60}") {
        let _ = device_environment().compile(&text);
    }
}
