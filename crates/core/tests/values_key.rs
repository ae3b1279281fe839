//! Keys, kinds, revisions, numbers or texts, and quoting.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use windlass_core::{
    AtRevision, GroupKind, GroupResource, GroupVersion, Gvk, Gvr, IntOrString, Key, Revision, Uid,
    quote,
};

/// A JSON value and a total; the share rounded up and rounded down by Kubernetes 1.36.
#[rustfmt::skip] // One row per line.
const SCALED: &[(&str, i64, i64, i64)] = &[
    ("0", 0, 0, 0),
    ("0", 1, 0, 0),
    ("0", 3, 0, 0),
    ("0", 10, 0, 0),
    ("0", 33, 0, 0),
    ("0", 100, 0, 0),
    ("5", 0, 5, 5),
    ("5", 1, 5, 5),
    ("5", 3, 5, 5),
    ("5", 10, 5, 5),
    ("5", 33, 5, 5),
    ("5", 100, 5, 5),
    ("-3", 0, -3, -3),
    ("-3", 1, -3, -3),
    ("-3", 3, -3, -3),
    ("-3", 10, -3, -3),
    ("-3", 33, -3, -3),
    ("-3", 100, -3, -3),
    ("2147483647", 0, 2147483647, 2147483647),
    ("2147483647", 1, 2147483647, 2147483647),
    ("2147483647", 3, 2147483647, 2147483647),
    ("2147483647", 10, 2147483647, 2147483647),
    ("2147483647", 33, 2147483647, 2147483647),
    ("2147483647", 100, 2147483647, 2147483647),
    ("null", 0, 0, 0),
    ("null", 1, 0, 0),
    ("null", 3, 0, 0),
    ("null", 10, 0, 0),
    ("null", 33, 0, 0),
    ("null", 100, 0, 0),
    ("\"50%\"", 0, 0, 0),
    ("\"50%\"", 1, 1, 0),
    ("\"50%\"", 3, 2, 1),
    ("\"50%\"", 10, 5, 5),
    ("\"50%\"", 33, 17, 16),
    ("\"50%\"", 100, 50, 50),
    ("\"0%\"", 0, 0, 0),
    ("\"0%\"", 1, 0, 0),
    ("\"0%\"", 3, 0, 0),
    ("\"0%\"", 10, 0, 0),
    ("\"0%\"", 33, 0, 0),
    ("\"0%\"", 100, 0, 0),
    ("\"100%\"", 0, 0, 0),
    ("\"100%\"", 1, 1, 1),
    ("\"100%\"", 3, 3, 3),
    ("\"100%\"", 10, 10, 10),
    ("\"100%\"", 33, 33, 33),
    ("\"100%\"", 100, 100, 100),
    ("\"25%\"", 0, 0, 0),
    ("\"25%\"", 1, 1, 0),
    ("\"25%\"", 3, 1, 0),
    ("\"25%\"", 10, 3, 2),
    ("\"25%\"", 33, 9, 8),
    ("\"25%\"", 100, 25, 25),
    ("\"33%\"", 0, 0, 0),
    ("\"33%\"", 1, 1, 0),
    ("\"33%\"", 3, 1, 0),
    ("\"33%\"", 10, 4, 3),
    ("\"33%\"", 33, 11, 10),
    ("\"33%\"", 100, 33, 33),
    ("\"150%\"", 0, 0, 0),
    ("\"150%\"", 1, 2, 1),
    ("\"150%\"", 3, 5, 4),
    ("\"150%\"", 10, 15, 15),
    ("\"150%\"", 33, 50, 49),
    ("\"150%\"", 100, 150, 150),
    ("\"-50%\"", 0, 0, 0),
    ("\"-50%\"", 1, 0, -1),
    ("\"-50%\"", 3, -1, -2),
    ("\"-50%\"", 10, -5, -5),
    ("\"-50%\"", 33, -16, -17),
    ("\"-50%\"", 100, -50, -50),
    ("\"+5%\"", 0, 0, 0),
    ("\"+5%\"", 1, 1, 0),
    ("\"+5%\"", 3, 1, 0),
    ("\"+5%\"", 10, 1, 0),
    ("\"+5%\"", 33, 2, 1),
    ("\"+5%\"", 100, 5, 5),
];

/// A JSON value that is no share, and what Kubernetes 1.36 says about it.
#[rustfmt::skip] // One row per line.
const NOT_SCALED: &[(&str, &str)] = &[
    ("\"5\"", "invalid value for IntOrString: invalid type: string is not a percentage"),
    ("\"%\"", "invalid value for IntOrString: invalid value \"%\": strconv.Atoi: parsing \"\": invalid syntax"),
    ("\"5%%\"", "invalid value for IntOrString: invalid value \"5%%\": strconv.Atoi: parsing \"5%\": invalid syntax"),
    ("\" 5%\"", "invalid value for IntOrString: invalid value \" 5%\": strconv.Atoi: parsing \" 5\": invalid syntax"),
    ("\"5 %\"", "invalid value for IntOrString: invalid value \"5 %\": strconv.Atoi: parsing \"5 \": invalid syntax"),
    ("\"x%\"", "invalid value for IntOrString: invalid value \"x%\": strconv.Atoi: parsing \"x\": invalid syntax"),
    ("\"1.5%\"", "invalid value for IntOrString: invalid value \"1.5%\": strconv.Atoi: parsing \"1.5\": invalid syntax"),
    ("\"\"", "invalid value for IntOrString: invalid type: string is not a percentage"),
    ("\"9223372036854775808%\"", "invalid value for IntOrString: invalid value \"9223372036854775808%\": strconv.Atoi: parsing \"9223372036854775808\": value out of range"),
    ("\"a\\u0000\\\"b%\"", "invalid value for IntOrString: invalid value \"a\\x00\\\"b%\": strconv.Atoi: parsing \"a\\x00\\\"b\": invalid syntax"),
    ("\"1_0%\"", "invalid value for IntOrString: invalid value \"1_0%\": strconv.Atoi: parsing \"1_0\": invalid syntax"),
    ("\"\u{e9}%\"", "invalid value for IntOrString: invalid value \"\u{e9}%\": strconv.Atoi: parsing \"\u{e9}\": invalid syntax"),
];

/// A text, and how Kubernetes quotes it in messages.
#[rustfmt::skip] // One row per line.
const QUOTED: &[(&str, &str)] = &[
    ("", "\"\""),
    ("a", "\"a\""),
    ("\"", "\"\\\"\""),
    ("\\", "\"\\\\\""),
    ("\n\t\r", "\"\\n\\t\\r\""),
    ("\u{0}\u{1}\u{1f}\u{7f}", "\"\\x00\\x01\\x1f\\x7f\""),
    ("\u{7}\u{8}\u{c}\u{b}", "\"\\a\\b\\f\\v\""),
    ("\u{e9}", "\"\u{e9}\""),
    ("\u{a0}", "\"\\u00a0\""),
    ("\u{301}", "\"\u{301}\""),
    ("a\u{301}", "\"a\u{301}\""),
    ("\u{200b}", "\"\\u200b\""),
    ("\u{feff}", "\"\\ufeff\""),
    ("\u{1f600}", "\"\u{1f600}\""),
    ("\u{e0001}", "\"\\U000e0001\""),
    ("\u{2028}", "\"\\u2028\""),
    ("\u{fffd}", "\"\u{fffd}\""),
    ("'", "\"'\""),
    ("\u{ad}", "\"\\u00ad\""),
    ("\u{65e5}\u{672c}", "\"\u{65e5}\u{672c}\""),
];

#[test]
fn key_has_namespace_and_name() {
    let key = Key::new("kube-system", "dns");
    assert_eq!((key.namespace(), key.name()), (Some("kube-system"), "dns"));
    assert_eq!(key.to_string(), "kube-system/dns");
    assert_eq!("kube-system/dns".parse(), Ok(key));
    let node = Key::new("", "node-1");
    assert_eq!((node.namespace(), node.name()), (None, "node-1"));
    assert_eq!(node, Key::cluster("node-1"));
    assert_eq!("node-1".parse(), Ok(node));
}

#[test]
fn malformed_keys_are_refused() {
    for text in ["", "/", "a/", "/a", "a/b/c", "a//b", "a/b/"] {
        let message = format!("unexpected key format: \"{text}\"");
        assert_eq!(text.parse::<Key>().unwrap_err().to_string(), message);
    }
}

#[test]
fn map_of_keys_can_be_asked_with_text() {
    let map = BTreeMap::from([(Key::new("a", "b"), 1), (Key::cluster("c"), 2)]);
    assert_eq!(
        (map.get("a/b"), map.get("c"), map.get("b")),
        (Some(&1), Some(&2), None)
    );
}

#[test]
fn kinds_and_resources_print_as_upstream_does() {
    let deployment = Gvk::constant("apps", "v1", "Deployment");
    assert_eq!(deployment.to_string(), "apps/v1, Kind=Deployment");
    assert_eq!(deployment.api_version(), "apps/v1");
    assert_eq!(deployment.group_kind().to_string(), "Deployment.apps");
    assert_eq!(Gvk::parse("apps/v1", "Deployment"), Ok(deployment));
    let pod = Gvk::parse("v1", "Pod").unwrap();
    assert_eq!(pod.to_string(), "/v1, Kind=Pod");
    assert_eq!(pod.api_version(), "v1");
    assert_eq!(pod.group_kind(), GroupKind::new("", "Pod"));
    assert_eq!(pod.group_kind().to_string(), "Pod");
    let pods = Gvr::constant("", "v1", "pods");
    assert_eq!(pods.to_string(), "/v1, Resource=pods");
    assert_eq!(pods.group_resource().to_string(), "pods");
    assert_eq!(
        GroupResource::new("apps", "deployments").to_string(),
        "deployments.apps"
    );
}

#[test]
fn api_version_with_two_slashes_is_refused() {
    let error = "a/b/c".parse::<GroupVersion>().unwrap_err();
    assert_eq!(error.to_string(), "unexpected GroupVersion string: a/b/c");
    assert_eq!("".parse(), Ok(GroupVersion::constant("", "")));
    assert_eq!("/".parse(), Ok(GroupVersion::constant("", "")));
}

#[test]
fn uid_is_a_plain_text_in_json() {
    let uid: Uid = serde_json::from_str("\"a-b\"").unwrap();
    assert_eq!(uid, Uid::from("a-b"));
    assert_eq!(serde_json::to_string(&uid).unwrap(), "\"a-b\"");
}

#[test]
fn revisions_order_by_number() {
    let ordered = [
        "1",
        "2",
        "9",
        "10",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999",
        "100000000000000000000",
    ];
    let revisions = ordered.map(|text| text.parse::<Revision>().unwrap());
    assert!(revisions.is_sorted());
    assert_eq!(revisions.each_ref().map(ToString::to_string), ordered);
    assert_eq!(revisions[4].as_u64(), Some(u64::MAX));
    assert_eq!(revisions[5].as_u64(), None);
    assert_eq!(serde_json::to_string(&revisions[3]).unwrap(), "\"10\"");
    assert_eq!(
        serde_json::from_str::<Revision>("\"10\"").unwrap(),
        revisions[3]
    );
}

#[test]
fn malformed_revisions_are_refused() {
    for text in [
        "", "0", "007", "a", "-1", "+1", "1a", " 1", "1 ", "1.0", "\u{661}",
    ] {
        let message = format!("resource version is not well formed: {text}");
        assert_eq!(text.parse::<Revision>().unwrap_err().to_string(), message);
    }
    assert!(Revision::try_from(0).is_err());
}

#[test]
fn empty_and_zero_are_requests_and_no_revisions() {
    assert_eq!("".parse(), Ok(AtRevision::Latest));
    assert_eq!("0".parse(), Ok(AtRevision::Any));
    assert_eq!(
        "7".parse(),
        Ok(AtRevision::Given(Revision::try_from(7).unwrap()))
    );
    assert!("x".parse::<AtRevision>().is_err());
    let texts = ["", "0", "7"];
    assert_eq!(
        texts.map(|text| text.parse::<AtRevision>().unwrap().to_string()),
        texts
    );
}

#[test]
fn percentages_scale_and_numbers_stay() {
    for (json, total, up, down) in SCALED {
        let value: IntOrString = serde_json::from_str(json).unwrap();
        assert_eq!(value.scaled_up(*total), Ok(*up), "{json} of {total}");
        assert_eq!(value.scaled_down(*total), Ok(*down), "{json} of {total}");
    }
}

#[test]
fn text_that_is_no_percentage_does_not_scale() {
    for (json, message) in NOT_SCALED {
        let value: IntOrString = serde_json::from_str(json).unwrap();
        assert_eq!(
            value.scaled_up(10).unwrap_err().to_string(),
            *message,
            "{json}"
        );
    }
}

#[test]
fn numbers_or_texts_keep_their_form_in_json() {
    for json in ["5", "-1", "\"5\"", "\"http\"", "2147483647"] {
        let value: IntOrString = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&value).unwrap(), json);
    }
    for json in [
        "2147483648",
        "-2147483649",
        "18446744073709551615",
        "1.0",
        "true",
        "[]",
    ] {
        assert!(serde_json::from_str::<IntOrString>(json).is_err(), "{json}");
    }
    assert_eq!(IntOrString::parse("80"), IntOrString::Int(80));
    assert_eq!(
        IntOrString::parse("2147483648"),
        IntOrString::from("2147483648")
    );
    assert_eq!(IntOrString::parse("80%").to_string(), "80%");
}

#[test]
fn texts_are_quoted_as_upstream_does() {
    for (text, quoted) in QUOTED {
        assert_eq!(quote(text), *quoted);
    }
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
    fn keys_read_back(namespace in "[a-z]{0,5}", name in "[a-z.:]{1,8}") {
        let key = Key::new(&namespace, &name);
        prop_assert_eq!(key.to_string().parse(), Ok(key.clone()));
        prop_assert_eq!(key.namespace().unwrap_or_default(), namespace);
        prop_assert_eq!(key.name(), name);
    }

    #[test]
    fn revisions_order_as_numbers_do(a in 1..u64::MAX, b in 1..u64::MAX) {
        let revision = |number: u64| number.to_string().parse::<Revision>().unwrap();
        prop_assert_eq!(revision(a).cmp(&revision(b)), a.cmp(&b));
        prop_assert_eq!(revision(a).as_u64(), Some(a));
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = text.parse::<Key>();
        let _ = text.parse::<GroupVersion>();
        let _ = text.parse::<Revision>();
        let _ = IntOrString::from(text.as_str()).scaled_up(i64::MAX);
        prop_assert!(quote(&text).len() >= text.len() + 2);
    }
}
