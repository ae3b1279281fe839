//! What the informers tell the scheduler.

use std::sync::Arc;

use tokio::time::Instant;
use windlass_cache::{AddError, Deleted, Handler, InformerFactory, Obj, Registration};
use windlass_core::Doc;

use super::{
    run::{NODES, PODS, Scheduler},
    state::uid_of,
};

impl Scheduler {
    /// Listens to pods and nodes from now on.
    pub(super) fn listen(self: &Arc<Self>, factory: &InformerFactory) -> Vec<Registration> {
        let added: [Result<Registration, AddError>; 2] = [
            factory
                .dynamic(NODES)
                .add_handler(NodeHandler(self.clone())),
            factory.dynamic(PODS).add_handler(PodHandler(self.clone())),
        ];
        let added = added.into_iter().filter_map(|added| {
            added
                .inspect_err(|failure| tracing::error!(%failure, "a handler could not be added"))
                .ok()
        });
        added.collect()
    }
}

struct PodHandler(Arc<Scheduler>);

impl PodHandler {
    fn seen(&self, pod: &Doc) {
        self.0.state.lock().pod_seen(pod, Instant::now());
        self.0.news.notify_one();
    }

    fn gone(&self, pod: &Doc) {
        if let Some(uid) = uid_of(pod) {
            self.0.state.lock().pod_gone(&uid, Instant::now());
            self.0.news.notify_one();
        }
    }
}

impl Handler<Doc> for PodHandler {
    async fn on_add(&self, pod: Obj, _is_initial: bool) {
        self.seen(pod.doc());
    }

    async fn on_update(&self, old: Obj, new: Obj) {
        if old.meta().uid_str() != new.meta().uid_str() {
            self.gone(old.doc());
        }
        self.seen(new.doc());
    }

    async fn on_delete(&self, deleted: Deleted) {
        self.gone(deleted.object().doc());
    }
}

struct NodeHandler(Arc<Scheduler>);

impl NodeHandler {
    fn seen(&self, old: Option<&Doc>, node: &Doc) {
        self.0.state.lock().node_seen(old, node, Instant::now());
        self.0.news.notify_one();
    }
}

impl Handler<Doc> for NodeHandler {
    async fn on_add(&self, node: Obj, _is_initial: bool) {
        self.seen(None, node.doc());
    }

    async fn on_update(&self, old: Obj, new: Obj) {
        self.seen(Some(old.doc()), new.doc());
    }

    async fn on_delete(&self, deleted: Deleted) {
        let mut state = self.0.state.lock();
        state.node_gone(deleted.object().doc(), Instant::now());
        drop(state);
        self.0.news.notify_one();
    }
}
