//! The lives of pods with devices, with one thing going wrong each time.

use std::time::Duration;

use http::Method;
use windlass_core::Doc;
use windlass_testing::{Call, Explored, Failure, Fault, Position, Seen, Simulation, Stage};

use crate::claim_faults::world::{
    World, add_claims, add_nodes, add_scheduler, claim, held, pair, pod, short_pod, template,
};

/// Everything that can go wrong with one call and leaves the process alive.
const FAULTS: [Fault; 7] = [
    Fault::Refuse(409, "Conflict"),
    Fault::Refuse(500, "InternalError"),
    Fault::Throttle(Duration::from_secs(1)),
    Fault::LostRequest,
    Fault::LostAnswer,
    Fault::Delay(Duration::from_secs(40)),
    Fault::DelayAnswer(Duration::from_secs(40)),
];

/// What goes wrong with watches. The lag is longer than any back-off at the start.
const WATCH_FAULTS: [Fault; 3] = [
    Fault::Cut(0),
    Fault::Cut(1),
    Fault::Lag(Duration::from_secs(45)),
];

/// For how long a call is held up while a pod is deleted.
const HELD_UP: Duration = Duration::from_secs(3);

/// How late all caches are: long enough for another pod to be tried in between.
const LAG: Duration = Duration::from_secs(4);

/// Every deletion says which object it means.
fn deletions_name_their_object(seen: &Seen) -> Result<(), String> {
    let is_delete = seen.call.method == Method::DELETE;
    if is_delete && seen.payload.str_at("/preconditions/uid").is_empty() {
        return Err("a deletion does not say which object it means".to_owned());
    }
    Ok(())
}

/// Pods get any device that fits, in any order.
fn simulation(name: &str) -> Simulation {
    ["device", "podIP", "podIPs", "ip", "containerID"]
        .into_iter()
        .fold(
            Simulation::new(name).on_request(deletions_name_their_object),
            Simulation::ignore_field,
        )
}

/// Nothing waits for events, and nothing is lost without them.
fn is_work(call: &Call) -> bool {
    !call.is_watch && !call.path.contains("/events")
}

fn explored(outcome: Result<Explored, Failure>) {
    match outcome {
        Ok(explored) => assert!(explored.runs > 0, "{explored:?}"),
        Err(failure) => panic!("{failure}"),
    }
}

fn crash<S: AsyncFn(Stage) -> Vec<Doc>>(simulation: &Simulation, scenario: S) {
    let faults = Position::ALL.map(Fault::Crash);
    explored(simulation.fault_at_every_call(is_work, &faults, scenario));
}

fn fail<S: AsyncFn(Stage) -> Vec<Doc>>(simulation: &Simulation, scenario: S) {
    // A request that is refused or lost is repeated.
    let simulation = simulation.clone().ignore_counts();
    explored(simulation.fault_at_every_call(is_work, &FAULTS, scenario));
}

fn lag<S: AsyncFn(Stage) -> Vec<Doc>>(simulation: &Simulation, scenario: S) {
    let simulation = simulation.clone().ignore_counts();
    let is_watch = |call: &Call| call.is_watch;
    explored(simulation.fault_at_every_call(is_watch, &WATCH_FAULTS, scenario));
}

/// Two devices. The third pod waits until one that has them ends; the fourth takes what the first
/// leaves when it is deleted.
async fn life(stage: Stage, start: impl Fn(&World)) -> Vec<Doc> {
    let world = World::new(&stage).await.with_nodes(1, 2).await;
    life_in(world, start).await
}

async fn life_in(world: World, start: impl Fn(&World)) -> Vec<Doc> {
    world.create(&template()).await;
    start(&world);
    world.create(&pod("a", "@t")).await;
    world.create(&short_pod("b", "@t", "20s")).await;
    world
        .until("a and b are placed", async || {
            let pods = world.pods().await;
            pods.iter()
                .all(|pod| !pod.str_at("/spec/nodeName").is_empty())
        })
        .await;
    world.create(&pod("c", "@t")).await;
    world
        .until_phases(&["a Running", "b Succeeded", "c Running"])
        .await;
    world.delete_pod("a").await;
    world.create(&pod("d", "@t")).await;
    world
        .until_phases(&["b Succeeded", "c Running", "d Running"])
        .await;
    world.until_counts((2, 2)).await;
    world.end().await
}

fn one_of_each(world: &World) {
    world.start_claims("claims");
    world.start("scheduler", add_scheduler);
}

/// Two pods share a claim that somebody made for them, and a third one waits for its device.
async fn shared(stage: Stage) -> Vec<Doc> {
    let world = World::new(&stage).await.with_nodes(1, 1).await;
    world.create(&claim("shared")).await;
    world.create(&claim("other")).await;
    one_of_each(&world);
    world.create(&pod("a", "shared")).await;
    world.create(&pod("b", "shared")).await;
    world.until_phases(&["a Running", "b Running"]).await;
    world.create(&pod("c", "other")).await;
    world.delete_pod("a").await;
    world.until_phases(&["b Running", "c Pending"]).await;
    world.delete_claim("shared").await;
    world.delete_pod("b").await;
    world.until_phases(&["c Running"]).await;
    world.until_counts((1, 1)).await;
    world.end().await
}

/// A pod is deleted as soon as a call is held up; another one takes its device.
async fn deleted(stage: Stage) -> Vec<Doc> {
    let world = World::new(&stage).await.with_nodes(1, 1).await;
    world.create(&template()).await;
    one_of_each(&world);
    world.create(&pod("a", "@t")).await;
    let is_held_up = || {
        let seen = stage.faults().seen();
        seen.iter().any(|seen| seen.fault != Fault::None)
    };
    world
        .until("a runs, or a call is held up", async || {
            is_held_up() || world.phases().await == ["a Running"]
        })
        .await;
    world.delete_pod("a").await;
    world.create(&pod("b", "@t")).await;
    world.until_phases(&["b Running"]).await;
    world.until_counts((1, 1)).await;
    world.delete_pod("b").await;
    // What was held up has arrived by then.
    stage.pass(HELD_UP * 2).await;
    world.until_counts((0, 0)).await;
    world.end().await
}

/// A pod is being deleted when its template comes; another one gets a claim of it.
async fn ending(stage: Stage) -> Vec<Doc> {
    let world = World::new(&stage).await.with_nodes(1, 2).await;
    one_of_each(&world);
    world.create(&held(&pod("a", "@t"))).await;
    world.delete_pod("a").await;
    // Everybody has seen that by then, or is away.
    stage.pass(HELD_UP).await;
    world.create(&template()).await;
    world.create(&pod("b", "@t")).await;
    world.until_phases(&["a Pending", "b Running"]).await;
    world.until_counts((1, 1)).await;
    world.end_without_late_claims().await
}

/// Three devices, and pods that want two each: the second one waits for two, and keeps none.
async fn pairs(stage: Stage) -> Vec<Doc> {
    let world = World::new(&stage).await.with_nodes(1, 3).await;
    world.create(&template()).await;
    one_of_each(&world);
    world.create(&pair("a")).await;
    world.until_phases(&["a Running"]).await;
    world.create(&pair("b")).await;
    world.create(&pod("c", "@t")).await;
    world
        .until_phases(&["a Running", "b Pending", "c Running"])
        .await;
    world.delete_pod("a").await;
    world.until_phases(&["b Running", "c Running"]).await;
    world.until_counts((3, 3)).await;
    world.end().await
}

/// A node with its driver comes, and pods start and end on it.
async fn served(stage: Stage) -> Vec<Doc> {
    let world = World::new(&stage).await;
    world.create(&template()).await;
    world.cluster.run_with("claims", add_claims);
    world.cluster.run_with("scheduler", add_scheduler);
    world.start("node", |manager| add_nodes(manager, 1, 1));
    world.until_published(1).await;
    world.create(&pod("a", "@t")).await;
    world.until_phases(&["a Running"]).await;
    world.create(&pod("b", "@t")).await;
    world.delete_pod("a").await;
    world.until_phases(&["b Running"]).await;
    world
        .until("the device is reported", async || {
            let claims = world.claims().await;
            let mut claims = claims.iter();
            claims.len() == 1 && claims.all(|it| !it.at("/status/devices").items().is_empty())
        })
        .await;
    world.end().await
}

#[test]
fn pods_with_devices_survive_every_crash() {
    let scenario = async |stage| life(stage, one_of_each).await;
    crash(&simulation("crash"), scenario);
}

#[test]
fn pods_with_devices_survive_every_fault() {
    let scenario = async |stage| life(stage, one_of_each).await;
    fail(&simulation("fault"), scenario);
}

#[test]
fn pods_with_devices_survive_watches_that_lag_or_break() {
    let scenario = async |stage| life(stage, one_of_each).await;
    lag(&simulation("lag"), scenario);
}

/// What a server has done without saying so is not undone by a cache that does not show it yet.
#[test]
fn a_lost_answer_gives_no_device_twice_while_caches_lag() {
    let scenario = async |stage: Stage| {
        let world = World::new(&stage).await.with_nodes(1, 2).await;
        life_in(world.with_lag(LAG), one_of_each).await
    };
    let simulation = simulation("lost answers").ignore_counts();
    let faults = [Fault::LostAnswer, Fault::Crash(Position::Unanswered)];
    explored(simulation.fault_at_every_call(is_work, &faults, scenario));
}

#[test]
fn pods_that_share_a_claim_survive_every_crash() {
    crash(&simulation("shared"), shared);
}

#[test]
fn pods_that_share_a_claim_survive_every_fault() {
    let simulation = simulation("shared");
    fail(&simulation, shared);
    lag(&simulation, shared);
}

#[test]
fn a_pod_that_is_deleted_at_any_step_leaves_nothing_behind() {
    let held_up = [Fault::Delay(HELD_UP), Fault::DelayAnswer(HELD_UP)];
    let simulation = simulation("deleted").ignore_counts();
    explored(simulation.fault_at_every_call(is_work, &held_up, deleted));
}

#[test]
fn a_pod_that_is_being_deleted_gets_no_claim_whatever_goes_wrong() {
    let simulation = simulation("ending");
    crash(&simulation, ending);
    let faults = [
        Fault::Refuse(409, "Conflict"),
        Fault::Refuse(500, "InternalError"),
        Fault::LostAnswer,
    ];
    let simulation = simulation.ignore_counts();
    explored(simulation.fault_at_every_call(is_work, &faults, ending));
}

#[test]
fn pods_get_all_of_their_devices_or_none_at_every_crash() {
    crash(&simulation("pairs"), pairs);
}

/// What has nothing to do with devices does not change who gets which.
#[test]
fn the_same_order_gives_the_same_devices() {
    let simulation = ["podIP", "podIPs", "ip", "containerID"]
        .into_iter()
        .fold(Simulation::new("same"), Simulation::ignore_field);
    let is_event = |call: &Call| call.is_write() && call.path.contains("/events");
    let faults = [Fault::Refuse(500, "InternalError"), Fault::LostRequest];
    explored(simulation.fault_at_every_call(is_event, &faults, pairs));
}

/// Deleted pods that are forgotten cost a request each, and nothing else.
#[test]
fn a_controller_that_forgets_deleted_pods_does_the_same() {
    let scenario = async |stage| {
        let start = |world: &World| {
            world.start_claims_with("claims", 0);
            world.start("scheduler", add_scheduler);
        };
        life(stage, start).await
    };
    let crash = [Fault::Crash(Position::Unanswered)];
    explored(simulation("forgetful").fault_at_every_call(is_work, &crash, scenario));
}

#[test]
fn two_claim_controllers_at_once_do_what_one_does() {
    let simulation = simulation("two controllers").ignore_counts();
    let scenario = async |stage| {
        let start = |world: &World| {
            world.start_claims("claims-0");
            world.start_claims("claims-1");
            world.start("scheduler", add_scheduler);
        };
        life(stage, start).await
    };
    crash(&simulation, scenario);
}

#[test]
fn a_second_scheduler_takes_over_at_every_call() {
    let simulation = simulation("two schedulers").ignore_counts();
    let is_scheduler = |call: &Call| {
        let is_lease = call.path.contains("/leases");
        is_work(call) && !is_lease && call.process.starts_with("scheduler")
    };
    // One that stands still for longer than its lease wakes up when another leads.
    let faults = [
        Fault::Crash(Position::BeforeSend),
        Fault::Crash(Position::Unanswered),
        Fault::Delay(Duration::from_secs(20)),
        Fault::DelayAnswer(Duration::from_secs(20)),
    ];
    let scenario = async |stage| {
        let start = |world: &World| {
            world.start_claims("claims");
            world.start_elected_scheduler("scheduler-0");
            world.start_elected_scheduler("scheduler-1");
        };
        life(stage, start).await
    };
    explored(simulation.fault_at_every_call(is_scheduler, &faults, scenario));
}

#[test]
fn nodes_and_drivers_survive_every_crash_and_fault() {
    let simulation = simulation("nodes").ignore_counts();
    let is_node = |call: &Call| is_work(call) && !call.path.contains("/leases");
    let faults = Position::ALL.map(Fault::Crash).into_iter().chain(FAULTS);
    let faults: Vec<Fault> = faults.collect();
    explored(simulation.fault_at_every_call(is_node, &faults, served));
}
