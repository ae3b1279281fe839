//! The matrix of authorization: one row is one request of one user and the answer that both
//! servers give. Rows are grouped into tables; each table runs on `embedded::` and on `real::`,
//! and reports every row that does not hold.

mod bindings;
mod escalation;
mod impersonation;
mod matrix;
mod names;
mod nodes;
mod pages;
mod reviews;
mod signing;
mod subjects;
mod subresources;
mod verbs;

use windlass_contract::{Scope, cases};

cases![
    verbs,
    names,
    subresources,
    pages,
    subjects,
    escalation,
    bindings,
    impersonation,
    signing,
    reviews,
    nodes,
];

async fn verbs(t: &Scope) {
    verbs::table().run(t).await;
}

async fn names(t: &Scope) {
    names::table().run(t).await;
}

async fn subresources(t: &Scope) {
    subresources::table().run(t).await;
}

async fn pages(t: &Scope) {
    pages::table().run(t).await;
}

async fn subjects(t: &Scope) {
    subjects::table().run(t).await;
}

async fn escalation(t: &Scope) {
    escalation::table().run(t).await;
}

async fn bindings(t: &Scope) {
    bindings::table().run(t).await;
}

async fn impersonation(t: &Scope) {
    impersonation::table().run(t).await;
}

async fn signing(t: &Scope) {
    signing::table().run(t).await;
}

async fn reviews(t: &Scope) {
    reviews::table().run(t).await;
}

async fn nodes(t: &Scope) {
    nodes::table().run(t).await;
}

#[test]
fn the_matrix_has_at_least_three_hundred_rows_with_names_of_their_own() {
    let tables = [
        verbs::table(),
        names::table(),
        subresources::table(),
        pages::table(),
        subjects::table(),
        escalation::table(),
        bindings::table(),
        impersonation::table(),
        signing::table(),
        reviews::table(),
        nodes::table(),
    ];
    for table in &tables {
        let names: std::collections::BTreeSet<&str> = table.names().collect();
        assert_eq!(names.len(), table.names().count(), "two rows have one name");
    }
    let count: usize = tables.iter().map(|table| table.names().count()).sum();
    assert!(count >= 300, "{count} rows");
}
