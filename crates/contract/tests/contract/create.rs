//! Creating objects.

use windlass_contract::objects::{config_map, deployment, held, lease, node, pod, secret, service};
use windlass_contract::{Edit, Scope, cases, number, revision};
use windlass_core::{Doc, doc};

cases![
    created_object_is_returned_with_system_metadata,
    what_was_created_is_what_is_read,
    kind_and_api_version_may_be_left_out,
    namespace_may_be_left_out,
    namespace_that_differs_from_the_path_is_refused,
    taken_name_is_refused,
    taken_name_in_a_group_is_refused_with_the_group,
    name_of_an_object_on_its_way_out_is_taken,
    same_name_in_another_namespace_is_free,
    generated_name_has_five_characters_more,
    generated_name_is_cut_to_fit,
    name_wins_over_generate_name,
    missing_name_is_refused,
    invalid_name_is_refused,
    name_that_is_too_long_is_refused,
    resource_version_may_not_be_set,
    system_metadata_of_the_client_is_ignored,
    status_of_the_client_is_ignored,
    generation_starts_at_one_where_it_is_kept,
    generation_is_absent_where_it_is_not_kept,
    revisions_increase,
    missing_namespace_is_not_found,
    other_kind_in_the_body_is_refused,
    other_version_in_the_body_is_refused,
    broken_json_is_refused,
    empty_body_is_refused,
    body_that_is_no_object_is_refused,
    field_of_the_wrong_type_is_refused,
    create_needs_a_namespace_in_the_path,
    create_on_an_item_is_not_allowed,
    service_name_may_begin_with_a_digit,
    cluster_scoped_object_has_no_namespace,
];

async fn created_object_is_returned_with_system_metadata(t: &Scope) {
    let made = t.create("configmaps", &config_map("a")).await.is(201);
    assert_eq!(made.at("/kind"), "ConfigMap");
    assert_eq!(made.at("/apiVersion"), "v1");
    assert_eq!(made.at("/metadata/name"), "a");
    assert_eq!(made.at("/metadata/namespace"), t.namespace());
    assert_eq!(made.str_at("/metadata/uid").len(), 36);
    assert!(revision(&made).parse::<u64>().is_ok_and(|rv| rv > 0));
    let time = made.str_at("/metadata/creationTimestamp");
    assert!(time.len() == 20 && time.ends_with('Z'), "{time}");
    assert_eq!(made.at("/data/key"), "value");
}

async fn what_was_created_is_what_is_read(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    assert_eq!(t.get("configmaps/a").await.is(200), made);
}

async fn kind_and_api_version_may_be_left_out(t: &Scope) {
    let made = t
        .made("configmaps", &doc!({ "metadata": { "name": "a" } }))
        .await;
    assert_eq!(
        (made.str_at("/kind"), made.str_at("/apiVersion")),
        ("ConfigMap", "v1")
    );
}

async fn namespace_may_be_left_out(t: &Scope) {
    let explicit = config_map("a").set("/metadata/namespace", t.namespace());
    t.create("configmaps", &explicit).await.is(201);
    let implicit = t.create("configmaps", &config_map("b")).await.is(201);
    assert_eq!(implicit.at("/metadata/namespace"), t.namespace());
}

async fn namespace_that_differs_from_the_path_is_refused(t: &Scope) {
    let elsewhere = config_map("a").set("/metadata/namespace", "elsewhere");
    t.create("configmaps", &elsewhere)
        .await
        .fails(400, "BadRequest")
        .says(
            "the namespace of the provided object does not match the namespace sent on the request",
        );
}

async fn taken_name_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t.create("configmaps", &config_map("a")).await;
    answer
        .fails(409, "AlreadyExists")
        .says("configmaps \"a\" already exists")
        .is_about("", "configmaps", "a");
}

async fn taken_name_in_a_group_is_refused_with_the_group(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let answer = t.create("deployments", &deployment("a")).await;
    answer
        .fails(409, "AlreadyExists")
        .says("deployments.apps \"a\" already exists")
        .is_about("apps", "deployments", "a");
}

async fn name_of_an_object_on_its_way_out_is_taken(t: &Scope) {
    t.made("configmaps", &held(&config_map("a"), &["example.com/hold"]))
        .await;
    t.delete("configmaps/a").await.is(200);
    let answer = t.create("configmaps", &config_map("a")).await;
    let message = "object is being deleted: configmaps \"a\" already exists";
    answer.fails(409, "AlreadyExists").says(message);
}

async fn same_name_in_another_namespace_is_free(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    t.neighbour()
        .await
        .create("configmaps", &config_map("a"))
        .await
        .is(201);
}

async fn generated_name_has_five_characters_more(t: &Scope) {
    let object = doc!({ "metadata": { "generateName": "gen-" } });
    let first = t.made("configmaps", &object).await;
    let second = t.made("configmaps", &object).await;
    assert_eq!(first.at("/metadata/generateName"), "gen-");
    let name = first.str_at("/metadata/name");
    assert!(name.starts_with("gen-"), "{name}");
    let suffix = &name["gen-".len()..];
    assert_eq!(suffix.len(), 5);
    assert!(
        suffix
            .chars()
            .all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c)),
        "{suffix}"
    );
    assert_ne!(first.at("/metadata/name"), second.at("/metadata/name"));
}

async fn generated_name_is_cut_to_fit(t: &Scope) {
    let base = "a".repeat(70);
    let made = t
        .made(
            "configmaps",
            &doc!({ "metadata": { "generateName": (&base) } }),
        )
        .await;
    let name = made.str_at("/metadata/name");
    assert_eq!(name.len(), 63);
    assert!(name.starts_with(&base[..58]));
}

async fn name_wins_over_generate_name(t: &Scope) {
    let object = doc!({ "metadata": { "name": "a", "generateName": "gen-" } });
    let made = t.made("configmaps", &object).await;
    assert_eq!(made.at("/metadata/name"), "a");
}

async fn missing_name_is_refused(t: &Scope) {
    let answer = t.create("configmaps", &doc!({ "metadata": {} })).await;
    answer
        .fails(422, "Invalid")
        .says("ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required")
        .because("FieldValueRequired", "metadata.name");
}

async fn invalid_name_is_refused(t: &Scope) {
    for name in [
        "Upper",
        "under_score",
        "-dash",
        "dash-",
        "dot.",
        "sp ace",
        "a/b",
        "ü",
    ] {
        let refusal = t
            .create("configmaps", &config_map(name))
            .await
            .fails(422, "Invalid");
        refusal
            .is_about("", "ConfigMap", name)
            .because("FieldValueInvalid", "metadata.name");
    }
    let message = "ConfigMap \"Upper\" is invalid: metadata.name: Invalid value: \"Upper\": a \
                   lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                   characters, '-' or '.', and must start and end with an alphanumeric character \
                   (e.g. 'example.com', regex used for validation is \
                   '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    t.create("configmaps", &config_map("Upper"))
        .await
        .fails(422, "Invalid")
        .says(message);
}

async fn name_that_is_too_long_is_refused(t: &Scope) {
    t.create("configmaps", &config_map(&"a".repeat(253)))
        .await
        .is(201);
    let answer = t.create("configmaps", &config_map(&"a".repeat(254))).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "metadata.name")
        .mentions("must be no more than 253 characters");
}

async fn resource_version_may_not_be_set(t: &Scope) {
    let object = config_map("a").set("/metadata/resourceVersion", "1");
    let answer = t.create("configmaps", &object).await;
    answer
        .fails(500, "")
        .says("resourceVersion should not be set on objects to be created");
    // What is not valid is told first, and a dry run stores nothing that could refuse it.
    let invalid = object.set("/metadata/name", "A");
    t.create("configmaps", &invalid).await.fails(422, "Invalid");
    t.create("configmaps?dryRun=All", &object).await.is(201);
}

async fn system_metadata_of_the_client_is_ignored(t: &Scope) {
    let made = t
        .made(
            "configmaps",
            &doc!({ "metadata": {
                "name": "a", "uid": "mine", "selfLink": "/mine",
                "creationTimestamp": "2020-01-01T00:00:00Z",
                "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5
            } }),
        )
        .await;
    assert_ne!(made.at("/metadata/uid"), "mine");
    assert!(made.at("/metadata/selfLink").is_null());
    assert!(
        !made
            .str_at("/metadata/creationTimestamp")
            .starts_with("2020")
    );
    assert!(made.at("/metadata/deletionTimestamp").is_null());
    assert!(made.at("/metadata/deletionGracePeriodSeconds").is_null());
}

async fn status_of_the_client_is_ignored(t: &Scope) {
    let status = doc!({ "replicas": 5, "observedGeneration": 7 });
    let made = t
        .made("deployments", &deployment("a").set("/status", status))
        .await;
    assert_eq!(made.at("/status"), &doc!({}));
}

async fn generation_starts_at_one_where_it_is_kept(t: &Scope) {
    let generation = |object: &Doc| object.at("/metadata/generation").as_i64();
    let wrong = deployment("a").set("/metadata/generation", 9);
    assert_eq!(generation(&t.made("deployments", &wrong).await), Some(1));
    assert_eq!(generation(&t.made("pods", &pod("a")).await), Some(1));
}

async fn generation_is_absent_where_it_is_not_kept(t: &Scope) {
    for (resource, object) in [
        ("configmaps", config_map("a")),
        ("services", service("a")),
        ("leases", lease("a")),
    ] {
        let made = t.made(resource, &object).await;
        assert!(made.at("/metadata/generation").is_null(), "{resource}");
    }
}

async fn revisions_increase(t: &Scope) {
    let first = t.made("configmaps", &config_map("a")).await;
    let second = t.made("secrets", &secret("b")).await;
    let third = t.made("configmaps", &config_map("c")).await;
    assert!(number(&first) < number(&second) && number(&second) < number(&third));
}

async fn missing_namespace_is_not_found(t: &Scope) {
    let missing = t.in_namespace("no-such-namespace");
    let answer = missing.create("configmaps", &config_map("a")).await;
    answer
        .fails(404, "NotFound")
        .says("namespaces \"no-such-namespace\" not found")
        .is_about("", "namespaces", "no-such-namespace");
}

async fn other_kind_in_the_body_is_refused(t: &Scope) {
    let answer = t.create("configmaps", &pod("a")).await;
    let part = "Pod in version \"v1\" cannot be handled as a ConfigMap";
    answer.fails(400, "BadRequest").mentions(part);
}

async fn other_version_in_the_body_is_refused(t: &Scope) {
    let answer = t
        .create("configmaps", &config_map("a").set("/apiVersion", "v2"))
        .await;
    let part = "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \
                \"ConfigMap\" is registered for version \"v2\"";
    answer.fails(400, "BadRequest").mentions(part);
}

async fn broken_json_is_refused(t: &Scope) {
    for body in ["{", "{\"metadata\":", "x", "{\"metadata\":{\"name\":\"a\"}"] {
        let request = t
            .request(http::Method::POST, "configmaps")
            .body("application/json", body);
        t.send(request).await.fails(400, "BadRequest");
    }
}

async fn empty_body_is_refused(t: &Scope) {
    let request = t
        .request(http::Method::POST, "configmaps")
        .body("application/json", "");
    t.send(request).await.fails(400, "BadRequest");
}

async fn body_that_is_no_object_is_refused(t: &Scope) {
    for body in ["[]", "1", "\"a\"", "true"] {
        let request = t
            .request(http::Method::POST, "configmaps")
            .body("application/json", body);
        t.send(request).await.fails(400, "BadRequest");
    }
}

async fn field_of_the_wrong_type_is_refused(t: &Scope) {
    let object = doc!({ "metadata": { "name": "a" }, "data": { "key": 1 } });
    let answer = t.create("configmaps", &object).await;
    let part = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot \
                unmarshal number into Go struct field";
    answer.fails(400, "BadRequest").mentions(part);
}

async fn create_needs_a_namespace_in_the_path(t: &Scope) {
    let answer = t.create("/api/v1/configmaps", &config_map("a")).await;
    answer
        .fails(405, "MethodNotAllowed")
        .says("the server does not allow this method on the requested resource");
}

async fn create_on_an_item_is_not_allowed(t: &Scope) {
    let answer = t.create("configmaps/a", &config_map("a")).await;
    answer.fails(405, "MethodNotAllowed");
}

async fn service_name_may_begin_with_a_digit(t: &Scope) {
    t.create("services", &service("1a")).await.is(201);
    let refusal = t
        .create("services", &service("a.b"))
        .await
        .fails(422, "Invalid");
    refusal.because("FieldValueInvalid", "metadata.name");
}

async fn cluster_scoped_object_has_no_namespace(t: &Scope) {
    let node = node(&t.unique("n"));
    let made = t.made("nodes", &node).await;
    assert!(made.at("/metadata/namespace").is_null());
}
