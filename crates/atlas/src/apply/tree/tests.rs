use windlass_core::{Env, doc};

use super::*;

fn random_step(env: &Env) -> PathElement {
    let text = |sorts: u64| Doc::from(format!("n{}", env.random_below(sorts)));
    match env.random_below(6) {
        0 => PathElement::Key(vec![(Str::new("name"), Scalar(text(3)))]),
        1 => {
            let port = Doc::from(80 + env.random_below(2));
            let protocol = Scalar(Doc::from("TCP"));
            PathElement::Key(vec![
                (Str::new("containerPort"), Scalar(port)),
                (Str::new("protocol"), protocol),
            ])
        }
        2 => PathElement::Value(Scalar(text(2))),
        3 => PathElement::Index(env.random_below(2).cast_signed()),
        _ => PathElement::Field(Str::new(&format!("f{}", env.random_below(3)))),
    }
}

fn random_set(env: &Env) -> FieldSet {
    let mut set = FieldSet::new();
    for _ in 0..env.random_below(12) {
        let length = 1 + env.random_below(4);
        let path: Vec<_> = (0..length).map(|_| random_step(env)).collect();
        set.insert(&path);
    }
    set
}

#[test]
fn trees_are_changed_as_sets_are() {
    let env = Env::seeded(7);
    for _ in 0..3000 {
        let (set, other) = (random_set(&env), random_set(&env));
        let tree = set.encode();
        assert!(is_canonical(&tree), "{tree}");
        assert_eq!(FieldSet::decode(&tree), Ok(set.clone()));
        assert!(has_plain_steps(&other));
        let root = tree.as_object().expect("an object");
        let less = Doc::from(without(root, &Steps::of(&other).unwrap()));
        assert_eq!(
            less,
            set.difference(&other).encode(),
            "{set}\nwithout\n{other}"
        );
        let below = Doc::from(without_below(root, &other));
        assert_eq!(
            below,
            set.difference_below(&other).encode(),
            "{set}\nwithout all of\n{other}"
        );
        let more = Doc::from(with(root, &other));
        assert_eq!(
            more,
            set.clone().union(&other).encode(),
            "{set}\nwith\n{other}"
        );
    }
}

#[test]
fn a_tree_in_another_form_is_not_taken_for_canonical() {
    let canonical = [
        doc!({}),
        doc!({ "f:spec": {} }),
        doc!({ "f:a": { ".": {}, "k:{\"name\":\"x\"}": {}, "v:1": {}, "i:0": {}, "v:true": {} } }),
        doc!({ "k:{\"a\":1,\"b\":false}": {} }),
    ];
    for tree in canonical {
        assert!(is_canonical(&tree), "{tree}");
        assert_eq!(FieldSet::decode(&tree).expect("a set").encode(), tree);
    }
    for tree in [
        doc!([]),
        doc!({ ".": {} }),
        doc!({ "f:a": 1 }),
        doc!({ "f:a": { ".": {} } }),
        doc!({ "f:a": { ".": { "f:b": {} }, "f:c": {} } }),
        doc!({ "k:{\"b\":1,\"a\":1}": {} }),
        doc!({ "k:{\"a\":1,\"a\":1}": {} }),
        doc!({ "k:{\"a!\":1,\"a\":1}": {} }),
        doc!({ "k:{ \"a\":1}": {} }),
        doc!({ "k:{\"a\":1}x": {} }),
        doc!({ "k:{\"a\":1": {} }),
        doc!({ "k:{}": {} }),
        doc!({ "k:": {} }),
        doc!({ "v:1.0": {} }),
        doc!({ "v:01": {} }),
        doc!({ "v:": {} }),
        doc!({ "v:\"\\u003c\"": {} }),
        doc!({ "v:\"<\"": {} }),
        doc!({ "v:\"a": {} }),
        doc!({ "i:+1": {} }),
        doc!({ "i:": {} }),
        doc!({ "z:later": {} }),
        doc!({ "f": {} }),
    ] {
        assert!(!is_canonical(&tree), "{tree}");
    }
}

#[test]
fn a_tree_that_is_too_deep_to_be_read_is_not_canonical() {
    let nested = |levels: usize| {
        let wrap = |inner: Doc, _| doc!({ "f:a": inner });
        (1..levels).fold(doc!({}), wrap)
    };
    for levels in [DEPTH_LIMIT - 1, DEPTH_LIMIT, DEPTH_LIMIT + 1] {
        let tree = nested(levels);
        assert_eq!(
            is_canonical(&tree),
            FieldSet::decode(&tree).is_ok(),
            "{levels}"
        );
    }
}

#[test]
fn numbers_that_may_equal_others_are_not_plain() {
    let mut set = FieldSet::new();
    set.insert(&[PathElement::Value(Scalar(Doc::from(1)))]);
    assert!(has_plain_steps(&set));
    set.insert(&[
        PathElement::Field(Str::new("a")),
        PathElement::Value(Scalar(Doc::from(1.5))),
    ]);
    assert!(!has_plain_steps(&set));
}

#[test]
fn many_fields_are_changed_in_one_go() {
    let names = 0..50_000;
    let step = |number: usize| PathElement::Field(Str::new(&format!("key-{number}")));
    let set = |every: usize| {
        let mut set = FieldSet::new();
        for number in names.clone().step_by(every) {
            set.insert(&[PathElement::Field(Str::new("data")), step(number)]);
        }
        set
    };
    let (all, some) = (set(1), set(2));
    let tree = all.encode();
    let root = tree.as_object().expect("an object");
    let less = without(root, &Steps::of(&some).unwrap());
    assert_eq!(Doc::from(less.clone()), all.difference(&some).encode());
    assert_eq!(Doc::from(with(&less, &some)), tree);
}
