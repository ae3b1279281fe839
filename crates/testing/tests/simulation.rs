//! The simulation finds what it is there to find, and nothing else.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

use std::{future::pending, num::NonZeroUsize, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::{Instant, sleep};
use windlass_cache::Obj;
use windlass_client::{
    DeleteOptions, DynamicApi, DynamicClient, ListOptions, RestClient, RestOptions, Transport,
    WatchEvent, WatchOptions, WriteOptions,
};
use windlass_core::{Doc, Gvr, doc};
use windlass_runtime::{Action, Context, Controller, Result};
use windlass_testing::{
    Cluster, Explored, Failure, Fault, Faults, ModelServer, Position, Simulation, Stage,
    TokioClock, World,
};

const PODS: Gvr = Gvr::constant("", "v1", "pods");

fn pods(transport: Transport) -> DynamicApi {
    let options = RestOptions {
        rate_limit: None,
        ..RestOptions::default()
    };
    DynamicClient::new(RestClient::new(transport, options))
        .resource(PODS)
        .namespaced("default")
}

fn pod() -> Doc {
    doc!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "generateName": "web-" } })
}

/// How a process goes about keeping two pods.
#[derive(Clone, Copy)]
enum Habit {
    /// Looks at what is there.
    Careful,
    /// Creates what it does not remember to have created.
    Forgetful,
    /// Creates all at once, looks, and takes back what was too much.
    Hasty,
    /// As the careful one, but repeats a create whose answer was lost.
    Insistent,
}

async fn count(api: &DynamicApi) -> Option<usize> {
    let list = api.list(&ListOptions::default()).await.ok()?;
    Some(list.items.len())
}

async fn keep_two(transport: Transport, habit: Habit) {
    let api = pods(transport);
    let mut have = 0;
    loop {
        match habit {
            Habit::Careful | Habit::Insistent => {
                let Some(count) = count(&api).await else {
                    sleep(Duration::from_secs(1)).await;
                    continue;
                };
                have = count;
            }
            Habit::Forgetful => {}
            Habit::Hasty if have == 0 && count(&api).await == Some(0) => {
                for _ in 0..3 {
                    let _ = api.create(&pod(), &WriteOptions::default()).await;
                }
                have = 2;
            }
            Habit::Hasty => have = 2,
        }
        if have < 2 {
            while api.create(&pod(), &WriteOptions::default()).await.is_err() {
                if !matches!(habit, Habit::Insistent) {
                    break;
                }
            }
            have += 1;
            continue;
        }
        let listed = api.list(&ListOptions::default()).await;
        for extra in listed.iter().flat_map(|list| &list.items).skip(2) {
            let options = DeleteOptions::default();
            let _ = api.delete(extra.meta().name(), &options).await;
        }
        return pending().await;
    }
}

async fn scenario(stage: Stage, habit: Habit) -> Vec<Doc> {
    let server = ModelServer::new(stage.env().clone());
    stage.observe(&server.transport(), &[PODS]);
    stage.start("keeper", &server.transport(), move |transport| {
        keep_two(transport, habit)
    });
    let is_enough = async || server.objects("pods").len() >= 2;
    stage.until("there are two pods", is_enough).await;
    stage.pass(Duration::from_secs(60)).await;
    stage.rest(Duration::from_secs(600)).await;
    server.objects("pods")
}

fn explore(simulation: &Simulation, habit: Habit) -> Result<Explored, Failure> {
    simulation.crash_at_every_call(async |stage| scenario(stage, habit).await)
}

#[test]
fn process_that_looks_first_survives_a_crash_at_every_call() {
    let explored = explore(&Simulation::new("careful"), Habit::Careful).unwrap();
    assert_eq!(explored.runs, explored.calls * 3);
    assert_eq!(
        explored.calls, 6,
        "three times a look, two pods, and a last look"
    );
}

#[test]
fn sample_of_runs_is_even_and_no_larger_than_asked_for() {
    let simulation =
        |limit| Simulation::new("sample").runs_limit(NonZeroUsize::new(limit).unwrap());
    for (limit, runs) in [(18, 18), (17, 9), (9, 9), (6, 6)] {
        let explored = explore(&simulation(limit), Habit::Careful).unwrap();
        assert_eq!((explored.calls, explored.runs), (6, runs), "{limit}");
    }
}

#[test]
fn process_that_remembers_is_caught_creating_twice() {
    let simulation = Simulation::new("forgetful").seed(7);
    let failure = explore(&simulation, Habit::Forgetful)
        .unwrap_err()
        .to_string();
    assert!(
        failure.contains("simulation \"forgetful\", seed 7"),
        "{failure}"
    );
    assert!(
        failure.contains("crash at call 0, carried out and not answered"),
        "{failure}"
    );
    assert!(failure.contains("objects created and deleted"), "{failure}");
    assert!(
        failure.contains("0 keeper POST /api/v1/namespaces/default/pods"),
        "{failure}"
    );
}

#[test]
fn rule_for_changes_sees_what_is_put_right_later() {
    let at_most_two = |world: &World| match world.of("pods").count() {
        0..=2 => Ok(()),
        many => Err(format!("{many} pods")),
    };
    let simulation = Simulation::new("hasty").on_change(at_most_two);
    let failure = explore(&simulation, Habit::Hasty).unwrap_err().to_string();
    assert!(failure.contains("without faults"), "{failure}");
    assert!(failure.contains("pods default/web-"), "{failure}");
    assert!(failure.contains("3 pods"), "{failure}");
}

#[test]
fn rule_for_requests_sees_every_one() {
    let guarded = |seen: &windlass_testing::Seen| {
        let is_delete = seen.call.method == http::Method::DELETE;
        if is_delete && seen.payload.str_at("/preconditions/uid").is_empty() {
            return Err("a delete that does not say which object it means".to_owned());
        }
        Ok(())
    };
    let simulation = Simulation::new("unguarded").on_request(guarded);
    let failure = explore(&simulation, Habit::Hasty).unwrap_err().to_string();
    assert!(
        failure.contains("does not say which object it means"),
        "{failure}"
    );
}

#[test]
fn lost_answer_at_every_write_catches_the_one_who_repeats_blindly() {
    let simulation = Simulation::new("lost answers");
    let lose = |habit| {
        simulation.fault_at_every_call(
            windlass_testing::Call::is_write,
            &[Fault::LostAnswer],
            async |stage| scenario(stage, habit).await,
        )
    };
    assert_eq!(lose(Habit::Careful).unwrap().runs, 2);
    let failure = lose(Habit::Insistent).unwrap_err().to_string();
    // After the first one the two are complete all the same; after the second they are three.
    assert!(failure.contains("LostAnswer at call 3"), "{failure}");
}

#[test]
fn refusals_and_delays_are_survived_by_who_looks_again() {
    let faults = [
        Fault::Refuse(409, "Conflict"),
        Fault::Refuse(500, "InternalError"),
        Fault::Throttle(Duration::from_secs(1)),
        Fault::LostRequest,
        Fault::NotSent,
        Fault::Delay(Duration::from_secs(40)),
    ];
    let simulation = Simulation::new("refusals");
    let run = async |stage| scenario(stage, Habit::Careful).await;
    let explored = simulation.fault_at_every_call(|_| true, &faults, run);
    assert_eq!(explored.unwrap().runs, 6 * faults.len());
}

async fn copy(source: Obj<ConfigMap>, cx: Context) -> Result<Action> {
    let name = format!("copy-of-{}", source.name());
    let labels = source.doc().str_at("/metadata/labels/copy");
    let key = windlass_core::Key::new("default", &name);
    if labels != "please" || cx.lister::<ConfigMap>()?.get(&key).is_some() {
        return Ok(Action::done());
    }
    let copy = doc!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name.as_str(), "namespace": "default" },
        "data": source.doc().at("/data"),
    });
    let kind = cx.kind_of(&copy)?;
    let created = cx
        .api(kind, "default")
        .create(&copy, &cx.write_options())
        .await;
    created?;
    Ok(Action::done())
}

async fn copies(stage: Stage) -> Vec<Doc> {
    const MAPS: Gvr = Gvr::constant("", "v1", "configmaps");
    let cluster = Cluster::builder().env(stage.env().clone()).start().await;
    for name in ["a", "b"] {
        cluster
            .create_doc(&doc!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": name, "namespace": "default", "labels": { "copy": "please" } },
                "data": { "key": name },
            }))
            .await;
    }
    let builder = cluster.clone();
    stage.start("copier", &cluster.transport(), move |transport| {
        let manager = builder.manager_on("copier", transport).build().unwrap();
        manager.add(Controller::of::<ConfigMap>(copy));
        async move { manager.run().await.unwrap() }
    });
    let maps = async || cluster.list_docs(&MAPS, "default", "").await;
    let is_done = async || maps().await.len() == 4;
    stage.until("both are copied", is_done).await;
    stage.rest(Duration::from_secs(900)).await;
    maps().await
}

#[test]
fn manager_on_the_embedded_server_survives_a_crash_at_every_call() {
    let explored = Simulation::new("copies")
        .crash_at_every_call(copies)
        .unwrap();
    assert!(explored.calls >= 3, "a watch and two creates: {explored:?}");
}

#[tokio::test(start_paused = true)]
async fn watch_can_be_cut_and_made_to_lag() {
    let server = ModelServer::new(TokioClock::new().env(1));
    let faults = Faults::none();
    let api = pods(server.transport().layer(&faults));
    let path = "/api/v1/namespaces/default/pods";
    let options = WatchOptions::default();

    let mut events = api.watch(&options).await.unwrap();
    faults.lag_watches(Duration::from_secs(400));
    let start = Instant::now();
    server.create(path, &pod());
    assert!(matches!(
        events.next().await,
        Some(Ok(WatchEvent::Added(_)))
    ));
    assert_eq!(start.elapsed(), Duration::from_secs(400));

    server.create(path, &pod());
    faults.cut_watches();
    assert!(events.next().await.unwrap().is_err());
    assert!(events.next().await.is_none());

    faults.lag_watches(Duration::ZERO);
    faults.set(|call| {
        if call.is_watch {
            Fault::Cut(1)
        } else {
            Fault::None
        }
    });
    let mut events = api.watch(&options).await.unwrap();
    server.create(path, &pod());
    server.create(path, &pod());
    assert!(events.next().await.unwrap().is_ok());
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn process_that_crashed_is_never_heard_of_again() {
    let server = ModelServer::new(TokioClock::new().env(1));
    let all = Faults::new(|call| match call.number {
        1 => Fault::Crash(Position::Unanswered),
        _ => Fault::None,
    });
    let (first, second) = (all.process("first"), all.process("second"));
    let api = pods(server.transport().layer(&first));
    let events = api.watch(&WatchOptions::default()).await.unwrap();
    let writer = {
        let api = Arc::new(api);
        let later = Arc::clone(&api);
        tokio::spawn(async move {
            let _ = api.create(&pod(), &WriteOptions::default()).await;
        });
        tokio::spawn(async move {
            sleep(Duration::from_secs(5)).await;
            let _ = later.create(&pod(), &WriteOptions::default()).await;
        })
    };
    first.crashed().await;
    sleep(Duration::from_secs(60)).await;
    assert!(!writer.is_finished());
    assert_eq!(
        server.objects("pods").len(),
        1,
        "the call itself was carried out"
    );
    let mut events = events;
    let silence = tokio::time::timeout(Duration::from_secs(60), events.next()).await;
    assert!(silence.is_err(), "a watch of the dead brings nothing");

    let other = pods(server.transport().layer(&second));
    other
        .create(&pod(), &WriteOptions::default())
        .await
        .unwrap();
    assert_eq!(server.objects("pods").len(), 2);
    let processes: Vec<_> = all
        .seen()
        .iter()
        .map(|seen| seen.call.process.to_string())
        .collect();
    assert_eq!(processes, ["first", "first", "second"]);
}
