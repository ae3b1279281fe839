//! Work that takes its time: requests whose bodies are large or whose kinds have rules to evaluate
//! run on threads of their own, not on those that serve connections, and end when they are told to.
//!
//! Such work cannot be stopped from outside while it computes. It looks now and then at
//! [`is_cancelled`]: between its steps, inside the evaluation of rules, and last when the store
//! takes the write. After that look the write is made.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use windlass_rules::status::Status;

/// A request with a larger body is worked on apart. Smaller ones are done before another thread
/// would have woken up.
pub(crate) const APART_BODY_BYTES: usize = 32 << 10;
/// The same for YAML, whose aliases make much of a few bytes.
pub(crate) const APART_YAML_BYTES: usize = 512;
/// Requests that are worked on apart, or wait for that. Each holds its body.
const APART_LIMIT: usize = 128;
/// Those of one user.
const APART_USER_LIMIT: usize = 64;
/// Requests of one user that are worked on at the same time, for each thread. The others wait for
/// each other, not in the way of other users. More than one, because work waits for the disk too.
const USER_SHARE_PER_THREAD: usize = 2;
/// The niceness of the threads: the ones that serve connections have short work and go first.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;
/// When a request that was refused may come again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

tokio::task_local! {
    /// Set once the answer of this task is of no use any more.
    static CANCELLED: Arc<AtomicBool>;
}

/// Returns true if nobody waits for this work any more. Always false outside of a [`WorkPool`].
pub(crate) fn is_cancelled() -> bool {
    CANCELLED
        .try_with(|flag| flag.load(Ordering::Relaxed))
        .unwrap_or(false)
}

/// Ends work for which nobody waits any more.
pub(crate) fn check() -> Result<(), Status> {
    match is_cancelled() {
        true => Err(timed_out()),
        false => Ok(()),
    }
}

/// 504, upstream's answer to a request that took too long.
pub(crate) fn timed_out() -> Status {
    Status::timeout("request did not complete within the allotted timeout")
}

/// Waits for work that is done here, until its deadline.
pub(crate) async fn within<T>(
    deadline: Instant,
    work: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    tokio::time::timeout_at(deadline, work)
        .await
        .unwrap_or_else(|_| Err(timed_out()))
}

/// The threads for work that takes its time. Clones are handles of the same threads.
#[derive(Clone, Debug)]
pub(crate) struct WorkPool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Taken when the pool ends.
    runtime: Option<Runtime>,
    handle: Handle,
    /// The one thread for TLS handshakes. Taken when the pool ends.
    handshakes: Option<Runtime>,
    /// Limits running and waiting requests.
    requests: Arc<Semaphore>,
    /// By the names of users. Those who have no requests go when there are too many.
    users: Mutex<HashMap<String, UserShare>>,
    threads: usize,
    /// True once the server ends.
    is_closed: watch::Sender<bool>,
}

/// The part of the pool that one user may take.
#[derive(Clone, Debug)]
struct UserShare {
    /// Limits running and waiting requests.
    requests: Arc<Semaphore>,
    running: Arc<Semaphore>,
}

impl WorkPool {
    /// Starts the threads, one for each processor.
    pub(crate) fn start() -> std::io::Result<Self> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("windlass-work")
            .on_thread_start(lower_priority)
            .enable_time()
            .build()?;
        let handshakes = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("windlass-tls")
            .on_thread_start(lower_priority)
            .build()?;
        Ok(Self(Arc::new(Inner {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
            handshakes: Some(handshakes),
            requests: Arc::new(Semaphore::new(APART_LIMIT)),
            users: Mutex::default(),
            threads,
            is_closed: watch::Sender::new(false),
        })))
    }

    /// Runs a TLS handshake on the thread that all of them share. A burst of new connections then
    /// does not stand in line before the requests of those that are there.
    pub(crate) async fn handshake<T: Send + 'static>(
        &self,
        handshake: impl Future<Output = std::io::Result<T>> + Send + 'static,
    ) -> std::io::Result<T> {
        let Some(runtime) = &self.0.handshakes else {
            return Err(std::io::Error::other("the server is shutting down"));
        };
        let task = runtime.spawn(handshake);
        let _abort = AbortOnDrop(task.abort_handle());
        task.await.map_err(std::io::Error::other)?
    }

    fn share_of(&self, user: &str) -> UserShare {
        let mut users = self.0.users.lock();
        if let Some(share) = users.get(user) {
            return share.clone();
        }
        if users.len() >= APART_LIMIT {
            users.retain(|_, share| share.requests.available_permits() < APART_USER_LIMIT);
        }
        let share = UserShare {
            requests: Arc::new(Semaphore::new(APART_USER_LIMIT)),
            running: Arc::new(Semaphore::new(self.0.threads * USER_SHARE_PER_THREAD)),
        };
        users.insert(user.to_owned(), share.clone());
        share
    }

    /// Runs work of a user apart. At the deadline, or when the server ends, the answer is no longer waited
    /// for, and the work is told to end.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        user: &str,
        deadline: Instant,
        work: impl Future<Output = Result<T, Status>> + Send + 'static,
    ) -> Result<T, Status> {
        let share = self.share_of(user);
        let permit = Arc::clone(&self.0.requests).try_acquire_owned();
        let (Ok(permit), Ok(own_permit)) = (permit, share.requests.try_acquire_owned()) else {
            let message = "Too many requests, please try again later.";
            return Err(Status::too_many_requests(message, RETRY_AFTER));
        };
        let mut closed = self.0.is_closed.subscribe();
        let flag = Arc::new(AtomicBool::new(false));
        let work = async move {
            // Nobody closes it.
            let _running = share.running.acquire_owned().await;
            let answer = work.await;
            drop((permit, own_permit));
            answer
        };
        let task = self.0.handle.spawn(CANCELLED.scope(flag.clone(), work));
        let _cancel = CancelOnDrop(flag, task.abort_handle());
        tokio::select! {
            biased;
            answer = task => {
                answer.unwrap_or_else(|_| {
                    tracing::error!("a request handler panicked");
                    Err(Status::internal("the request handler failed"))
                })
            }
            _ = closed.wait_for(|is_closed| *is_closed) => {
                Err(Status::unavailable("the server is shutting down"))
            }
            () = tokio::time::sleep_until(deadline) => Err(timed_out()),
        }
    }

    /// Ends all work: whoever waits for it is answered at once.
    pub(crate) fn close(&self) {
        self.0.is_closed.send_replace(true);
    }
}

/// Lets other threads of the process go first where they compete for a processor.
fn lower_priority() {
    // Elsewhere this would be the priority of the whole process.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "a thread keeps its priority");
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for runtime in self
            .runtime
            .take()
            .into_iter()
            .chain(self.handshakes.take())
        {
            // A thread that computes ends when it looks at its flag, or with the process. Nobody
            // waits for it.
            runtime.shutdown_background();
        }
    }
}

/// Aborts a task that nobody waits for.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Cancels the work of a request that nobody waits for: it was answered, or its client is gone.
struct CancelOnDrop(Arc<AtomicBool>, AbortHandle);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::sync::mpsc;
    use std::task::{Context, Waker};

    use super::*;

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    /// Work that says when it begins, computes until it is told to end, and says that it did.
    struct Endless {
        begun: mpsc::Receiver<()>,
        ended: mpsc::Receiver<()>,
    }

    fn endless() -> (Endless, impl Future<Output = Result<(), Status>> + Send) {
        let (begin, begun) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let work = async move {
            begin.send(()).unwrap();
            while !is_cancelled() {
                std::hint::spin_loop();
            }
            end.send(()).unwrap();
            check()
        };
        (Endless { begun, ended }, work)
    }

    impl Endless {
        /// Hands the work to the pool and returns when it computes.
        fn begin(&self, run: Pin<&mut impl Future>) {
            let mut context = Context::from_waker(Waker::noop());
            assert!(run.poll(&mut context).is_pending());
            self.begun.recv().unwrap();
        }
    }

    /// Time is paused and passes when this thread has nothing to do: while the work computes.
    #[tokio::test(start_paused = true)]
    async fn a_deadline_ends_work_that_computes() {
        let pool = WorkPool::start().unwrap();
        let (endless, work) = endless();
        let mut run = pin!(pool.run("ann", later(), work));
        endless.begin(run.as_mut());
        assert_eq!(run.await.unwrap_err().code(), 504);
        endless.ended.recv().unwrap();
    }

    #[tokio::test]
    async fn the_end_of_the_server_ends_work_that_computes() {
        let pool = WorkPool::start().unwrap();
        let (endless, work) = endless();
        let mut run = pin!(pool.run("ann", later(), work));
        endless.begin(run.as_mut());
        pool.close();
        assert_eq!(run.await.unwrap_err().code(), 503);
        endless.ended.recv().unwrap();
    }

    #[tokio::test]
    async fn a_client_that_goes_ends_work_that_computes() {
        let pool = WorkPool::start().unwrap();
        let (endless, work) = endless();
        let mut run = Box::pin(pool.run("ann", later(), work));
        endless.begin(run.as_mut());
        drop(run);
        endless.ended.recv().unwrap();
    }

    /// The pool is dropped while a thread of it computes and never looks up.
    #[tokio::test]
    async fn a_busy_thread_does_not_keep_the_server() {
        let pool = WorkPool::start().unwrap();
        let (go, wait) = mpsc::channel::<()>();
        let (begun, is_begun) = tokio::sync::oneshot::channel();
        let work = async move {
            begun.send(()).unwrap();
            // Stands for a step that takes for ever.
            let _ = wait.recv();
            Ok(())
        };
        tokio::select! {
            biased;
            _ = pool.run("ann", later(), work) => panic!("the work is endless"),
            _ = is_begun => {}
        }
        pool.close();
        drop(pool);
        drop(go);
    }

    /// As much work of a user as is taken, none of which ends.
    fn fill<'a>(
        pool: &'a WorkPool,
        user: &'a str,
    ) -> Vec<Pin<Box<impl Future<Output = Result<(), Status>> + 'a>>> {
        let begin = |_| {
            let pending = std::future::pending::<Result<(), Status>>();
            let mut run = Box::pin(pool.run(user, later(), pending));
            let mut context = Context::from_waker(Waker::noop());
            assert!(run.as_mut().poll(&mut context).is_pending());
            run
        };
        (0..APART_USER_LIMIT).map(begin).collect()
    }

    #[tokio::test]
    async fn a_user_at_their_limit_does_not_keep_others_out() {
        let pool = WorkPool::start().unwrap();
        let waiting = fill(&pool, "ann");
        let refused = pool.run("ann", later(), async { Ok(()) }).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), 429);
        assert_eq!(refused.retry_after(), Some(RETRY_AFTER));
        assert!(pool.run("bob", later(), async { Ok(()) }).await.is_ok());
        let others = fill(&pool, "bob");
        let refused = pool.run("cid", later(), async { Ok(()) }).await;
        assert_eq!(refused.unwrap_err().code(), 429);
        drop((waiting, others));
    }

    #[tokio::test]
    async fn users_without_work_are_forgotten() {
        let pool = WorkPool::start().unwrap();
        for number in 0..APART_LIMIT * 2 {
            let user = format!("user-{number}");
            assert!(pool.run(&user, later(), async { Ok(()) }).await.is_ok());
        }
        assert!(pool.0.users.lock().len() <= APART_LIMIT);
    }

    #[tokio::test]
    async fn nothing_is_cancelled_outside_of_a_pool() {
        assert!(check().is_ok());
        let pool = WorkPool::start().unwrap();
        assert!(pool.run("ann", later(), async { check() }).await.is_ok());
    }
}
