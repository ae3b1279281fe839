//! Rules for names, and the making of names.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use windlass_core::{Env, names};

/// Rule and value that it accepts, found with Kubernetes 1.36.
#[rustfmt::skip] // One row per line.
const GOOD: &[(&str, &str)] = &[
    ("label_value", ""),
    ("path_segment", ""),
    ("path_segment_prefix", ""),
    ("dns1123_label", "a"),
    ("dns1123_subdomain", "a"),
    ("dns1035_label", "a"),
    ("qualified_name", "a"),
    ("label_value", "a"),
    ("path_segment", "a"),
    ("path_segment_prefix", "a"),
    ("generate_dns1123_subdomain", "a"),
    ("dns1123_label", "1"),
    ("dns1123_subdomain", "1"),
    ("qualified_name", "1"),
    ("label_value", "1"),
    ("path_segment", "1"),
    ("path_segment_prefix", "1"),
    ("generate_dns1123_subdomain", "1"),
    ("qualified_name", "A"),
    ("label_value", "A"),
    ("path_segment", "A"),
    ("path_segment_prefix", "A"),
    ("dns1123_label", "a-b"),
    ("dns1123_subdomain", "a-b"),
    ("dns1035_label", "a-b"),
    ("qualified_name", "a-b"),
    ("label_value", "a-b"),
    ("path_segment", "a-b"),
    ("path_segment_prefix", "a-b"),
    ("generate_dns1123_subdomain", "a-b"),
    ("path_segment", "-a"),
    ("path_segment_prefix", "-a"),
    ("path_segment", "a-"),
    ("path_segment_prefix", "a-"),
    ("generate_dns1123_subdomain", "a-"),
    ("dns1123_subdomain", "a.b"),
    ("qualified_name", "a.b"),
    ("label_value", "a.b"),
    ("path_segment", "a.b"),
    ("path_segment_prefix", "a.b"),
    ("generate_dns1123_subdomain", "a.b"),
    ("qualified_name", "a..b"),
    ("label_value", "a..b"),
    ("path_segment", "a..b"),
    ("path_segment_prefix", "a..b"),
    ("path_segment", ".a"),
    ("path_segment_prefix", ".a"),
    ("path_segment", "a."),
    ("path_segment_prefix", "a."),
    ("qualified_name", "a_b"),
    ("label_value", "a_b"),
    ("path_segment", "a_b"),
    ("path_segment_prefix", "a_b"),
    ("qualified_name", "a/b"),
    ("path_segment", "a b"),
    ("path_segment_prefix", "a b"),
    ("path_segment", "\u{e9}"),
    ("path_segment_prefix", "\u{e9}"),
    ("path_segment_prefix", "."),
    ("path_segment_prefix", ".."),
    ("path_segment", "..."),
    ("path_segment_prefix", "..."),
    ("dns1123_label", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("dns1123_subdomain", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("dns1035_label", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("qualified_name", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("label_value", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("path_segment", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("path_segment_prefix", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("generate_dns1123_subdomain", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("dns1123_subdomain", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("path_segment", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("path_segment_prefix", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("generate_dns1123_subdomain", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("dns1123_subdomain", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("path_segment", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("path_segment_prefix", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("generate_dns1123_subdomain", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("path_segment", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("path_segment_prefix", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("dns1123_subdomain", "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a"),
    ("path_segment", "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a"),
    ("path_segment_prefix", "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a"),
    ("generate_dns1123_subdomain", "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a"),
    ("path_segment", "my-name-"),
    ("path_segment_prefix", "my-name-"),
    ("generate_dns1123_subdomain", "my-name-"),
    ("path_segment", "--"),
    ("path_segment_prefix", "--"),
    ("generate_dns1123_subdomain", "--"),
    ("path_segment", "-"),
    ("path_segment_prefix", "-"),
    ("path_segment", "a--"),
    ("path_segment_prefix", "a--"),
    ("generate_dns1123_subdomain", "a--"),
    ("qualified_name", "example.com/MyName"),
    ("path_segment", "_a"),
    ("path_segment_prefix", "_a"),
    ("path_segment", "a\n"),
    ("path_segment_prefix", "a\n"),
    ("dns1123_label", "1a"),
    ("dns1123_subdomain", "1a"),
    ("qualified_name", "1a"),
    ("label_value", "1a"),
    ("path_segment", "1a"),
    ("path_segment_prefix", "1a"),
    ("generate_dns1123_subdomain", "1a"),
    ("path_segment", "x.y-"),
    ("path_segment_prefix", "x.y-"),
    ("generate_dns1123_subdomain", "x.y-"),
];

/// Hash digits and their spelling, found with Kubernetes 1.36.
#[rustfmt::skip] // One row per line.
const ENCODED: &[(&str, &str)] = &[
    ("0", "4"),
    ("1234567890", "56789bcdf4"),
    ("4294967295", "86f8fbc6f9"),
    ("abcxyz", "vwxqrs"),
    ("2778438749", "6ccd87dc8f"),
    ("6849885b", "bd8fdd9w"),
];

fn problems(rule: &str, value: &str) -> Vec<String> {
    match rule {
        "dns1123_label" => names::dns1123_label(value),
        "dns1123_subdomain" => names::dns1123_subdomain(value),
        "dns1035_label" => names::dns1035_label(value),
        "qualified_name" => names::qualified_name(value),
        "label_value" => names::label_value(value),
        "path_segment" => names::path_segment(value),
        "path_segment_prefix" => names::path_segment_prefix(value),
        "generate_dns1123_subdomain" => names::dns1123_subdomain(&names::mask_trailing_dash(value)),
        _ => panic!("no rule {rule}"),
    }
}

#[test]
fn good_names_are_accepted() {
    for (rule, value) in GOOD {
        assert_eq!(
            problems(rule, value),
            Vec::<String>::new(),
            "{rule} {value:?}"
        );
    }
}

#[test]
fn case_does_not_matter_in_annotation_keys() {
    assert!(names::annotation_key("Example.COM/Key").is_empty());
    assert!(!names::qualified_name("Example.COM/Key").is_empty());
    assert!(!names::annotation_key("example.com/").is_empty());
}

#[test]
fn hashes_are_spelled_without_vowels() {
    for (text, spelled) in ENCODED {
        assert_eq!(names::safe_encode(text), *spelled);
    }
}

#[test]
fn generated_name_is_base_and_five_characters() {
    let env = Env::seeded(1);
    let name = names::generate_name("web-", &env);
    assert_eq!(name.len(), "web-".len() + names::SUFFIX_LEN);
    assert!(name.starts_with("web-"));
    assert_ne!(name, names::generate_name("web-", &env));
}

#[test]
fn generated_name_of_a_long_base_fits_a_label() {
    let name = names::generate_name(&"a".repeat(300), &Env::seeded(1));
    assert_eq!(name.len(), names::LABEL_BYTES_MAX);
    assert!(names::dns1123_label(&name).is_empty());
}

/// The same cases in every run.
fn config() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(1);
    ProptestConfig {
        rng_seed,
        failure_persistence: None,
        ..ProptestConfig::with_cases(512)
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn rules_take_any_text(text in any::<String>()) {
        let rules = ["dns1123_label", "dns1123_subdomain", "dns1035_label", "qualified_name",
            "label_value", "path_segment", "path_segment_prefix", "generate_dns1123_subdomain"];
        for rule in rules {
            let found = problems(rule, &text);
            prop_assert!(found.iter().all(|problem| !problem.is_empty()));
        }
        let _ = names::safe_encode(&text);
    }

    #[test]
    fn name_generated_from_a_valid_base_is_valid(base in "[a-z0-9]([-a-z0-9]{0,80}[a-z0-9])?-?") {
        let name = names::generate_name(&base, &Env::seeded(7));
        prop_assert_eq!(names::dns1123_label(&name), Vec::<String>::new());
    }

    #[test]
    fn label_is_a_subdomain_without_dots(text in "[-a-z0-9._A]{0,70}") {
        let is_label = names::dns1123_label(&text).is_empty();
        let fits = text.len() <= names::LABEL_BYTES_MAX && !text.contains('.');
        prop_assert_eq!(is_label, fits && names::dns1123_subdomain(&text).is_empty());
    }
}
