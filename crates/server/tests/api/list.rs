//! Get and list: pages, selectors, revisions, forms.

use windlass_core::doc;

use crate::support::{Api, CONFIG_MAPS, PODS, config_map, labelled, pod};

async fn with_five() -> Api {
    let api = Api::new().await;
    for (name, value) in [("a", "1"), ("b", "2"), ("c", "1"), ("d", "2"), ("e", "3")] {
        api.post(CONFIG_MAPS, &labelled(name, "n", value))
            .await
            .expect(201);
    }
    api
}

#[tokio::test]
async fn a_list_has_the_revision_of_its_state_and_items_without_types() {
    let api = with_five().await;
    let list = api.get(CONFIG_MAPS).await.expect(200);
    assert_eq!(list.str_at("/kind"), "ConfigMapList");
    assert_eq!(list.str_at("/apiVersion"), "v1");
    assert_eq!(list.names(), ["a", "b", "c", "d", "e"]);
    assert!(list.body.at("/items/0").get("kind").is_none());
    assert!(list.body.at("/items/0").get("apiVersion").is_none());
    let newest = api.get(&format!("{CONFIG_MAPS}/e")).await.revision();
    assert_eq!(list.revision(), newest);
}

#[tokio::test]
async fn an_empty_list_has_items() {
    let api = Api::new().await;
    let list = api.get(CONFIG_MAPS).await.expect(200);
    assert_eq!(*list.body.at("/items"), doc!([]));
}

#[tokio::test]
async fn pages_of_one_list_show_one_state() {
    let api = with_five().await;
    let first = api.get(&format!("{CONFIG_MAPS}?limit=2")).await.expect(200);
    assert_eq!(first.names(), ["a", "b"]);
    assert_eq!(*first.body.at("/metadata/remainingItemCount"), 3);
    api.delete(&format!("{CONFIG_MAPS}/c")).await.expect(200);
    api.post(CONFIG_MAPS, &config_map("bb")).await.expect(201);
    let token = first.str_at("/metadata/continue").to_owned();
    let second = api
        .get(&format!("{CONFIG_MAPS}?limit=2&continue={token}"))
        .await
        .expect(200);
    assert_eq!(second.names(), ["c", "d"]);
    assert_eq!(second.revision(), first.revision());
    let token = second.str_at("/metadata/continue").to_owned();
    let third = api
        .get(&format!("{CONFIG_MAPS}?limit=2&continue={token}"))
        .await
        .expect(200);
    assert_eq!(third.names(), ["e"]);
    assert_eq!(third.str_at("/metadata/continue"), "");
}

#[tokio::test]
async fn a_list_that_took_too_long_can_go_on_at_the_present_state() {
    let api = Api::forgetful(2).await;
    for name in ["a", "b", "c", "d"] {
        api.post(CONFIG_MAPS, &config_map(name)).await.expect(201);
    }
    let old = api.get(CONFIG_MAPS).await.revision() - 3;
    let token = {
        use base64::Engine as _;
        let text = format!(r#"{{"v":"meta.k8s.io/v1","rv":{old},"start":"default/b"}}"#);
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
    };
    let answer = api
        .get(&format!("{CONFIG_MAPS}?limit=2&continue={token}"))
        .await;
    let next = answer.str_at("/metadata/continue").to_owned();
    answer.refused(410, "Expired");
    let rest = api
        .get(&format!("{CONFIG_MAPS}?limit=9&continue={next}"))
        .await
        .expect(200);
    assert_eq!(rest.names(), ["b", "c", "d"]);
}

#[tokio::test]
async fn forged_tokens_are_refused() {
    let api = with_five().await;
    let encoded = [
        "abc".to_owned(),
        "!!!".to_owned(),
        "x".repeat(5000),
        // {"v":"meta.k8s.io/v1","rv":5,"start":"../secrets"}
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiIuLi9zZWNyZXRzIn0".to_owned(),
        // {"v":"meta.k8s.io/v1","rv":0,"start":"a"}
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJhIn0".to_owned(),
    ];
    for token in encoded {
        let message = api
            .get(&format!("{CONFIG_MAPS}?continue={token}"))
            .await
            .refused(400, "BadRequest");
        assert!(
            message.starts_with("continue key is not valid"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn labels_select() {
    let api = with_five().await;
    let check = |selector: &'static str, expected: &'static [&'static str]| {
        let api = api.clone();
        async move {
            let list = api
                .get(&format!("{CONFIG_MAPS}?labelSelector={selector}"))
                .await;
            assert_eq!(list.expect(200).names(), expected, "{selector}");
        }
    };
    check("n=1", &["a", "c"]).await;
    check("n!=1", &["b", "d", "e"]).await;
    check("n%20in%20(1,3)", &["a", "c", "e"]).await;
    check("n%20notin%20(1,3)", &["b", "d"]).await;
    check("n", &["a", "b", "c", "d", "e"]).await;
    check("!n", &[]).await;
    check("x!=y,n=3", &["e"]).await;
    let message = api
        .get(&format!("{CONFIG_MAPS}?labelSelector=a%20b"))
        .await
        .refused(400, "BadRequest");
    assert!(
        message.starts_with("unable to parse requirement: "),
        "{message}"
    );
}

#[tokio::test]
async fn fields_select() {
    let api = with_five().await;
    let list = api
        .get(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name=b"))
        .await
        .expect(200);
    assert_eq!(list.names(), ["b"]);
    let list = api
        .get("/api/v1/configmaps?fieldSelector=metadata.namespace=default")
        .await;
    assert_eq!(list.expect(200).names().len(), 5);
    let list = api
        .get("/api/v1/configmaps?fieldSelector=metadata.namespace=other")
        .await;
    assert!(list.expect(200).names().is_empty());
    let message = api
        .get(&format!("{CONFIG_MAPS}?fieldSelector=x=y"))
        .await
        .refused(400, "BadRequest");
    assert_eq!(
        message,
        "\"x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    );
    api.post(PODS, &pod("p")).await.expect(201);
    for (selector, count) in [
        ("status.phase=Pending", 1),
        ("spec.nodeName!=", 0),
        ("spec.hostNetwork=false", 1),
    ] {
        let list = api
            .get(&format!("{PODS}?fieldSelector={selector}"))
            .await
            .expect(200);
        assert_eq!(list.names().len(), count, "{selector}");
    }
    let message = api
        .get(&format!("{PODS}?fieldSelector=x=y"))
        .await
        .refused(400, "BadRequest");
    assert_eq!(message, "field label not supported: x");
}

#[tokio::test]
async fn a_limit_counts_matches() {
    let api = with_five().await;
    let list = api
        .get(&format!("{CONFIG_MAPS}?labelSelector=n=2&limit=1"))
        .await
        .expect(200);
    assert_eq!(list.names(), ["b"]);
    assert!(list.body.at("/metadata/remainingItemCount").is_null());
    assert!(!list.str_at("/metadata/continue").is_empty());
}

#[tokio::test]
async fn past_states_can_be_listed() {
    let api = with_five().await;
    let then = api.get(CONFIG_MAPS).await.revision();
    api.delete(&format!("{CONFIG_MAPS}/a")).await.expect(200);
    let exact = format!("{CONFIG_MAPS}?resourceVersion={then}&resourceVersionMatch=Exact");
    let list = api.get(&exact).await.expect(200);
    assert_eq!(list.names(), ["a", "b", "c", "d", "e"]);
    assert_eq!(list.revision(), then);
    let legacy = api
        .get(&format!("{CONFIG_MAPS}?resourceVersion={then}&limit=9"))
        .await
        .expect(200);
    assert_eq!(legacy.names().len(), 5);
    let newer = api
        .get(&format!("{CONFIG_MAPS}?resourceVersion={then}"))
        .await
        .expect(200);
    assert_eq!(newer.names(), ["b", "c", "d", "e"]);
    let any = api
        .get(&format!("{CONFIG_MAPS}?resourceVersion=0&limit=1"))
        .await
        .expect(200);
    assert_eq!(any.names().len(), 4, "the limit is ignored");
}

#[tokio::test(start_paused = true)]
async fn a_revision_of_the_future_is_waited_for_and_then_refused() {
    let api = with_five().await;
    let answer = api
        .get(&format!("{CONFIG_MAPS}?resourceVersion=99999"))
        .await;
    assert_eq!(
        answer.str_at("/details/causes/0/reason"),
        "ResourceVersionTooLarge"
    );
    assert_eq!(answer.headers.get("retry-after").unwrap(), "1");
    let message = answer.refused(504, "Timeout");
    assert!(message.starts_with("Timeout: Too large resource version: 99999, current: "));

    let next = api.get(CONFIG_MAPS).await.revision() + 1;
    let waiting = tokio::spawn({
        let api = api.clone();
        async move {
            api.get(&format!("{CONFIG_MAPS}?resourceVersion={next}"))
                .await
        }
    });
    tokio::task::yield_now().await;
    api.post(CONFIG_MAPS, &config_map("f")).await.expect(201);
    assert_eq!(waiting.await.unwrap().expect(200).names().len(), 6);
}

#[tokio::test]
async fn list_options_must_make_sense() {
    let api = with_five().await;
    for query in [
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=Exact&resourceVersion=0",
        "resourceVersionMatch=Around&resourceVersion=1",
        "resourceVersionMatch=Exact&continue=abc",
        "sendInitialEvents=true",
    ] {
        api.get(&format!("{CONFIG_MAPS}?{query}"))
            .await
            .refused(422, "Invalid");
    }
    for query in [
        "resourceVersion=abc",
        "resourceVersion=-1",
        "limit=abc",
        "timeout=abc",
    ] {
        api.get(&format!("{CONFIG_MAPS}?{query}"))
            .await
            .refused(400, "BadRequest");
    }
}

#[tokio::test]
async fn all_namespaces_are_listed_in_order() {
    let api = Api::new().await;
    api.post(
        "/api/v1/namespaces",
        &doc!({ "metadata": { "name": "aa" } }),
    )
    .await
    .expect(201);
    api.post(CONFIG_MAPS, &config_map("x")).await.expect(201);
    api.post("/api/v1/namespaces/aa/configmaps", &config_map("y"))
        .await
        .expect(201);
    let list = api.get("/api/v1/configmaps").await.expect(200);
    assert_eq!(list.names(), ["y", "x"]);
}

#[tokio::test]
async fn metadata_alone_is_sent_to_who_asks_for_it() {
    let api = with_five().await;
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let one = api
        .get_as(&format!("{CONFIG_MAPS}/a"), accept)
        .await
        .expect(200);
    assert_eq!(one.str_at("/kind"), "PartialObjectMetadata");
    assert_eq!(one.str_at("/metadata/name"), "a");
    assert!(one.body.at("/data").is_null());
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = api.get_as(CONFIG_MAPS, accept).await.expect(200);
    assert_eq!(list.str_at("/kind"), "PartialObjectMetadataList");
    assert_eq!(list.names().len(), 5);
}

#[tokio::test]
async fn tables_have_columns_and_cells() {
    let api = Api::new().await;
    api.post(PODS, &pod("p")).await.expect(201);
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let table = api.get_as(PODS, accept).await.expect(200);
    assert_eq!(table.str_at("/kind"), "Table");
    let columns: Vec<&str> = table
        .body
        .at("/columnDefinitions")
        .items()
        .iter()
        .map(|column| column.str_at("/name"))
        .collect();
    assert_eq!(columns[..5], ["Name", "Ready", "Status", "Restarts", "Age"]);
    let cells = table.body.at("/rows/0/cells");
    assert_eq!(
        cells.items()[..5],
        [
            doc!("p"),
            doc!("0/1"),
            doc!("Pending"),
            doc!("0"),
            doc!("0s")
        ]
    );
    assert_eq!(table.str_at("/rows/0/object/kind"), "PartialObjectMetadata");
    api.get_as(&format!("{PODS}?includeObject=x"), accept)
        .await
        .refused(400, "BadRequest");
}

#[tokio::test]
async fn unacceptable_forms_are_refused() {
    let api = Api::new().await;
    api.get_as(PODS, "text/html")
        .await
        .refused(406, "NotAcceptable");
    let accept = "application/json;as=Table;v=v9;g=meta.k8s.io";
    api.get_as(PODS, accept).await.refused(406, "NotAcceptable");
    let yaml = api
        .get_as("/api/v1/namespaces/default", "application/yaml")
        .await
        .expect(200);
    assert!(yaml.text.contains("kind: Namespace"), "{}", yaml.text);
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let api = Api::new().await;
    let answer = api.get(&format!("{PODS}/none")).await;
    assert_eq!(
        *answer.body.at("/details"),
        doc!({ "name": "none", "kind": "pods" })
    );
    assert_eq!(answer.refused(404, "NotFound"), "pods \"none\" not found");
    let answer = api
        .get("/apis/apps/v1/namespaces/default/deployments/none")
        .await;
    assert_eq!(
        answer.refused(404, "NotFound"),
        "deployments.apps \"none\" not found"
    );
    api.get("/api/v1/foos").await.refused(404, "NotFound");
    api.get(&format!("{PODS}/none/nothing"))
        .await
        .refused(404, "NotFound");
    let page = api.get("/nowhere").await.expect(404);
    assert_eq!(page.text, "404 page not found\n");
}

#[tokio::test]
async fn a_revision_may_have_leading_zeros_and_no_more_than_64_bits() {
    let api = with_five().await;
    for padded in ["00", "000"] {
        let target = format!("{CONFIG_MAPS}?resourceVersion={padded}&limit=1");
        assert_eq!(api.get(&target).await.expect(200).names().len(), 5);
    }
    let revision = api.get(CONFIG_MAPS).await.revision();
    let padded = format!("{CONFIG_MAPS}?resourceVersion=00{revision}&resourceVersionMatch=Exact");
    assert_eq!(api.get(&padded).await.expect(200).revision(), revision);
    for (text, why) in [
        ("18446744073709551616", "value out of range"),
        ("1x", "invalid syntax"),
        ("0x1", "invalid syntax"),
        ("-1", "invalid syntax"),
    ] {
        let answer = api
            .get(&format!("{CONFIG_MAPS}?resourceVersion={text}"))
            .await;
        let message = answer.str_at("/message");
        assert!(message.ends_with(why), "{text}: {message}");
    }
}
