use proptest::prelude::*;
use windlass_core::doc;

use super::*;

fn compare(owned: &Doc, wanted: &Doc) -> Result<Missing, TooMuchWork> {
    let rules = |rules: &Doc| -> Vec<Doc> { rules.items().to_vec() };
    let (owned, wanted) = (rules(owned), rules(wanted));
    let owned: Vec<Rule<'_>> = owned.iter().map(Rule::of).collect();
    let wanted: Vec<Rule<'_>> = wanted.iter().map(Rule::of).collect();
    missing(&owned, &wanted)
}

fn lines(owned: &Doc, wanted: &Doc) -> Vec<String> {
    let text = compare(owned, wanted).unwrap().describe();
    text.lines().map(str::to_owned).collect()
}

fn many(prefix: &str, count: usize) -> Doc {
    let names = (0..count).map(|at| Doc::from(format!("{prefix}{at}")));
    names.collect::<Vec<Doc>>().into()
}

#[test]
fn missing_rights_are_listed_as_upstream_lists_them() {
    let owned = doc!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/scale"] }]);
    let wanted = doc!([
        { "verbs": ["list", "get", "watch"], "apiGroups": ["", "apps"], "resources": ["pods"] },
        { "verbs": ["get"], "apiGroups": [""], "resources": ["b/scale", "b"],
          "resourceNames": ["x"] },
        { "verbs": ["get", "put"], "nonResourceURLs": ["/a"] }
    ]);
    let expected = [
        r#"{APIGroups:[""], Resources:["b"], ResourceNames:["x"], Verbs:["get"]}"#,
        r#"{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}"#,
        r#"{APIGroups:["apps"], Resources:["pods"], Verbs:["list" "get" "watch"]}"#,
        r#"{NonResourceURLs:["/a"], Verbs:["get"]}"#,
        r#"{NonResourceURLs:["/a"], Verbs:["put"]}"#,
    ];
    assert_eq!(lines(&owned, &wanted), expected);
}

#[test]
fn patterns_of_urls_cover_what_begins_with_them() {
    let owned = doc!([{ "verbs": ["get"], "nonResourceURLs": ["/a/*", "/b"] }]);
    let wanted = doc!([{ "verbs": ["get"], "nonResourceURLs": ["/a/b", "/a/*", "/b", "/b/c"] }]);
    let expected = [r#"{NonResourceURLs:["/b/c"], Verbs:["get"]}"#];
    assert_eq!(lines(&owned, &wanted), expected);
}

/// 614,656 single rights in fewer than a kilobyte: comparing them one by one took 41 seconds.
#[test]
fn a_small_role_of_many_combinations_is_not_taken_apart() {
    let rule = doc!({
        "verbs": (many("v", 28)), "apiGroups": (many("g", 28)), "resources": (many("r", 28)),
        "resourceNames": (many("n", 28))
    });
    let mut budget = Budget(STEPS_LIMIT);
    let mut found = Missing::default();
    missing_resources(&Index::of(&[]), &Rule::of(&rule), &mut budget, &mut found).unwrap();
    assert!(found.is_cut && !found.is_empty());
    assert!(found.bytes < 2 * TEXT_BYTES_LIMIT);
    assert!(STEPS_LIMIT - budget.0 < 1_000, "{}", STEPS_LIMIT - budget.0);
    // Held as a whole, or but for one.
    let all = doc!([rule]);
    assert!(compare(&all, &all).unwrap().is_empty());
    let less = doc!({
        "verbs": (many("v", 27)), "apiGroups": (many("g", 28)), "resources": (many("r", 28)),
        "resourceNames": (many("n", 28))
    });
    let found = compare(&doc!([less]), &all).unwrap();
    assert!(
        found
            .describe()
            .lines()
            .all(|line| line.contains("\"v27\"") || line == "... and more")
    );
}

/// Every value is mentioned by a rule of its own, so that no two are alike.
#[test]
fn rules_that_no_bounded_comparison_decides_are_refused() {
    const COUNT: usize = 130;
    let own = |at: usize| {
        let star = || doc!(["*"]);
        let rule = |groups: Doc, resources: Doc, names: Doc| {
            doc!({
                "verbs": ["get"], "apiGroups": groups, "resources": resources,
                "resourceNames": names
            })
        };
        let one = |prefix: &str| doc!([(format!("{prefix}{at}"))]);
        let names = many("n", COUNT);
        [
            rule(one("g"), star(), names.clone()),
            rule(star(), one("r"), names),
            rule(star(), star(), one("n")),
        ]
    };
    let owned: Vec<Doc> = (0..COUNT).flat_map(own).collect();
    let wanted = doc!([{
        "verbs": ["get"], "apiGroups": (many("g", COUNT)), "resources": (many("r", COUNT)),
        "resourceNames": (many("n", COUNT))
    }]);
    let found = compare(&owned.into(), &wanted);
    assert_eq!(found.map(|found| found.is_empty()), Err(TooMuchWork));
}

#[test]
fn thousands_of_names_that_are_held_one_by_one_are_compared() {
    let own = |at: usize| {
        doc!({
            "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
            "resourceNames": [(format!("n{at}"))]
        })
    };
    let owned: Vec<Doc> = (0..3000).map(own).collect();
    let wanted = doc!([{
        "verbs": ["get"], "apiGroups": [""], "resources": ["a"], "resourceNames": (many("n", 3000))
    }]);
    let found = compare(&owned.into(), &wanted);
    assert_eq!(found.map(|found| found.is_empty()), Ok(true));
}

/// The definition, right by right.
fn naive(owned: &[Doc], wanted: &[Doc]) -> bool {
    let texts = |rule: &Doc, key: &str| -> Vec<String> {
        let items = rule.get(key).map(Doc::items).unwrap_or_default();
        items
            .iter()
            .map(|it| it.as_str().unwrap().to_owned())
            .collect()
    };
    let has = |list: &[String], value: &str| list.iter().any(|it| it == value || it == "*");
    let covers = |rule: &Doc, group: &str, resource: &str, verb: &str, name: Option<&String>| {
        let part = resource
            .split_once('/')
            .map(|(_, part)| format!("*/{part}"));
        let (resources, names) = (texts(rule, "resources"), texts(rule, "resourceNames"));
        has(&texts(rule, "verbs"), verb)
            && has(&texts(rule, "apiGroups"), group)
            && (has(&resources, resource) || part.is_some_and(|part| resources.contains(&part)))
            && (names.is_empty() || name.is_some_and(|name| names.contains(name)))
    };
    wanted.iter().all(|rule| {
        let names = texts(rule, "resourceNames");
        let names: Vec<Option<&String>> = match names.as_slice() {
            [] => vec![None],
            names => names.iter().map(Some).collect(),
        };
        texts(rule, "apiGroups").iter().all(|group| {
            texts(rule, "resources").iter().all(|resource| {
                texts(rule, "verbs").iter().all(|verb| {
                    names.iter().all(|name| {
                        owned
                            .iter()
                            .any(|own| covers(own, group, resource, verb, *name))
                    })
                })
            })
        })
    })
}

fn rule() -> impl Strategy<Value = Doc> {
    let some = |values: &'static [&'static str], least: usize| {
        prop::sample::subsequence(values, least..=values.len()).prop_map(|values| {
            let values: Vec<Doc> = values.into_iter().map(Doc::from).collect();
            Doc::from(values)
        })
    };
    (
        some(&["get", "list", "*"], 1),
        some(&["", "apps", "*"], 1),
        some(&["pods", "pods/scale", "*/scale", "*"], 1),
        some(&["x", "y"], 0),
    )
        .prop_map(|(verbs, groups, resources, names)| {
            doc!({
                "verbs": verbs, "apiGroups": groups, "resources": resources,
                "resourceNames": names
            })
        })
}

proptest! {
    #[test]
    fn sets_cover_what_single_rights_cover(
        owned in prop::collection::vec(rule(), 0..5),
        wanted in prop::collection::vec(rule(), 1..3),
    ) {
        let expected = naive(&owned, &wanted);
        let found = compare(&owned.into(), &wanted.into()).unwrap();
        prop_assert_eq!(found.is_empty(), expected);
    }
}
