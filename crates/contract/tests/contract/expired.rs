//! Requests for a past that the server no longer knows.

use windlass_contract::{Scope, cases, names};

cases![
    watch_from_a_forgotten_revision_ends_with_an_error,
    list_at_a_forgotten_revision_is_refused,
    list_not_older_than_a_forgotten_revision_is_fine,
    forgotten_token_is_refused_with_another,
    token_of_the_refusal_goes_on_at_the_present,
];

async fn watch_from_a_forgotten_revision_ends_with_an_error(t: &Scope) {
    let forgotten = t.forgotten().await;
    let query = format!("resourceVersion={}", forgotten.revision);
    let mut watch = forgotten.scope.watch("events", &query).await;
    let error = watch.error().await;
    assert_eq!(error.status().at("/code"), 410, "{}", error.status());
    assert_eq!(error.status().at("/reason"), "Expired");
    watch.end().await;
}

async fn list_at_a_forgotten_revision_is_refused(t: &Scope) {
    let forgotten = t.forgotten().await;
    let path = format!(
        "events?resourceVersion={}&resourceVersionMatch=Exact",
        forgotten.revision
    );
    let answer = forgotten.scope.get(&path).await;
    answer
        .fails(410, "Expired")
        .says("The resourceVersion for the provided list is too old.");
}

async fn list_not_older_than_a_forgotten_revision_is_fine(t: &Scope) {
    let forgotten = t.forgotten().await;
    let path = format!("events?resourceVersion={}", forgotten.revision);
    let list = forgotten.scope.get(&path).await.is(200);
    assert_eq!(names(&list), ["a", "c"]);
}

async fn forgotten_token_is_refused_with_another(t: &Scope) {
    let forgotten = t.forgotten().await;
    let path = format!("events?limit=1&continue={}", forgotten.token);
    let refusal = forgotten.scope.get(&path).await.fails(410, "Expired");
    let refusal = refusal.says(
        "The provided continue parameter is too old to display a consistent list result. You can \
         start a new list without the continue parameter, or use the continue token in this \
         response to retrieve the remainder of the results. Continuing with the provided token \
         results in an inconsistent list - objects that were created, modified, or deleted \
         between the time the first chunk was returned and now may show up in the list.",
    );
    assert!(!refusal.status().str_at("/metadata/continue").is_empty());
}

async fn token_of_the_refusal_goes_on_at_the_present(t: &Scope) {
    let forgotten = t.forgotten().await;
    let path = format!("events?limit=1&continue={}", forgotten.token);
    let refusal = forgotten.scope.get(&path).await.fails(410, "Expired");
    let token = refusal.status().str_at("/metadata/continue");
    let rest = forgotten
        .scope
        .get(&format!("events?continue={token}"))
        .await
        .is(200);
    assert_eq!(names(&rest), ["c"]);
    assert!(rest.at("/metadata/continue").is_null());
}
