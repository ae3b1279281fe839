//! Many writers at once.

use tokio::task::JoinSet;
use windlass_contract::objects::config_map;
use windlass_contract::{Edit, Scope, cases, names, number};
use windlass_core::doc;

cases![
    one_of_many_creates_wins,
    one_of_many_updates_from_the_same_state_wins,
    updates_with_retries_lose_nothing,
    patches_of_different_keys_all_land,
    one_of_many_deletions_finds_the_object,
    watchers_agree_on_the_order,
    lists_never_go_back,
];

const WRITERS: usize = 10;

/// Runs a task for each writer and gives their results in no order.
async fn all<T: Send + 'static, F>(t: &Scope, task: impl Fn(Scope, usize) -> F) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for writer in 0..WRITERS {
        tasks.spawn(task(t.clone(), writer));
    }
    tasks.join_all().await
}

fn count(codes: &[u16], code: u16) -> usize {
    codes.iter().filter(|&&got| got == code).count()
}

async fn one_of_many_creates_wins(t: &Scope) {
    let codes = all(t, |t, _| async move {
        t.create("configmaps", &config_map("a")).await.code()
    });
    let codes = codes.await;
    assert_eq!(
        (count(&codes, 201), count(&codes, 409)),
        (1, WRITERS - 1),
        "{codes:?}"
    );
}

async fn one_of_many_updates_from_the_same_state_wins(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let codes = all(t, move |t, writer| {
        let changed = made.set("/data/key", writer.to_string());
        async move { t.update("configmaps/a", &changed).await.code() }
    });
    let codes = codes.await;
    assert_eq!(
        (count(&codes, 200), count(&codes, 409)),
        (1, WRITERS - 1),
        "{codes:?}"
    );
}

async fn updates_with_retries_lose_nothing(t: &Scope) {
    t.made("configmaps", &config_map("a").set("/data/count", "0"))
        .await;
    all(t, |t, _| async move {
        loop {
            let seen = t.get("configmaps/a").await.is(200);
            let next: usize = seen
                .str_at("/data/count")
                .parse()
                .map_or(0, |n: usize| n + 1);
            let changed = seen.set("/data/count", next.to_string());
            if t.update("configmaps/a", &changed).await.code() == 200 {
                break;
            }
        }
    })
    .await;
    let last = t.get("configmaps/a").await.is(200);
    assert_eq!(last.at("/data/count"), WRITERS.to_string().as_str());
}

async fn patches_of_different_keys_all_land(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    all(t, |t, writer| async move {
        let key = format!("/data/key-{writer}");
        let patch = doc!([{ "op": "add", "path": key, "value": "1" }]);
        // The real server gives up after a few attempts of its own.
        while t.edit("configmaps/a", &patch).await.code() == 409 {}
    })
    .await;
    let last = t.get("configmaps/a").await.is(200);
    assert_eq!(
        last.at("/data").as_object().map(|data| data.len()),
        Some(WRITERS + 1)
    );
}

async fn one_of_many_deletions_finds_the_object(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let codes = all(
        t,
        |t, _| async move { t.delete("configmaps/a").await.code() },
    )
    .await;
    assert_eq!(
        (count(&codes, 200), count(&codes, 404)),
        (1, WRITERS - 1),
        "{codes:?}"
    );
}

async fn watchers_agree_on_the_order(t: &Scope) {
    let list = t.get("configmaps").await.is(200);
    let from = format!("resourceVersion={}", windlass_contract::revision(&list));
    let mut first = t.watch("configmaps", &from).await;
    let mut second = t.watch("configmaps", &from).await;
    all(t, |t, writer| async move {
        let name = format!("a-{writer}");
        t.create("configmaps", &config_map(&name)).await.is(201);
        t.delete(&format!("configmaps/{name}")).await.is(200);
    })
    .await;
    let mut last = 0;
    for _ in 0..2 * WRITERS {
        let event = first.next().await;
        assert_eq!(event, second.next().await);
        let revision = number(&event.object);
        assert!(revision > last, "{revision} comes after {last}");
        last = revision;
    }
}

async fn lists_never_go_back(t: &Scope) {
    all(t, |t, writer| async move {
        let name = format!("a-{writer}");
        let made = t.create("configmaps", &config_map(&name)).await.is(201);
        let list = t.get("configmaps").await.is(200);
        assert!(number(&list) >= number(&made));
        assert!(names(&list).contains(&name.as_str()), "{name}");
    })
    .await;
}
