//! The writes of a reconcile are known by its client, in whichever task and whenever they end.

use super::*;

/// Makes one pod in a task of its own if the cache has none, and does not wait for it.
async fn create_detached(seen: Seen, key: Key, cx: Context) -> Result<Action> {
    seen.note(key.to_string());
    if cx.lister::<Pod>()?.is_empty() {
        let api = cx.api(&ResourceKind::of::<Pod>(), "default");
        tokio::spawn(async move {
            let pod = doc!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": { "generateName": "web-" },
                "spec": {}
            });
            api.create(&pod, &WriteOptions::default()).await
        });
    }
    Ok(Action::done())
}

/// Changes the ConfigMap once a second, so that its key is queued.
async fn touch_for(stage: &Stage, map: &Doc, seconds: u64) {
    for second in 0..seconds {
        let labels = doc!({ "second": second.to_string() });
        let touched = map.with("/metadata/labels", labels).unwrap();
        stage.server.update(&format!("{MAPS}/web"), &touched);
        sleep(Duration::from_secs(1)).await;
    }
}

/// Does something to the first write of pods.
fn at_first_write(stage: &Stage, fault: Fault) {
    let mut is_first = true;
    stage.faults.set(move |call| {
        let is_meant = is_first && call.is_write() && call.path.starts_with(PODS);
        is_first &= !is_meant;
        match is_meant {
            true => fault.clone(),
            false => Fault::None,
        }
    });
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_the_write_of_a_task_that_its_reconcile_spawned() {
    let ten = Duration::from_secs(10);
    for fault in [
        Fault::None,
        Fault::DelayAnswer(ten),
        Fault::LostAnswer,
        Fault::StallAfter,
    ] {
        let (stage, seen) = (Stage::new(), Seen::default());
        stage.server.create(MAPS, &config_map("web"));
        stage.server.lag("pods", Duration::from_secs(50));
        at_first_write(&stage, fault.clone());
        let noted = seen.clone();
        let reconcile = move |key, cx| create_detached(noted.clone(), key, cx);
        let _running = stage.run(Controller::of_keys::<ConfigMap>(reconcile).owns::<Pod>());
        settle().await;
        assert_eq!(seen.take(), ["default/web"], "{fault:?}");

        touch_for(&stage, &config_map("web"), 45).await;
        assert_eq!(
            seen.take(),
            [""; 0],
            "{fault:?}: the cache shows no pod yet"
        );
        sleep(Duration::from_secs(120)).await;
        assert_eq!(seen.take(), ["default/web"], "{fault:?}: and now it does");
        assert_eq!(stage.server.objects("pods").len(), 1, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_write_for_an_object_that_is_gone_leaves_nothing_behind() {
    let (stage, seen) = (Stage::new(), Seen::default());
    stage.server.create(MAPS, &config_map("web"));
    at_first_write(&stage, Fault::DelayAnswer(Duration::from_secs(10)));
    let manager = stage.manager();
    let reconcile = move |key, cx| create_detached(seen.clone(), key, cx);
    manager.add(Controller::of_keys::<ConfigMap>(reconcile).reads::<Pod>());
    let inspect = manager.handle();
    let _running = tokio::spawn(manager.run());
    settle().await;
    stage.server.delete(&format!("{MAPS}/web"));
    sleep(Duration::from_secs(60)).await;
    let text = inspect.metrics_text();
    let remembered = text.lines().filter(|line| {
        ["doubts", "freshness", "unsettled"]
            .iter()
            .any(|cache| line.contains(&format!("\"{cache}\"")))
    });
    let remembered: Vec<&str> = remembered.collect();
    assert_eq!(remembered.len(), 3, "{text}");
    assert!(
        remembered.iter().all(|line| line.ends_with(" 0")),
        "{remembered:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_key_in_doubt_is_not_reconciled_while_the_server_is_asked() {
    let stage = Stage::new();
    let map = config_map("web").with("/data/pods", "3").unwrap();
    stage.server.create(MAPS, &map);
    stage.server.lag("pods", Duration::from_secs(60));
    let (mut creates, mut has_started) = (0, false);
    stage.faults.set(move |call| {
        let is_of_pods = call.path == PODS;
        creates += usize::from(call.is_write() && is_of_pods);
        let is_question = has_started && is_of_pods && !call.is_write();
        has_started |= creates > 0;
        match () {
            () if is_question => Fault::Delay(Duration::from_secs(10)),
            () if call.is_write() && is_of_pods && creates == 1 => Fault::LostAnswer,
            () => Fault::None,
        }
    });
    let _running = stage.run(Controller::of_keys::<ConfigMap>(replicate).owns::<Pod>());
    settle().await;
    touch_for(&stage, &map, 40).await;
    assert_eq!(stage.server.objects("pods").len(), 1);
    sleep(Duration::from_secs(300)).await;
    assert_eq!(stage.server.objects("pods").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_whose_answer_is_lost_is_not_made_up_for_by_another() {
    let stage = Stage::new();
    stage.server.create(MAPS, &config_map("web"));
    for name in ["a", "b", "c", "d"] {
        stage.server.create(PODS, &pod(name));
    }
    stage.server.lag("pods", Duration::from_secs(30));
    at_first_write(&stage, Fault::LostAnswer);
    let turn = Arc::new(AtomicUsize::new(0));
    let reconcile = move |_: Key, cx: Context| {
        // Which pod goes changes with time, as when another one is no longer ready.
        let turn = turn.fetch_add(1, SeqCst);
        async move {
            let pods = cx
                .lister::<Pod>()?
                .list(&windlass_core::Selector::everything());
            let api = cx.api(&ResourceKind::of::<Pod>(), "default");
            if pods.len() > 3 {
                let victim = &pods[turn % pods.len()];
                let options = windlass_client::DeleteOptions::default();
                api.delete(victim.name(), &options).await?;
            }
            Ok(Action::done())
        }
    };
    let _running = stage.run(Controller::of_keys::<ConfigMap>(reconcile).reads::<Pod>());
    settle().await;
    touch_for(&stage, &config_map("web"), 20).await;
    assert_eq!(stage.server.objects("pods").len(), 3);
    sleep(Duration::from_secs(600)).await;
    assert_eq!(stage.server.objects("pods").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn another_client_of_the_manager_writes_for_the_reconcile_it_is_scoped_to() {
    let stage = Stage::new();
    stage.server.create(MAPS, &config_map("web"));
    stage.server.lag("pods", Duration::from_secs(30));
    let manager = stage.manager();
    let client = manager.client().with_rate_limit(None);
    let reconcile = move |_: Key, cx: Context| {
        let client = cx.scoped(&client);
        async move {
            if cx.lister::<Pod>()?.is_empty() {
                // A path that was written out counts as one that the client made.
                let pod = doc!({ "metadata": { "generateName": "web-" }, "spec": {} });
                client.post(PODS).doc(&pod).into_doc().await?;
            }
            Ok(Action::done())
        }
    };
    manager.add(Controller::of_keys::<ConfigMap>(reconcile).reads::<Pod>());
    let _running = tokio::spawn(manager.run());
    settle().await;
    touch_for(&stage, &config_map("web"), 20).await;
    assert_eq!(stage.server.objects("pods").len(), 1);
}
