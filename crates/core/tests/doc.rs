//! `Doc` against plain JSON trees: whatever is random here is checked against `serde_json`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Map, Value};
use windlass_core::{
    Change, Doc, Duplicates, Kind, Object, ParseOptions, Parser, Prune, Segment, doc,
};

/// The same cases in every run.
fn config() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(1);
    ProptestConfig {
        rng_seed,
        failure_persistence: None,
        ..ProptestConfig::with_cases(512)
    }
}

/// Few distinct strings, so that equal parts and repeated keys are common.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[abc]{0,2}",
        1 => "[a-z/~.]{1,4}",
        1 => "\\PC{0,8}",
        1 => Just("quote\" slash\\ line\n tab\t bell\u{7} \u{1f600}".to_owned()),
    ]
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-3i64..3).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |value| value.is_finite())
            .prop_map(Value::from),
    ]
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn parse(value: &Value) -> Doc {
    Doc::parse(value.to_string().as_bytes()).unwrap()
}

fn plain(doc: &Doc) -> Value {
    serde_json::from_slice(&doc.to_json()).unwrap()
}

/// Pointers into a tree, and a few that lead nowhere.
fn pointers(value: &Value) -> Vec<String> {
    let mut found = vec![String::new(), "/nowhere".to_owned(), "/a/b/c".to_owned()];
    collect_pointers(value, "", &mut found);
    found
}

fn collect_pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut visit = |token: String, inner: &Value| {
        let pointer = format!("{at}/{token}");
        collect_pointers(inner, &pointer, found);
        found.push(pointer);
    };
    match value {
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| visit(index.to_string(), item));
        }
        Value::Object(fields) => fields
            .iter()
            .for_each(|(key, value)| visit(key.replace('~', "~0").replace('/', "~1"), value)),
        _ => {}
    }
}

/// Sets a value in a plain tree, under the rules that `Doc::with` promises; false if it refuses.
fn set_plain(value: &mut Value, tokens: &[String], new: Value) -> bool {
    let Some((token, rest)) = tokens.split_first() else {
        *value = new;
        return true;
    };
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => set_plain(
            fields.entry(token.clone()).or_insert(Value::Null),
            rest,
            new,
        ),
        Value::Array(items) => {
            let index = if token == "-" {
                Ok(items.len())
            } else {
                token.parse()
            };
            match index {
                Ok(index) if index <= items.len() => {
                    if index == items.len() {
                        items.push(Value::Null);
                    }
                    set_plain(&mut items[index], rest, new)
                }
                _ => false,
            }
        }
        _ => false,
    }
}

fn tokens(pointer: &str) -> Vec<String> {
    pointer
        .split('/')
        .skip(1)
        .map(|token| token.replace("~1", "/").replace("~0", "~"))
        .collect()
}

/// Applies a list of differences to the first document.
fn replay(doc: &Doc, differences: &[windlass_core::Difference]) -> Doc {
    // Removals of items come last and from behind, so that indexes stay valid.
    let (removed, rest): (Vec<_>, Vec<_>) = differences
        .iter()
        .partition(|difference| matches!(difference.change, Change::Removed(_)));
    rest.into_iter()
        .chain(removed.into_iter().rev())
        .fold(doc.clone(), |doc, difference| {
            let pointer = difference
                .path
                .segments()
                .iter()
                .fold(String::new(), |at, segment| {
                    let token = match segment {
                        Segment::Key(key) => key.replace('~', "~0").replace('/', "~1"),
                        Segment::Index(index) => index.to_string(),
                    };
                    format!("{at}/{token}")
                });
            match &difference.change {
                Change::Added(value) | Change::Changed(_, value) => {
                    doc.with(&pointer, value).unwrap()
                }
                Change::Removed(_) => doc.without(&pointer).unwrap(),
            }
        })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn printing_and_parsing_gives_the_same_document(value in tree()) {
        let doc = parse(&value);
        prop_assert_eq!(plain(&doc), value);
        prop_assert_eq!(&Doc::parse(&doc.to_json()).unwrap(), &doc);
        prop_assert_eq!(&Doc::parse(doc.to_json_pretty().as_bytes()).unwrap(), &doc);
    }

    #[test]
    fn fields_are_found_by_keys_that_begin_alike(
        fields in proptest::collection::btree_map("(containe|a)?[a\0]{0,9}", 0..9_i64, 0..12),
        probe in "(containe|a)?[a\0]{0,9}",
    ) {
        let values = fields.iter().map(|(key, value)| (key.as_str(), Doc::from(*value)));
        let object: Object = values.collect();
        for key in fields.keys().chain([&probe]) {
            let expected = fields.get(key).map(|value| Doc::from(*value));
            prop_assert_eq!(object.get(key), expected.as_ref());
            prop_assert_eq!(object.contains_key(key), expected.is_some());
        }
        let mut more = fields.clone();
        more.insert(probe.clone(), -1);
        let found = object.with(&probe, Doc::from(-1));
        prop_assert!(found.keys().iter().map(|key| key.as_str()).eq(more.keys()));
        prop_assert_eq!(found.get(&probe), Some(&Doc::from(-1)));
    }

    #[test]
    fn serde_in_and_out_gives_the_same_document(value in tree()) {
        let doc = Doc::encode(&value).unwrap();
        prop_assert_eq!(&doc, &parse(&value));
        prop_assert_eq!(doc.decode::<Value>().unwrap(), value);
        prop_assert_eq!(&doc.decode::<Doc>().unwrap(), &doc);
    }

    #[test]
    fn yaml_out_and_in_gives_the_same_document(value in tree()) {
        let doc = doc!({ "root": parse(&value) });
        let yaml = doc.to_yaml().unwrap();
        prop_assert_eq!(Doc::parse_yaml(&yaml).unwrap(), vec![doc], "{}", yaml);
    }

    #[test]
    fn equality_is_deep_equality(a in tree(), b in tree()) {
        prop_assert_eq!(parse(&a) == parse(&b), a == b);
        prop_assert_eq!(parse(&a), parse(&a));
    }

    #[test]
    fn a_parser_that_remembers_parses_as_one_that_does_not(values in prop::collection::vec(tree(), 1..6)) {
        let mut parser = Parser::new(ParseOptions::default());
        for value in &values {
            let text = value.to_string();
            prop_assert_eq!(parser.parse(text.as_bytes()).unwrap().doc, parse(value));
        }
    }

    #[test]
    fn reading_by_pointer_is_reading_a_plain_tree(value in tree()) {
        let doc = parse(&value);
        for pointer in pointers(&value) {
            prop_assert_eq!(doc.pointer(&pointer).map(plain), value.pointer(&pointer).cloned());
        }
    }

    #[test]
    fn setting_by_pointer_is_setting_in_a_plain_tree(value in tree(), new in tree(), pick: prop::sample::Index) {
        let doc = parse(&value);
        let pointers = pointers(&value);
        let pointer = pick.get(&pointers);
        let mut expected = value.clone();
        let is_settable = set_plain(&mut expected, &tokens(pointer), new.clone());
        match doc.with(pointer, parse(&new)) {
            Ok(edited) => prop_assert_eq!(plain(&edited), expected),
            Err(error) => prop_assert!(!is_settable, "{}", error),
        }
        prop_assert_eq!(plain(&doc), value, "the original is untouched");
    }

    #[test]
    fn removing_by_pointer_leaves_the_rest(value in tree(), pick: prop::sample::Index) {
        let doc = parse(&value);
        let pointers = pointers(&value);
        let pointer = pick.get(&pointers);
        let edited = doc.without(pointer).unwrap();
        let mut expected = value;
        let (parent, token) = pointer.rsplit_once('/').unwrap_or(("", ""));
        let token = token.replace("~1", "/").replace("~0", "~");
        match expected.pointer_mut(parent) {
            _ if pointer.is_empty() => expected = Value::Null,
            Some(Value::Object(fields)) => drop(fields.remove(&token)),
            Some(Value::Array(items)) => drop(token.parse().map(|at: usize| items.remove(at))),
            _ => {}
        }
        prop_assert_eq!(plain(&edited), expected);
    }

    #[test]
    fn a_diff_leads_from_one_document_to_the_other(a in tree(), b in tree()) {
        let (a, b) = (parse(&a), parse(&b));
        let differences = a.diff(&b);
        prop_assert_eq!(differences.is_empty(), a == b);
        prop_assert_eq!(replay(&a, &differences), b);
    }

    #[test]
    fn merge_patch_between_two_objects_leads_from_one_to_the_other(a in tree(), b in tree()) {
        let (a, b) = (without_nulls(&parse(&a)), without_nulls(&parse(&b)));
        let patch = windlass_core::merge_patch_between(&a, &b);
        prop_assert_eq!(windlass_core::merge_patch(&a, &patch), b);
    }

    #[test]
    fn pruning_while_parsing_is_removing_afterwards(value in tree(), key in "[abc]", inner in "[abc]") {
        let whole = doc!({ "a": parse(&value), "b": { "a": parse(&value) } });
        let prune = Prune::nothing().and(&format!("{key}.{inner}"));
        let applied = prune.apply(&whole);
        let pruned = Doc::parse_with(&whole.to_json(), &ParseOptions::pruning(prune)).unwrap();
        prop_assert_eq!(&applied, &pruned);
        let expected = match whole.get(&key).map(Doc::kind) {
            Some(Kind::Object(_)) => whole.without(&format!("/{key}/{inner}")).unwrap(),
            _ => whole,
        };
        prop_assert_eq!(pruned, expected);
    }

    #[test]
    fn a_cut_document_is_an_error_at_its_end(value in tree(), cut: prop::sample::Index) {
        let text = doc!({ "root": parse(&value) }).to_json();
        let end = cut.index(text.len());
        prop_assert!(Doc::parse(&text[..end]).is_err());
    }

    #[test]
    fn any_bytes_give_a_document_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(doc) = Doc::parse(&bytes) {
            prop_assert_eq!(Doc::parse(&doc.to_json()).unwrap(), doc);
        }
    }

    #[test]
    fn a_changed_byte_gives_a_document_or_an_error(value in tree(), at: prop::sample::Index, byte: u8) {
        let mut text = doc!([ (parse(&value)) ]).to_json();
        let at = at.index(text.len());
        text[at] = byte;
        let ours = Doc::parse(&text).ok().map(|doc| plain(&doc));
        // Where both accept they agree; ours also refuses repeated keys and integers past u64.
        if let (Some(ours), Ok(theirs)) = (ours, serde_json::from_slice::<Value>(&text)) {
            prop_assert_eq!(ours, theirs);
        }
    }
}

/// Merge patches cannot say "set to null", so such documents are left out of that property.
fn without_nulls(doc: &Doc) -> Doc {
    match doc.kind() {
        Kind::Object(object) => object
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_nulls(value)))
            .collect::<Object>()
            .into(),
        _ => doc.clone(),
    }
}

#[test]
fn integers_and_floats_stay_apart() {
    let kinds = |text: &str| format!("{:?}", Doc::parse(text.as_bytes()).unwrap().kind());
    assert_eq!(kinds("1"), "Int(1)");
    assert_eq!(kinds("-9223372036854775808"), "Int(-9223372036854775808)");
    assert_eq!(kinds("9223372036854775808"), "UInt(9223372036854775808)");
    assert_eq!(kinds("18446744073709551615"), "UInt(18446744073709551615)");
    assert_eq!(kinds("1.0"), "Float(1.0)");
    assert_eq!(kinds("1e2"), "Float(100.0)");
    assert_ne!(Doc::from(1), Doc::from(1.0));
    assert_eq!(Doc::from(7_u64), Doc::from(7_i64));
}

#[test]
fn keys_stand_in_canonical_order_whatever_order_they_came_in() {
    let one = Doc::parse(br#"{"b": 1, "a": 2, "B": 3}"#).unwrap();
    assert_eq!(one.to_string(), r#"{"B":3,"a":2,"b":1}"#);
    assert_eq!(one, doc!({ "B": 3, "a": 2, "b": 1 }));
}

#[test]
fn a_repeated_key_is_refused_with_its_path() {
    let error = Doc::parse(br#"{"spec": [{"a": 1}, {"a": 1, "b": 2, "a": 3}]}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid JSON at line 1, column 45 (in spec[1].a): duplicate key"
    );
}

#[test]
fn a_repeated_key_can_be_let_pass_and_is_listed() {
    let options = ParseOptions {
        duplicates: Duplicates::KeepLast,
        ..ParseOptions::default()
    };
    let text = br#"{"a": 1, "spec": [{}, {"x": 1, "x": 2, "x": 3}], "a": {"y": 1, "y": 2}}"#;
    let parsed = Parser::new(options).parse(text).unwrap();
    assert_eq!(
        parsed.doc,
        doc!({ "a": { "y": 2 }, "spec": [{}, { "x": 3 }] })
    );
    let paths: Vec<_> = parsed.duplicates.iter().map(ToString::to_string).collect();
    assert_eq!(paths, ["spec[1].x", "spec[1].x", "a.y", "a"]);
}

#[test]
fn pruning_reaches_into_arrays() {
    let prune = Prune::managed_fields().and("spec.containers[].env");
    let text = br#"{"metadata": {"managedFields": [{"x": "]}\"{"}], "name": "a"},
                    "spec": {"containers": [{"env": [1, 2], "name": "b"}, {"name": "c"}]}}"#;
    let applied = prune.apply(&Doc::parse(text).unwrap());
    let pruned = Doc::parse_with(text, &ParseOptions::pruning(prune)).unwrap();
    assert_eq!(applied, pruned);
    assert_eq!(
        pruned,
        doc!({ "metadata": { "name": "a" },
               "spec": { "containers": [{ "name": "b" }, { "name": "c" }] } })
    );
}

#[test]
fn the_depth_limit_counts_arrays_and_objects() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(Doc::parse(nested(windlass_core::DEPTH_LIMIT).as_bytes()).is_ok());
    let error = Doc::parse(nested(10_000).as_bytes()).unwrap_err();
    assert!(
        error.to_string().ends_with("nested deeper than 256 levels"),
        "{error}"
    );
    assert_eq!(error.column(), 257);
    let objects = "{\"a\":".repeat(10_000);
    assert!(
        Doc::parse(objects.as_bytes())
            .unwrap_err()
            .to_string()
            .contains("deeper")
    );
}

#[test]
fn the_length_limit_is_checked_before_anything_is_read() {
    let options = ParseOptions {
        bytes_limit: 3 << 20,
        ..ParseOptions::default()
    };
    let garbage = vec![b'{'; (3 << 20) + 1];
    let error = Doc::parse_with(&garbage, &options).unwrap_err();
    assert!(
        error.to_string().ends_with("longer than 3145728 bytes"),
        "{error}"
    );
}

#[test]
fn three_mebibytes_of_garbage_are_an_error() {
    for byte in [b'{', b'[', b'"', b'0', b' ', b'\\', 0xff, 0] {
        assert!(Doc::parse(&vec![byte; 3 << 20]).is_err(), "{byte}");
    }
}

#[test]
fn a_wide_object_keeps_every_field() {
    let fields: Vec<String> = (0..70_000)
        .rev()
        .map(|at| format!("\"k{at:05}\":{at}"))
        .collect();
    let doc = Doc::parse(format!("{{{}}}", fields.join(",")).as_bytes()).unwrap();
    assert_eq!(doc.as_object().map(Object::len), Some(70_000));
    assert_eq!(doc.at("/k00007"), 7);
    assert_eq!(doc.at("/k69999"), 69_999);
}

#[test]
fn a_view_reads_only_its_fields_and_says_where_it_fails() {
    #[derive(Debug, serde::Deserialize)]
    struct View {
        spec: Spec,
    }
    #[derive(Debug, serde::Deserialize)]
    struct Spec {
        containers: Vec<Container>,
    }
    #[derive(Debug, serde::Deserialize)]
    struct Container {
        name: String,
    }
    let pod = doc!({ "spec": { "containers": [{ "name": "a", "image": "x" }], "nodeName": "n" } });
    assert_eq!(pod.decode::<View>().unwrap().spec.containers[0].name, "a");
    let bad = pod.with("/spec/containers/0/name", 7).unwrap();
    let error = bad.decode::<View>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "spec.containers[0].name: invalid type: integer `7`, expected a string"
    );
}

#[test]
fn enums_and_options_survive_the_way_through_serde() {
    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    enum Shape {
        Unit,
        Newtype(i32),
        Tuple(i32, String),
        Struct { a: Option<u64>, b: Option<bool> },
    }
    for shape in [
        Shape::Unit,
        Shape::Newtype(-1),
        Shape::Tuple(2, "x".to_owned()),
        Shape::Struct {
            a: Some(u64::MAX),
            b: None,
        },
    ] {
        assert_eq!(
            Doc::encode(&shape).unwrap().decode::<Shape>().unwrap(),
            shape
        );
    }
}

#[test]
fn what_json_cannot_hold_is_refused_when_encoding() {
    assert!(Doc::encode(&f64::NAN).is_err());
    assert!(Doc::encode(&f64::INFINITY).is_err());
    assert!(Doc::encode(&std::collections::BTreeMap::from([(vec![1], 2)])).is_err());
}

#[test]
fn paths_print_as_kubernetes_writes_them() {
    let before =
        doc!({ "metadata": { "labels": { "app.io/name": "a" } }, "spec": [1, { "x": 1 }] });
    let after =
        doc!({ "metadata": { "labels": { "app.io/name": "b" } }, "spec": [1, { "y": 1 }, 3] });
    let paths: Vec<_> = before
        .diff(&after)
        .iter()
        .map(|found| found.path.to_string())
        .collect();
    assert_eq!(
        paths,
        [
            "metadata.labels[app.io/name]",
            "spec[1].x",
            "spec[1].y",
            "spec[2]"
        ]
    );
    assert_eq!(before.diff_up_to(&after, 2).len(), 2);
}

#[test]
fn editing_shares_what_did_not_change() {
    let before =
        doc!({ "spec": { "containers": [{ "name": "a" }] }, "status": { "phase": "Pending" } });
    let after = before.with("/status/phase", "Running").unwrap();
    let mut footprint = windlass_core::Footprint::default();
    let whole = footprint.add(&before);
    assert!(footprint.add(&after) < whole / 2);
}

#[test]
fn every_yaml_document_of_a_stream_is_read() {
    let docs = Doc::parse_yaml("a: 1\n---\n---\nb: [x, 'true', true, 1.5]\n").unwrap();
    assert_eq!(
        docs,
        [doc!({ "a": 1 }), doc!({ "b": ["x", "true", true, 1.5] })]
    );
}

#[test]
fn yaml_with_a_tab_says_where() {
    let error = Doc::parse_yaml("a:\n\tb: 1\n").unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
}

/// Two documents whose `spec` is written alike, as pods of one template are.
fn of_one_template(name: &str) -> String {
    let spec = r#"{"containers":[{"name":"app","image":"registry.example/app:1"}]}"#;
    format!(r#"{{"metadata":{{"name":"{name}","labels":{spec}}},"spec":{spec}}}"#)
}

#[test]
fn a_part_that_repeats_is_read_as_it_was_before() {
    let mut parser = Parser::new(ParseOptions::default());
    for name in ["a", "b", "b"] {
        let text = of_one_template(name);
        let parsed = parser.parse(text.as_bytes()).unwrap();
        assert_eq!(parsed.doc, Doc::parse(text.as_bytes()).unwrap());
    }
}

#[test]
fn parts_of_many_templates_that_come_in_turns_are_read_as_they_are_written() {
    let mut parser = Parser::new(ParseOptions::pruning(Prune::managed_fields()));
    for round in 0..4 {
        // More templates than are remembered, and some whose text starts as another's does.
        for template in 0..20 {
            let image = format!("registry.example/app:{}", "1".repeat(template));
            let spec = format!(r#"{{"containers":[{{"name":"app","image":"{image}"}}]}}"#);
            let metadata = format!(
                r#"{{"name":"pod-{round}-{template}","labels":{spec},"managedFields":[{spec}]}}"#
            );
            let text = format!(r#"{{"metadata":{metadata},"spec":{spec},"status":[{spec}]}}"#);
            let whole = Doc::parse(text.as_bytes()).unwrap();
            let doc = parser.parse(text.as_bytes()).unwrap().doc;
            assert_eq!(doc, Prune::managed_fields().apply(&whole));
        }
    }
}

#[test]
fn what_is_skipped_at_one_place_is_read_at_another() {
    let mut parser = Parser::new(ParseOptions::pruning(Prune::nothing().and("spec")));
    let part = r#"{"containers":[{"name":"app","image":"registry.example/app:1"}]}"#;
    for _ in 0..2 {
        let text = format!(r#"{{"spec":{part},"status":{part}}}"#);
        let doc = parser.parse(text.as_bytes()).unwrap().doc;
        assert!(doc.at("/spec").is_null());
        assert_eq!(*doc.at("/status"), Doc::parse(part.as_bytes()).unwrap());
    }
}

#[test]
fn skipped_text_that_ends_too_early_is_refused_after_one_that_does_not() {
    let mut parser = Parser::new(ParseOptions::pruning(Prune::nothing().and("spec")));
    let part = r#"{"containers":[{"name":"app","image":"registry.example/app:1"}]}"#;
    assert!(
        parser
            .parse(format!(r#"{{"spec":{part}}}"#).as_bytes())
            .is_ok()
    );
    assert!(
        parser
            .parse(format!(r#"{{"spec":{part}"#).as_bytes())
            .is_err()
    );
    let cut = &part[..part.len() - 1];
    assert!(
        parser
            .parse(format!(r#"{{"spec":{cut}}}"#).as_bytes())
            .is_err()
    );
}

#[test]
fn a_part_that_repeats_where_something_is_pruned_is_pruned() {
    let prune = Prune::nothing().and("metadata.labels.containers");
    let options = ParseOptions::pruning(prune.clone());
    let mut parser = Parser::new(options);
    for name in ["a", "b"] {
        let text = of_one_template(name);
        let whole = Doc::parse(text.as_bytes()).unwrap();
        let doc = parser.parse(text.as_bytes()).unwrap().doc;
        assert_eq!(doc, prune.apply(&whole));
        assert!(doc.at("/metadata/labels/containers").is_null());
    }
}

#[test]
fn a_key_that_comes_twice_is_told_of_in_every_document() {
    let options = ParseOptions {
        duplicates: Duplicates::KeepLast,
        ..ParseOptions::default()
    };
    let mut parser = Parser::new(options);
    let text = br#"{"spec":{"containers":[{"name":"some-name","name":"another-name"}]}}"#;
    for _ in 0..2 {
        assert_eq!(parser.parse(text).unwrap().duplicates.len(), 1);
    }
}
