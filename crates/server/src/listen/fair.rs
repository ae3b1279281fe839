//! A fair scheduler of connections: each user gets the same share of the threads that serve them.
//!
//! The runtime polls ready tasks first in, first out. A client with a hundred busy connections would
//! stand in that line a hundred times, before everybody else. Here a connection that becomes ready
//! waits in the queue of its user instead, and the runtime gets no more tasks than it has threads.
//!
//! Start-time fair queuing, as in [`super::super::flow`]: a flow has a virtual time at which its
//! next task starts, the flow whose time is least is served next, and the time that a poll took is
//! added to it. A flow that was idle starts at the present virtual time. Members of
//! `system:masters` do not wait.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::connections::Peer;

/// The least time that a poll is charged with, so that an order exists where clocks stand still.
const POLL_NANOS_MIN: u64 = 1_000;
/// Idle flows that are remembered for what they used. More are forgotten.
const IDLE_FLOWS_LIMIT: usize = 1024;

/// The owner of connections that share one queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum FlowKey {
    /// The client of connections that have shown no credentials.
    Address(IpAddr),
    /// The user of authenticated connections.
    User(Arc<str>),
    /// A member of `system:masters`.
    Exempt,
}

/// The scheduler of all connections of a listener.
#[derive(Debug)]
pub(super) struct FairScheduler {
    state: Mutex<SchedulerState>,
    /// Tasks that the runtime has at a time: one for each of its threads.
    slots: usize,
}

#[derive(Debug, Default)]
struct SchedulerState {
    /// Tasks that were handed to the runtime and have not been polled to their end.
    running: usize,
    /// The virtual time, in nanoseconds.
    now: u64,
    flows: HashMap<FlowKey, Flow>,
    /// Flows with waiting tasks, by their start and then by age.
    waiting: BTreeMap<(u64, u64), FlowKey>,
    next_id: u64,
}

/// The tasks of one owner that wait for their turn.
#[derive(Debug, Default)]
struct Flow {
    /// The virtual time at which the next task starts.
    start: u64,
    /// The position among the flows that wait.
    position: Option<(u64, u64)>,
    tasks: VecDeque<Arc<FairTaskWaker>>,
}

/// A task of a connection: the connection itself, or a stream of HTTP/2.
pub(super) struct FairTask {
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
    shared: Arc<FairTaskWaker>,
    /// `shared` as the future sees it.
    waker: Waker,
}

/// The part of a task that wakes it.
#[derive(Debug)]
struct FairTaskWaker {
    scheduler: Arc<FairScheduler>,
    peer: Arc<Peer>,
    /// Taken after the scheduler's lock.
    turn: Mutex<TaskTurn>,
}

#[derive(Debug)]
struct TaskTurn {
    status: TaskStatus,
    /// Tells the runtime to poll the task, once it has been polled.
    runtime: Option<Waker>,
}

/// The states of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TaskStatus {
    /// Waits for an event.
    Idle,
    /// Is ready, in the queue of its flow.
    Waiting,
    /// Was handed to the runtime on the account of a flow.
    Granted(FlowKey),
    /// Is being polled on the account of a flow.
    Running { flow: FlowKey, is_woken: bool },
    /// Has ended.
    Over,
}

impl FairScheduler {
    /// A scheduler for the runtime that this is called in.
    pub(super) fn new() -> Arc<Self> {
        Self::with_slots(tokio::runtime::Handle::current().metrics().num_workers())
    }

    fn with_slots(slots: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            slots: slots.max(1),
        })
    }

    /// Starts a task on behalf of a connection.
    pub(super) fn spawn(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        future: impl Future<Output = ()> + Send + 'static,
    ) {
        tokio::spawn(self.task(peer, future));
    }

    fn task(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> FairTask {
        let shared = Arc::new(FairTaskWaker {
            scheduler: Arc::clone(self),
            peer: Arc::clone(peer),
            turn: Mutex::new(TaskTurn {
                status: TaskStatus::Idle,
                runtime: None,
            }),
        });
        FairTask {
            future: Box::pin(future),
            waker: Waker::from(Arc::clone(&shared)),
            shared,
        }
    }

    /// Puts a ready task into its queue. Returns the one that the runtime shall poll.
    fn enqueue(&self, task: &Arc<FairTaskWaker>) -> Option<Waker> {
        let mut state = self.state.lock();
        let mut turn = task.turn.lock();
        match &mut turn.status {
            TaskStatus::Running { is_woken, .. } => {
                *is_woken = true;
                return None;
            }
            TaskStatus::Idle => {}
            TaskStatus::Waiting | TaskStatus::Granted(_) | TaskStatus::Over => return None,
        }
        let flow = task.peer.flow_key();
        if flow == FlowKey::Exempt {
            turn.status = TaskStatus::Granted(flow);
            return turn.runtime.clone();
        }
        turn.status = TaskStatus::Waiting;
        drop(turn);
        state.push(flow, Arc::clone(task));
        state.grant(self.slots)
    }

    /// Begins to poll a task; false if it is not its turn.
    fn begin(&self, task: &FairTaskWaker) -> bool {
        let mut turn = task.turn.lock();
        let TaskStatus::Granted(flow) = &turn.status else {
            return false;
        };
        turn.status = TaskStatus::Running {
            flow: flow.clone(),
            is_woken: false,
        };
        true
    }

    /// Ends a poll, or a turn that was not used.
    fn end(&self, task: &FairTaskWaker, took: Duration, is_over: bool) -> TurnEnd {
        let mut state = self.state.lock();
        let mut turn = task.turn.lock();
        let after = match is_over {
            true => TaskStatus::Over,
            false => TaskStatus::Idle,
        };
        let (flow, is_woken) = match std::mem::replace(&mut turn.status, after) {
            TaskStatus::Running { flow, is_woken } => (flow, is_woken),
            TaskStatus::Granted(flow) => (flow, false),
            TaskStatus::Idle | TaskStatus::Waiting | TaskStatus::Over => {
                return TurnEnd::default();
            }
        };
        drop(turn);
        if flow == FlowKey::Exempt {
            return TurnEnd {
                next: None,
                is_woken,
            };
        }
        state.running -= 1;
        state.charge(&flow, took);
        TurnEnd {
            next: state.grant(self.slots),
            is_woken,
        }
    }
}

/// The consequences of the end of a turn.
#[derive(Default)]
struct TurnEnd {
    /// The task that the runtime shall poll next.
    next: Option<Waker>,
    /// True if the task was woken while it was polled.
    is_woken: bool,
}

impl SchedulerState {
    /// Puts a task to the end of the queue of its flow.
    fn push(&mut self, key: FlowKey, task: Arc<FairTaskWaker>) {
        let flow = self.flows.entry(key.clone()).or_default();
        flow.tasks.push_back(task);
        if flow.position.is_none() {
            flow.start = flow.start.max(self.now);
            self.wait(key);
        }
    }

    /// Puts a flow with ready tasks to its position by its start, behind others with the same.
    fn wait(&mut self, key: FlowKey) {
        let Some(flow) = self.flows.get_mut(&key) else {
            return;
        };
        if let Some(before) = flow.position.take() {
            self.waiting.remove(&before);
        }
        let position = (flow.start, self.next_id);
        self.next_id += 1;
        flow.position = Some(position);
        self.waiting.insert(position, key);
    }

    /// Hands a task to the runtime if it has a free thread.
    fn grant(&mut self, slots: usize) -> Option<Waker> {
        while self.running < slots {
            let ((start, _), key) = self.waiting.pop_first()?;
            self.now = self.now.max(start);
            let flow = self.flows.get_mut(&key)?;
            flow.position = None;
            let task = flow.tasks.pop_front();
            if !flow.tasks.is_empty() {
                self.wait(key.clone());
            }
            let Some(task) = task else { continue };
            let mut turn = task.turn.lock();
            // A task that ended while it waited is passed over.
            if turn.status == TaskStatus::Waiting {
                turn.status = TaskStatus::Granted(key);
                self.running += 1;
                return turn.runtime.clone();
            }
        }
        None
    }

    /// Adds the time of a poll to what a flow has used.
    fn charge(&mut self, key: &FlowKey, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let Some(flow) = self.flows.get_mut(key) else {
            return;
        };
        let used = nanos.max(POLL_NANOS_MIN);
        flow.start = flow.start.max(self.now).saturating_add(used);
        if flow.position.is_some() {
            self.wait(key.clone());
        } else if self.flows.len() > IDLE_FLOWS_LIMIT {
            self.flows.retain(|_, flow| flow.position.is_some());
        }
    }
}

impl Wake for FairTaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(next) = self.scheduler.enqueue(self) {
            next.wake();
        }
    }
}

impl Future for FairTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let is_first = self.shared.note_runtime(cx.waker());
        if is_first {
            self.shared.wake_by_ref();
        }
        if !self.shared.scheduler.begin(&self.shared) {
            return Poll::Pending;
        }
        let turn = Turn::new(&self.shared);
        let this = &mut *self;
        let polled = this
            .future
            .as_mut()
            .poll(&mut Context::from_waker(&this.waker));
        turn.end(polled.is_ready());
        polled
    }
}

impl FairTaskWaker {
    fn end_turn(self: &Arc<Self>, took: Duration, is_over: bool) {
        let end = self.scheduler.end(self, took, is_over);
        if let Some(next) = end.next {
            next.wake();
        }
        if end.is_woken && !is_over {
            self.wake_by_ref();
        }
    }

    /// Remembers how the runtime is told to poll the task; true if it was not known before.
    fn note_runtime(&self, runtime: &Waker) -> bool {
        let mut turn = self.turn.lock();
        match &mut turn.runtime {
            Some(known) => {
                known.clone_from(runtime);
                false
            }
            None => {
                turn.runtime = Some(runtime.clone());
                true
            }
        }
    }
}

impl Drop for FairTask {
    fn drop(&mut self) {
        self.shared.end_turn(Duration::ZERO, true);
    }
}

/// One poll. It ends when it is dropped, so also by a panic.
struct Turn {
    task: Arc<FairTaskWaker>,
    since: Instant,
    is_over: bool,
}

impl Turn {
    fn new(task: &Arc<FairTaskWaker>) -> Self {
        Self {
            task: Arc::clone(task),
            since: Instant::now(),
            is_over: false,
        }
    }

    fn end(mut self, is_over: bool) {
        self.is_over = is_over;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.task.end_turn(self.since.elapsed(), self.is_over);
    }
}

/// The executor of the streams of one HTTP/2 connection.
#[derive(Clone, Debug)]
pub(super) struct StreamExecutor {
    pub(super) scheduler: Arc<FairScheduler>,
    pub(super) peer: Arc<Peer>,
}

impl<F> hyper::rt::Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
{
    fn execute(&self, future: F) {
        self.scheduler.spawn(&self.peer, async move {
            future.await;
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::sync::Notify;

    use super::*;
    use crate::listen::connections::{Connections, Member};
    use crate::peer::Connection;
    use windlass_access::{MASTERS, User};

    fn member(all: &Arc<Connections>, user: &User) -> Member {
        let member = all.admit(Ipv4Addr::LOCALHOST.into());
        member.0.authenticated(user);
        member
    }

    /// Tasks that all become ready at the same time, and note who was polled.
    struct Crowd {
        scheduler: Arc<FairScheduler>,
        start: Arc<Notify>,
        polled: Arc<Mutex<Vec<&'static str>>>,
        members: Vec<Member>,
    }

    impl Crowd {
        fn new() -> Self {
            Self {
                scheduler: FairScheduler::with_slots(1),
                start: Arc::default(),
                polled: Arc::default(),
                members: Vec::new(),
            }
        }

        async fn add(&mut self, all: &Arc<Connections>, user: &User, name: &'static str) {
            let member = member(all, user);
            let (start, polled) = (Arc::clone(&self.start), Arc::clone(&self.polled));
            self.scheduler.spawn(&member.0, async move {
                start.notified().await;
                polled.lock().push(name);
            });
            self.members.push(member);
            tokio::task::yield_now().await;
        }

        async fn run(&self) -> Vec<&'static str> {
            self.start.notify_waiters();
            while self.polled.lock().len() < self.members.len() {
                tokio::task::yield_now().await;
            }
            self.polled.lock().clone()
        }
    }

    #[tokio::test]
    async fn many_connections_of_one_user_do_not_delay_another_user() {
        let (all, mut crowd) = (Connections::new(Arc::default()), Crowd::new());
        for _ in 0..50 {
            crowd.add(&all, &User::new("ann", &[]), "ann").await;
        }
        crowd.add(&all, &User::new("bob", &[]), "bob").await;
        let order = crowd.run().await;
        let at = order.iter().position(|name| *name == "bob");
        assert!(at.is_some_and(|at| at <= 2), "{order:?}");
    }

    #[tokio::test]
    async fn administrators_do_not_wait() {
        let (all, mut crowd) = (Connections::new(Arc::default()), Crowd::new());
        for _ in 0..50 {
            crowd.add(&all, &User::new("ann", &[]), "ann").await;
        }
        let admin = User::new("root", &[MASTERS]);
        crowd.add(&all, &admin, "root").await;
        let order = crowd.run().await;
        let at = order.iter().position(|name| *name == "root");
        assert!(at.is_some_and(|at| at <= 1), "{order:?}");
    }

    #[tokio::test]
    async fn a_task_that_panics_or_is_dropped_gives_its_turn_back() {
        let all = Connections::new(Arc::default());
        let member = member(&all, &User::new("ann", &[]));
        let scheduler = FairScheduler::with_slots(1);
        let panics = tokio::spawn(scheduler.task(&member.0, async { panic!("expected") }));
        assert!(panics.await.is_err());

        let mut context = Context::from_waker(Waker::noop());
        let waits = Arc::new(Notify::new());
        let mut first = {
            let waits = Arc::clone(&waits);
            scheduler.task(&member.0, async move { waits.notified().await })
        };
        assert!(Pin::new(&mut first).poll(&mut context).is_pending());
        waits.notify_one();
        assert_eq!(scheduler.state.lock().running, 1, "woken, and not polled");
        let mut second = scheduler.task(&member.0, async {});
        assert!(Pin::new(&mut second).poll(&mut context).is_pending());
        drop(first);
        assert!(Pin::new(&mut second).poll(&mut context).is_ready());
        assert_eq!(scheduler.state.lock().running, 0);
    }
}
