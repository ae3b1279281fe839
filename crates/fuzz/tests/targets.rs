//! Runs every target on its seeds and on a fixed number of mutations of them.

use windlass_fuzz::{Mutator, Outcome, TARGETS, find, run};

/// The same inputs in every run, so that a failure can be had again.
const SEED: u64 = 20;

fn run_fixed(name: &str) {
    let target = find(name).expect("a target");
    let report = run(target, SEED, |number| number < target.iterations);
    let report = report.unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(report.inputs, target.iterations);
    // Otherwise the oracles have not been reached, or nothing was ever refused.
    assert!(report.accepted * 50 > report.inputs, "{report:?}");
    assert!(report.accepted < report.inputs, "{report:?}");
}

macro_rules! tests {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            run_fixed(stringify!($name));
        })*

        #[test]
        fn every_target_has_a_test_and_a_file_for_libfuzzer() {
            let tested = [$(stringify!($name)),*];
            let all: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(tested.as_slice(), all.as_slice());
            for name in all {
                let path = format!("{}/../../fuzz/fuzz_targets/{name}.rs", env!("CARGO_MANIFEST_DIR"));
                let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
                assert!(text.contains(&format!("windlass_fuzz::targets::{name}(")), "{path}");
            }
        }
    };
}

tests! {
    json yaml protobuf packed merge_patch json_patch strategic_merge_patch server_side_apply
    field_set canonical_form label_selector field_selector quantity time cel cel_device kubeconfig
    list_stream watch_stream crd_schema rbac_rules continue_token store_recovery request_target
    request_headers request_body
}

#[test]
fn the_same_seed_makes_the_same_inputs() {
    let target = find("json").expect("a target");
    let pool = (target.seeds)();
    let make = |seed| {
        let mutator = Mutator::new(seed, target.words);
        (0..50).map(|_| mutator.next(&pool)).collect::<Vec<_>>()
    };
    assert_eq!(make(1), make(1));
    assert_ne!(make(1), make(2));
}

#[test]
fn some_seeds_of_every_target_are_accepted() {
    for target in TARGETS {
        let seeds = (target.seeds)();
        let is_accepted = |seed: &Vec<u8>| (target.run)(seed) == Outcome::Accepted;
        assert!(seeds.iter().any(is_accepted), "{}", target.name);
    }
}
