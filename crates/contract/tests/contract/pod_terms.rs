//! What pods demand of the pods around them: labels of their own that their terms name by key
//! alone, and terms that cannot be.

use windlass_contract::objects::{deployment, pod, replica_set};
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    keys_of_affinity_terms_become_expressions,
    keys_of_wished_terms_become_expressions,
    keys_of_spread_constraints_become_expressions,
    keys_follow_the_expressions_that_are_there,
    keys_that_the_pod_does_not_have_add_nothing,
    key_with_an_empty_value_is_merged,
    selector_that_selects_all_is_narrowed,
    merged_selector_belongs_to_its_author,
    dry_run_shows_the_merged_selector,
    update_merges_nothing,
    merged_selector_cannot_be_taken_back,
    second_apply_of_unmerged_terms_is_refused,
    templates_are_not_merged,
    keys_without_a_selector_are_refused,
    key_that_the_selector_names_is_refused,
    key_that_an_expression_names_is_refused,
    key_named_twice_is_refused,
    mismatched_key_may_be_in_the_selector,
    key_in_both_lists_is_refused,
    malformed_keys_are_refused,
    key_of_the_selector_that_the_pod_lacks_is_accepted,
    duplicate_in_a_template_is_found_with_its_pods,
    term_without_a_topology_key_is_refused,
    term_of_an_impossible_selector_is_refused,
    weight_out_of_range_is_refused,
    namespace_of_a_term_is_checked,
    impossible_spread_constraints_are_refused,
    repeated_spread_constraint_is_refused,
    templates_are_checked_like_pods,
];

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const TOPOLOGY: &str = "kubernetes.io/hostname";

/// A pod with three labels.
fn labeled() -> Doc {
    let labels = doc!({ "app": "web", "hash": "1", "tenant": "red" });
    pod("a").set("/metadata/labels", labels)
}

fn term(selector: Doc, matched: &[&str], mismatched: &[&str]) -> Doc {
    let list = |keys: &[&str]| keys.iter().map(|key| Doc::from(*key)).collect::<Vec<_>>();
    doc!({
        "labelSelector": selector, "topologyKey": TOPOLOGY,
        "matchLabelKeys": (list(matched)), "mismatchLabelKeys": (list(mismatched)),
    })
}

fn constraint(selector: Doc, keys: &[&str]) -> Doc {
    let keys: Vec<Doc> = keys.iter().map(|key| Doc::from(*key)).collect();
    doc!({
        "labelSelector": selector, "topologyKey": TOPOLOGY, "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": keys,
    })
}

fn web() -> Doc {
    doc!({ "matchLabels": { "app": "web" } })
}

fn near(term: Doc) -> Doc {
    labeled().set(
        &format!("/spec/affinity/podAffinity/{REQUIRED}"),
        doc!([term]),
    )
}

fn spread(constraint: Doc) -> Doc {
    labeled().set("/spec/topologySpreadConstraints", doc!([constraint]))
}

fn near_at(pod: &Doc) -> Doc {
    pod.at(&format!("/spec/affinity/podAffinity/{REQUIRED}/0"))
        .clone()
}

fn is_in(key: &str, value: &str) -> Doc {
    doc!({ "key": key, "operator": "In", "values": [value] })
}

fn is_not_in(key: &str, value: &str) -> Doc {
    doc!({ "key": key, "operator": "NotIn", "values": [value] })
}

async fn keys_of_affinity_terms_become_expressions(t: &Scope) {
    for sort in ["podAffinity", "podAntiAffinity"] {
        let terms = doc!([
            (term(web(), &["hash", "missing"], &["tenant"])),
            (term(web(), &[], &[]))
        ]);
        let given = labeled().set(&format!("/spec/affinity/{sort}/{REQUIRED}"), terms);
        let made = t.made("pods", &given).await;
        let terms = made.at(&format!("/spec/affinity/{sort}/{REQUIRED}"));
        assert_eq!(
            terms.at("/0"),
            &doc!({
                "labelSelector": {
                    "matchLabels": { "app": "web" },
                    "matchExpressions": [(is_in("hash", "1")), (is_not_in("tenant", "red"))],
                },
                "topologyKey": TOPOLOGY,
                "matchLabelKeys": ["hash", "missing"],
                "mismatchLabelKeys": ["tenant"],
            })
        );
        assert_eq!(terms.at("/1/labelSelector"), &web());
        t.delete("pods/a").await.is(200);
    }
}

async fn keys_of_wished_terms_become_expressions(t: &Scope) {
    for sort in ["podAffinity", "podAntiAffinity"] {
        let wish = doc!({ "weight": 1, "podAffinityTerm": (term(web(), &["hash"], &["tenant"])) });
        let path = format!("/spec/affinity/{sort}/{PREFERRED}");
        let made = t.made("pods", &labeled().set(&path, doc!([wish]))).await;
        assert_eq!(
            made.at(&format!(
                "{path}/0/podAffinityTerm/labelSelector/matchExpressions"
            )),
            &doc!([(is_in("hash", "1")), (is_not_in("tenant", "red"))])
        );
        t.delete("pods/a").await.is(200);
    }
}

async fn keys_of_spread_constraints_become_expressions(t: &Scope) {
    let made = t
        .made("pods", &spread(constraint(web(), &["hash", "missing"])))
        .await;
    assert_eq!(
        made.at("/spec/topologySpreadConstraints/0"),
        &doc!({
            "labelSelector": {
                "matchLabels": { "app": "web" },
                "matchExpressions": [(is_in("hash", "1"))],
            },
            "topologyKey": TOPOLOGY, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
            "matchLabelKeys": ["hash", "missing"],
        })
    );
    assert_eq!(t.get("pods/a").await.is(200).at("/spec"), made.at("/spec"));
}

async fn keys_follow_the_expressions_that_are_there(t: &Scope) {
    let selector = doc!({ "matchExpressions": [{ "key": "x", "operator": "Exists" }] });
    let made = t
        .made("pods", &near(term(selector, &["tenant", "hash"], &["app"])))
        .await;
    assert_eq!(
        near_at(&made).at("/labelSelector/matchExpressions"),
        &doc!([
            { "key": "x", "operator": "Exists" },
            (is_in("tenant", "red")), (is_in("hash", "1")), (is_not_in("app", "web")),
        ])
    );
}

async fn keys_that_the_pod_does_not_have_add_nothing(t: &Scope) {
    let made = t.made("pods", &near(term(web(), &["x"], &["y"]))).await;
    assert_eq!(near_at(&made).at("/labelSelector"), &web());
    let bare = spread(constraint(web(), &["hash"]));
    let bare = bare.set("/metadata", doc!({ "name": "b" }));
    let made = t.made("pods", &bare).await;
    let selector = made.at("/spec/topologySpreadConstraints/0/labelSelector");
    assert_eq!(selector, &web());
}

async fn key_with_an_empty_value_is_merged(t: &Scope) {
    let given = near(term(web(), &["hash"], &[])).set("/metadata/labels/hash", "");
    let made = t.made("pods", &given).await;
    assert_eq!(
        near_at(&made).at("/labelSelector/matchExpressions"),
        &doc!([(is_in("hash", ""))])
    );
}

async fn selector_that_selects_all_is_narrowed(t: &Scope) {
    let made = t.made("pods", &near(term(doc!({}), &["hash"], &[]))).await;
    assert_eq!(
        near_at(&made).at("/labelSelector"),
        &doc!({ "matchExpressions": [(is_in("hash", "1"))] })
    );
}

async fn merged_selector_belongs_to_its_author(t: &Scope) {
    let made = t.made("pods", &spread(constraint(web(), &["hash"]))).await;
    let managers = made.at("/metadata/managedFields").items();
    assert_eq!(managers.len(), 1);
    let constraints = managers[0].at("/fieldsV1/f:spec/f:topologySpreadConstraints");
    let item =
        format!("k:{{\"topologyKey\":\"{TOPOLOGY}\",\"whenUnsatisfiable\":\"DoNotSchedule\"}}");
    let item = constraints.get(&item).expect("the constraint has an owner");
    assert_eq!(item.at("/f:labelSelector"), &doc!({}));
    assert_eq!(item.at("/f:matchLabelKeys"), &doc!({}));
}

async fn dry_run_shows_the_merged_selector(t: &Scope) {
    let made = t
        .create("pods?dryRun=All", &near(term(web(), &["hash"], &[])))
        .await
        .is(201);
    assert_eq!(
        near_at(&made).at("/labelSelector/matchExpressions"),
        &doc!([(is_in("hash", "1"))])
    );
}

async fn update_merges_nothing(t: &Scope) {
    let given = near(term(web(), &["hash", "late"], &[]));
    let made = t.made("pods", &given).await;
    let labels = doc!({ "metadata": { "labels": { "hash": "2", "late": "x" } } });
    let changed = t.merge("pods/a", &labels).await.is(200);
    assert_eq!(near_at(&changed), near_at(&made));
    let image = doc!([{
        "op": "replace", "path": "/spec/containers/0/image", "value": "registry.example/app:2"
    }]);
    let changed = t.edit("pods/a", &image).await.is(200);
    assert_eq!(near_at(&changed), near_at(&made));
    assert_eq!(
        t.update("pods/a", &changed).await.is(200).at("/spec"),
        changed.at("/spec")
    );
}

async fn merged_selector_cannot_be_taken_back(t: &Scope) {
    let given = near(term(web(), &["hash"], &[]));
    t.made("pods", &given).await;
    let terms = doc!([(term(web(), &["hash"], &[]))]);
    let patch = doc!({}).set(&format!("/spec/affinity/podAffinity/{REQUIRED}"), terms);
    t.merge("pods/a", &patch)
        .await
        .fails(422, "Invalid")
        .because("FieldValueForbidden", "spec");
}

async fn second_apply_of_unmerged_terms_is_refused(t: &Scope) {
    let given = near(term(web(), &["hash"], &[]));
    t.applied("one", "pods/a", &given).await;
    t.apply("one", "pods/a", &given)
        .await
        .fails(422, "Invalid")
        .because("FieldValueForbidden", "spec");
}

async fn templates_are_not_merged(t: &Scope) {
    for (plural, object) in [
        ("deployments", deployment("a")),
        ("replicasets", replica_set("a")),
    ] {
        let terms = doc!([(term(web(), &["app", "hash"], &[]))]);
        let spec = "/spec/template/spec";
        let given = object
            .set("/spec/replicas", 0)
            .set("/spec/template/metadata/labels/hash", "1")
            .set(
                &format!("{spec}/affinity/podAntiAffinity/{REQUIRED}"),
                terms,
            )
            .set(
                &format!("{spec}/topologySpreadConstraints"),
                doc!([(constraint(web(), &["hash"]))]),
            );
        let made = t.made(plural, &given).await;
        let spec = made.at(spec);
        assert_eq!(
            spec.at(&format!(
                "/affinity/podAntiAffinity/{REQUIRED}/0/labelSelector"
            )),
            &web()
        );
        assert_eq!(
            spec.at("/topologySpreadConstraints/0/labelSelector"),
            &web()
        );
    }
}

/// Demands that a pod is refused with exactly these words.
async fn refused(t: &Scope, given: &Doc, words: &str) {
    let answer = t.create("pods", given).await;
    answer
        .fails(422, "Invalid")
        .says(&format!("Pod \"a\" is invalid: {words}"));
}

fn near_path() -> String {
    format!("spec.affinity.podAffinity.{REQUIRED}[0]")
}

async fn keys_without_a_selector_are_refused(t: &Scope) {
    let bare = |term: Doc| term.cut("/labelSelector");
    let at = near_path();
    let says = "Forbidden: must not be specified when labelSelector is not set";
    let given = near(bare(term(doc!({}), &["hash"], &["tenant"])));
    let words = format!("[{at}.matchLabelKeys: {says}, {at}.mismatchLabelKeys: {says}]");
    refused(t, &given, &words).await;
    let given = spread(bare(constraint(doc!({}), &["hash"])));
    let words = format!("spec.topologySpreadConstraints[0].matchLabelKeys: {says}");
    refused(t, &given, &words).await;
}

async fn key_that_the_selector_names_is_refused(t: &Scope) {
    let says = "Invalid value: \"app\": exists in both matchLabelKeys and labelSelector";
    // The number is that of the key, beside that of the term.
    let at = near_path();
    refused(
        t,
        &near(term(web(), &["hash", "app"], &[])),
        &format!("{at}[1]: {says}"),
    )
    .await;
    let words = format!("spec.topologySpreadConstraints[0][0]: {says}");
    refused(t, &spread(constraint(web(), &["app"])), &words).await;
}

async fn key_that_an_expression_names_is_refused(t: &Scope) {
    let says = "Invalid value: \"hash\": exists in both matchLabelKeys and labelSelector";
    let selector = || doc!({ "matchExpressions": [{ "key": "hash", "operator": "Exists" }] });
    let at = near_path();
    refused(
        t,
        &near(term(selector(), &["hash"], &[])),
        &format!("{at}[0]: {says}"),
    )
    .await;
    let words = format!("spec.topologySpreadConstraints[0][0]: {says}");
    refused(t, &spread(constraint(selector(), &["hash"])), &words).await;
}

async fn key_named_twice_is_refused(t: &Scope) {
    let says = "Invalid value: \"hash\": exists in both matchLabelKeys and labelSelector";
    let at = near_path();
    refused(
        t,
        &near(term(web(), &["hash", "hash"], &[])),
        &format!("{at}[1]: {says}"),
    )
    .await;
}

async fn mismatched_key_may_be_in_the_selector(t: &Scope) {
    let made = t.made("pods", &near(term(web(), &[], &["app"]))).await;
    assert_eq!(
        near_at(&made).at("/labelSelector/matchExpressions"),
        &doc!([(is_not_in("app", "web"))])
    );
}

async fn key_in_both_lists_is_refused(t: &Scope) {
    let at = near_path();
    let both = "exists in both matchLabelKeys and mismatchLabelKeys";
    // The pod does not have the first key: nothing is merged for it.
    let given = near(term(web(), &["missing"], &["missing"]));
    let words = format!("{at}.matchLabelKeys[0]: Invalid value: \"missing\": {both}");
    refused(t, &given, &words).await;
    let given = near(term(web(), &["hash"], &["hash"]));
    let words = format!(
        "[{at}[0]: Invalid value: \"hash\": exists in both matchLabelKeys and labelSelector, \
         {at}.matchLabelKeys[0]: Invalid value: \"hash\": {both}]"
    );
    refused(t, &given, &words).await;
}

async fn malformed_keys_are_refused(t: &Scope) {
    let at = near_path();
    for (given, field) in [
        (
            near(term(web(), &["not a key"], &[])),
            format!("{at}.matchLabelKeys[0]"),
        ),
        (
            near(term(web(), &[], &["hash", "not a key"])),
            format!("{at}.mismatchLabelKeys[1]"),
        ),
        (
            spread(constraint(web(), &["not a key"])),
            "spec.topologySpreadConstraints[0].matchLabelKeys[0]".to_owned(),
        ),
    ] {
        let words = format!("{field}: Invalid value: \"not a key\": name part must consist of");
        t.create("pods", &given)
            .await
            .fails(422, "Invalid")
            .because("FieldValueInvalid", &field)
            .mentions(&words);
    }
}

async fn key_of_the_selector_that_the_pod_lacks_is_accepted(t: &Scope) {
    let selector = doc!({ "matchLabels": { "missing": "x" } });
    let given = near(term(selector.clone(), &["missing"], &[]));
    let made = t.made("pods", &given).await;
    assert_eq!(near_at(&made).at("/labelSelector"), &selector);
}

async fn duplicate_in_a_template_is_found_with_its_pods(t: &Scope) {
    // One expression alone may come from the keys.
    let selector = doc!({ "matchExpressions": [{ "key": "hash", "operator": "Exists" }] });
    let path = format!("/spec/template/spec/affinity/podAffinity/{REQUIRED}");
    let given = replica_set("a").set("/spec/replicas", 0);
    let accepted = given.set(&path, doc!([(term(selector, &["hash"], &[]))]));
    t.made("replicasets", &accepted).await;
    let twice = doc!({
        "matchLabels": { "hash": "1" },
        "matchExpressions": [{ "key": "hash", "operator": "Exists" }],
    });
    let refused = given.set("/metadata/name", "b");
    let refused = refused.set(&path, doc!([(term(twice, &["hash"], &[]))]));
    let field = format!("spec.template.{}[0]", near_path());
    t.create("replicasets", &refused)
        .await
        .fails(422, "Invalid")
        .because("FieldValueInvalid", &field);
}

async fn term_without_a_topology_key_is_refused(t: &Scope) {
    let at = near_path();
    let given = near(doc!({ "labelSelector": (web()), "topologyKey": "" }));
    t.create("pods", &given)
        .await
        .fails(422, "Invalid")
        .mentions(&format!(
            "{at}.topologyKey: Required value: can not be empty"
        ))
        .because("FieldValueInvalid", &format!("{at}.topologyKey"));
    let given = spread(constraint(web(), &[]).set("/topologyKey", ""));
    let words = "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty";
    refused(t, &given, words).await;
}

async fn term_of_an_impossible_selector_is_refused(t: &Scope) {
    let selector = doc!({ "matchExpressions": [
        { "key": "a", "operator": "In" },
        { "key": "b", "operator": "Exists", "values": ["x"] },
        { "key": "c", "operator": "Near" },
        { "key": "d", "operator": "In", "values": ["not a value"] },
        { "key": "not a key", "operator": "Exists" },
    ] });
    let causes = |at: &str| {
        let at = format!("{at}.labelSelector.matchExpressions");
        [
            ("FieldValueRequired", format!("{at}[0].values")),
            ("FieldValueForbidden", format!("{at}[1].values")),
            ("FieldValueInvalid", format!("{at}[2].operator")),
            ("FieldValueInvalid", format!("{at}[3].values[0]")),
            ("FieldValueInvalid", format!("{at}[4].key")),
        ]
    };
    for (given, at) in [
        (near(term(selector.clone(), &[], &[])), near_path()),
        (
            spread(constraint(selector, &[])),
            "spec.topologySpreadConstraints[0]".to_owned(),
        ),
    ] {
        let mut refusal = t.create("pods", &given).await.fails(422, "Invalid");
        for (reason, field) in causes(&at) {
            refusal = refusal.because(reason, &field);
        }
        assert_eq!(refusal.causes().len(), 5);
    }
    let labels = doc!({ "matchLabels": { "app": "not a value" } });
    let term = term(web(), &[], &[]).set("/namespaceSelector", labels);
    t.create("pods", &near(term))
        .await
        .fails(422, "Invalid")
        .because(
            "FieldValueInvalid",
            &format!("{}.namespaceSelector.matchLabels", near_path()),
        );
}

async fn weight_out_of_range_is_refused(t: &Scope) {
    for weight in [0, 101] {
        let wish = doc!({ "weight": weight, "podAffinityTerm": (term(web(), &[], &[])) });
        let given = labeled().set(
            &format!("/spec/affinity/podAntiAffinity/{PREFERRED}"),
            doc!([wish]),
        );
        let words = format!(
            "spec.affinity.podAntiAffinity.{PREFERRED}[0].weight: Invalid value: {weight}: must \
             be in the range 1-100"
        );
        refused(t, &given, &words).await;
    }
}

async fn namespace_of_a_term_is_checked(t: &Scope) {
    let given = near(term(web(), &[], &[]).set("/namespaces", doc!(["fine", "Not"])));
    t.create("pods", &given)
        .await
        .fails(422, "Invalid")
        .because("FieldValueInvalid", &format!("{}.namespace", near_path()));
}

async fn impossible_spread_constraints_are_refused(t: &Scope) {
    let fine = || constraint(web(), &[]);
    let at = "spec.topologySpreadConstraints[0]";
    for (given, words) in [
        (
            fine().set("/maxSkew", 0),
            ".maxSkew: Invalid value: 0: must be greater than zero",
        ),
        (
            fine().set("/whenUnsatisfiable", "Wait"),
            ".whenUnsatisfiable: Unsupported value: \"Wait\": supported values: \
             \"DoNotSchedule\", \"ScheduleAnyway\"",
        ),
        (
            fine().set("/minDomains", 0),
            ".minDomains: Invalid value: 0: must be greater than zero",
        ),
        (
            fine()
                .set("/minDomains", 2)
                .set("/whenUnsatisfiable", "ScheduleAnyway"),
            ".minDomains: Invalid value: 2: can only use minDomains if \
             whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway",
        ),
        (
            fine().set("/nodeAffinityPolicy", "Never"),
            ".nodeAffinityPolicy: Unsupported value: \"Never\": supported values: \"Honor\", \
             \"Ignore\"",
        ),
        (
            fine().set("/nodeTaintsPolicy", ""),
            ".nodeTaintsPolicy: Unsupported value: \"\": supported values: \"Honor\", \"Ignore\"",
        ),
    ] {
        refused(t, &spread(given), &format!("{at}{words}")).await;
    }
}

async fn repeated_spread_constraint_is_refused(t: &Scope) {
    let constraints = doc!([
        (constraint(web(), &[])),
        (constraint(web(), &[]).set("/whenUnsatisfiable", "ScheduleAnyway")),
        (constraint(web(), &["hash"])),
    ]);
    let given = labeled().set("/spec/topologySpreadConstraints", constraints);
    let words = format!(
        "spec.topologySpreadConstraints[0].{{topologyKey, whenUnsatisfiable}}: Duplicate value: \
         \"{{{TOPOLOGY}, DoNotSchedule}}\""
    );
    refused(t, &given, &words).await;
}

async fn templates_are_checked_like_pods(t: &Scope) {
    let bare = term(web(), &["hash"], &[]).cut("/labelSelector");
    let path = format!("/spec/template/spec/affinity/podAntiAffinity/{REQUIRED}");
    let given = deployment("a")
        .set("/spec/replicas", 0)
        .set(&path, doc!([bare]));
    let field = format!("spec.template.spec.affinity.podAntiAffinity.{REQUIRED}[0].matchLabelKeys");
    t.create("deployments", &given)
        .await
        .fails(422, "Invalid")
        .because("FieldValueForbidden", &field);
}
