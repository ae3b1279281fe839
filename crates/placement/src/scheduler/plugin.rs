//! The seam for what the scheduler itself knows nothing about.
//!
//! A [`Plugin`] sees a pod three times. [`Plugin::pre_enqueue`] decides whether there is any sense
//! in trying. [`Plugin::pre_filter`] starts a [`PodCycle`] for one attempt, or says that this pod
//! does not concern the plug-in. [`Plugin::wakes`] decides, while the pod waits because of the
//! plug-in, whether something that has happened could help.
//!
//! A [`PodCycle`] is asked about nodes ([`PodCycle::filter`], [`PodCycle::score`]), takes what it
//! needs in memory ([`PodCycle::reserve`]), writes it ([`PodCycle::pre_bind`]), and gives it back
//! when anything after that fails ([`PodCycle::unreserve`]).
//!
//! Everything but `pre_bind`, `unreserve` and `post_filter` runs inside the scheduling cycle, one
//! pod after the other, and must not wait.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use windlass_core::{Doc, Key};

/// A future of a plug-in.
pub type PluginFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why a pod, or a pod on a node, is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The pod waits for an event. Removing other pods could help.
    Unschedulable(String),
    /// The pod waits for an event. Removing other pods would not help.
    Unresolvable(String),
    /// Something went wrong. The attempt is over, and the pod is tried again after a back-off.
    Error(String),
}

impl Refusal {
    /// The reason, for people.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Unschedulable(reason) | Self::Unresolvable(reason) | Self::Error(reason) => {
                reason
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

/// Whether a pod may go on.
pub type Verdict = Result<(), Refusal>;

/// A node as plug-ins see it.
#[derive(Clone, Debug)]
pub struct NodeView {
    /// The Node object.
    pub node: Doc,
}

impl NodeView {
    /// The name of the node.
    #[must_use]
    pub fn name(&self) -> &str {
        self.node.meta().name()
    }
}

/// Something that has happened and could make a waiting pod schedulable.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClusterEvent {
    /// A node has come.
    NodeAdded(Doc),
    /// A node has changed its spec, its labels or what it can allocate.
    NodeChanged {
        /// The node before.
        old: Doc,
        /// The node now.
        new: Doc,
    },
    /// A node is gone.
    NodeDeleted(Doc),
    /// A pod was assigned to a node.
    PodAssigned(Doc),
    /// A pod on a node has changed.
    AssignedPodChanged {
        /// The pod before.
        old: Doc,
        /// The pod now.
        new: Doc,
    },
    /// A pod on a node is gone or has ended, or was never bound after all.
    AssignedPodDeleted(Doc),
    /// The waiting pod itself has changed. Only the plug-ins of that pod are asked.
    PodChanged {
        /// The pod before.
        old: Doc,
        /// The pod now.
        new: Doc,
    },
    /// An object that only a plug-in knows was added (no `old`), changed, or deleted (no `new`).
    Other {
        /// The resource, such as `resourceclaims`.
        resource: &'static str,
        /// The object before.
        old: Option<Doc>,
        /// The object now.
        new: Option<Doc>,
    },
}

/// Which waiting pods an event could help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// None of them.
    Nobody,
    /// Those that [depend](Plugin::depends_on) on this object.
    Dependents(Key),
    /// Those that were tried and refused. Of those that [`Plugin::pre_enqueue`] has refused, only
    /// the ones that depend on this object.
    Tried(Option<Key>),
    /// Any of them.
    Anybody,
}

/// Wakes pods that wait. Plug-ins call it from the handlers of their informers.
#[derive(Clone)]
pub struct Waker {
    wake: Arc<dyn Fn(ClusterEvent) + Send + Sync>,
}

impl Waker {
    /// A waker that passes events on to a function.
    pub fn new(wake: impl Fn(ClusterEvent) + Send + Sync + 'static) -> Self {
        Self {
            wake: Arc::new(wake),
        }
    }

    /// Asks the plug-ins of every waiting pod whether this could help, and queues the pods for
    /// which one says so. Never waits. An event that comes while a pod is being tried is kept for
    /// it.
    ///
    /// [`Plugin::pre_enqueue`] and [`Plugin::wakes`] are called from here: a plug-in must not hold a
    /// lock that these take.
    pub fn wake(&self, event: ClusterEvent) {
        (self.wake)(event);
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waker(..)")
    }
}

/// A part of the scheduler that knows what the scheduler does not.
pub trait Plugin: Send + Sync + 'static {
    /// The name, as it stands in messages: `DynamicResources`.
    fn name(&self) -> &'static str;

    /// Called once, before anything else, with the way to wake waiting pods.
    fn attach(&self, waker: Waker) {
        let _ = waker;
    }

    /// Waits until this plug-in knows everything that was there when it started: until the handlers
    /// of its informers have handled it. No pod is tried before.
    fn wait_for_sync(&self) -> PluginFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Whether there is any sense in trying this pod. A pod that is refused here waits without an
    /// attempt, an event or a condition, until [`wakes`](Self::wakes) says so. Must be cheap: it
    /// also runs when a pod changes.
    ///
    /// # Errors
    /// With the reason to wait.
    fn pre_enqueue(&self, pod: &Doc) -> Verdict {
        let _ = pod;
        Ok(())
    }

    /// Begins an attempt to place a pod; `None` if the pod does not concern this plug-in.
    ///
    /// # Errors
    /// When no node at all will do, with the reason.
    fn pre_filter(&self, pod: &Doc) -> Result<Option<Box<dyn PodCycle>>, Refusal>;

    /// Whether this event could help a pod that waits because of this plug-in.
    fn wakes(&self, pod: &Doc, event: &ClusterEvent) -> bool;

    /// Which of the pods that wait because of this plug-in an event could help. The cheap question
    /// before [`wakes`](Self::wakes), which is then asked for each of them.
    fn reach(&self, event: &ClusterEvent) -> Reach {
        let _ = event;
        Reach::Anybody
    }

    /// The objects that a pod depends on. Asked when the pod begins to wait because of this plug-in,
    /// and when it changes meanwhile.
    fn depends_on(&self, pod: &Doc) -> Vec<Key> {
        let _ = pod;
        Vec::new()
    }

    /// How much the scores of this plug-in count.
    fn weight(&self) -> i64 {
        1
    }

    /// What this plug-in adds to the message of a pod that no node takes and that does not concern
    /// it; empty for nothing.
    fn idle_message(&self) -> &'static str {
        ""
    }
}

/// One attempt to place one pod, as one plug-in sees it. It is dropped when the attempt is over:
/// after a failed filter, after an unreserve, or after the pod was bound.
pub trait PodCycle: Send {
    /// Whether the pod fits on a node. An [`Refusal::Error`] ends the attempt on all nodes.
    ///
    /// In a large cluster not every node is asked, and the better ones are asked first.
    ///
    /// # Errors
    /// With the reason why not.
    fn filter(&mut self, node: &NodeView) -> Verdict;

    /// Whether [`score`](Self::score) tells nodes apart for this pod. If not, nodes are asked only
    /// until one fits.
    fn has_scores(&self) -> bool {
        false
    }

    /// How well the pod fits on a node that passed; more is better. The largest of all nodes
    /// becomes 100.
    fn score(&mut self, node: &NodeView) -> i64 {
        let _ = node;
        0
    }

    /// Called when no node fits, also if [`filter`](Self::filter) was not reached. May write. What
    /// it returns is added to the message; empty for nothing.
    fn post_filter(&mut self) -> PluginFuture<'_, String> {
        Box::pin(async { String::new() })
    }

    /// Takes what the pod needs on the chosen node, in memory only.
    ///
    /// # Errors
    /// When it cannot be taken. What this plug-in has taken until then it has given back.
    fn reserve(&mut self, node: &NodeView) -> Verdict;

    /// Writes what was reserved. The pod is bound when all plug-ins have done so.
    ///
    /// # Errors
    /// With a text for people; [`unreserve`](Self::unreserve) follows, and a back-off.
    fn pre_bind(&mut self) -> PluginFuture<'_, Result<(), String>>;

    /// Gives back what was reserved, as far as it was written. Follows every failure after
    /// [`reserve`](Self::reserve), also those of other plug-ins and of the binding. The pod is
    /// tried again only after it.
    fn unreserve(&mut self) -> PluginFuture<'_, ()>;
}
