//! Expressions: compiled, estimated, and evaluated within a budget.

use std::sync::{Arc, LazyLock};

use windlass_cel::{
    Bindings, Budget, CALL_COST_LIMIT, DEVICE, Decl, Environment, EvalError, ListIdentity, Type,
    Value, device_environment, device_value,
};
use windlass_core::{Doc, doc};

use crate::{Outcome, work};

/// An evaluation may cost as much as the budget allows, whatever the length of its text.
const EVALUATED: work::Limit = work::Limit {
    base: 400_000,
    per_kib: 20_000,
};

/// Upstream's estimate takes no notice of some sizes, such as those of objects that are compared, and
/// ours is upstream's. A rule must not cost much more than it was accepted for.
const ESTIMATE_FACTOR_MAX: u64 = 2;
const ESTIMATE_COST_FREE: u64 = 64;

static OBJECT: LazyLock<Doc> = LazyLock::new(|| {
    doc!({
        "name": "web-1", "count": 3, "ratio": 0.5, "flag": true, "when": "2020-02-03T04:05:06Z",
        "list": ["a", "b", "b", "é😀"], "numbers": [3, 1, 2], "map": { "a": "1", "b": "2" },
        "items": [{ "name": "x", "size": 1 }, { "name": "y", "size": 2 }]
    })
});

static DECL: LazyLock<Arc<Decl>> = LazyLock::new(|| {
    let text = || Decl::plain(Type::String, 16);
    let int = || Decl::plain(Type::Int, 1);
    let item = Decl::object("item", [("name".into(), text()), ("size".into(), int())]);
    Decl::object(
        "object",
        [
            ("name".into(), text()),
            ("count".into(), int()),
            ("ratio".into(), Decl::plain(Type::Double, 1)),
            ("flag".into(), Decl::plain(Type::Bool, 1)),
            ("when".into(), Decl::plain(Type::Timestamp, 32)),
            ("list".into(), Decl::list(text(), ListIdentity::Set, 8)),
            ("numbers".into(), Decl::list(int(), ListIdentity::Place, 8)),
            ("map".into(), Decl::map(text(), text(), 8)),
            (
                "items".into(),
                Decl::list(item, ListIdentity::Keys(vec!["name".into()]), 8),
            ),
        ],
    )
});

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    Environment::builder()
        .variable("self", Arc::clone(&DECL))
        .variable("oldSelf", Arc::clone(&DECL))
        .build()
});

/// A rule of a custom resource: the same outcome and cost each time, a cost within the limit, and
/// no cost far above the estimate.
pub fn cel(data: &[u8]) -> Outcome {
    let object = || Value::declared(&OBJECT, &DECL);
    evaluated(data, &ENVIRONMENT, || {
        Bindings::new()
            .with("self", object())
            .with("oldSelf", object())
    })
}

/// A selector of devices, under the same oracles.
pub fn cel_device(data: &[u8]) -> Outcome {
    let device = doc!({
        "attributes": { "model": { "string": "a100" }, "count": { "int": 4 },
            "ecc": { "bool": true }, "v": { "version": "1.2.3" } },
        "capacity": { "memory": { "value": "40Gi" } }
    });
    let device = device_value("dra.example.com", &device).expect("a sound device");
    evaluated(data, device_environment(), || {
        Bindings::new().with(DEVICE, device.clone())
    })
}

fn evaluated<'a>(
    data: &[u8],
    environment: &Environment,
    bind: impl Fn() -> Bindings<'a>,
) -> Outcome {
    let Ok(text) = std::str::from_utf8(data) else {
        return Outcome::Refused;
    };
    work::bounded(EVALUATED, data.len(), || {
        let Ok(program) = environment.compile(text) else {
            return Outcome::Refused;
        };
        let estimate = program.estimated_cost();
        assert!(estimate.min <= estimate.max, "{estimate:?}");
        let run = || {
            let mut budget = Budget::default();
            let outcome = program.evaluate(&bind(), &mut budget);
            (outcome, budget.spent())
        };
        let ((outcome, spent), (again, spent_again)) = (run(), run());
        assert_eq!(
            format!("{outcome:?}"),
            format!("{again:?}"),
            "deterministic"
        );
        assert_eq!(spent, spent_again, "a deterministic cost");
        match &outcome {
            Ok(_) => assert!(spent <= CALL_COST_LIMIT, "cost {spent}"),
            Err(EvalError::Failed(_)) => {}
            Err(_) => return Outcome::Accepted,
        }
        let allowed = estimate.max.saturating_mul(ESTIMATE_FACTOR_MAX);
        let allowed = allowed.saturating_add(ESTIMATE_COST_FREE);
        assert!(
            spent <= allowed,
            "cost {spent} above the estimate {estimate:?}"
        );
        Outcome::Accepted
    })
}
