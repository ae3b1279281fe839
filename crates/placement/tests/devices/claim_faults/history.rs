//! Everything that was written, in the order in which the server took it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use windlass_client::{DynamicApi, WatchEvent, WatchOptions};
use windlass_core::{Doc, Gvr, Key};
use windlass_testing::Cluster;

/// How long to wait before a watch that ended is opened again.
const PAUSE: Duration = Duration::from_millis(1);

/// One write: its revision, what was written, and whether that was its end.
#[derive(Clone)]
struct Write {
    revision: u64,
    resource: &'static str,
    object: Doc,
    is_gone: bool,
}

/// The writes to some resources. It stands beside the faults and misses none of them.
#[derive(Clone, Default)]
pub(crate) struct History(Arc<Mutex<Vec<Write>>>);

/// All objects between two writes.
#[derive(Default)]
pub(crate) struct Moment(BTreeMap<(&'static str, Key), Doc>);

impl Moment {
    pub(crate) fn of(&self, resource: &str) -> impl Iterator<Item = &Doc> {
        let all = self.0.iter();
        all.filter(move |((of, _), _)| *of == resource)
            .map(|(_, object)| object)
    }

    pub(crate) fn get(&self, resource: &'static str, key: Key) -> Option<&Doc> {
        self.0.get(&(resource, key))
    }

    pub(crate) fn by_uid(&self, resource: &str, uid: &str) -> Option<&Doc> {
        self.of(resource).find(|it| it.meta().uid_str() == uid)
    }
}

/// One write, as a rule sees it.
pub(crate) struct Change<'a> {
    pub(crate) resource: &'static str,
    pub(crate) old: Option<&'a Doc>,
    pub(crate) new: Option<&'a Doc>,
}

impl History {
    pub(crate) fn follow(&self, cluster: &Cluster, resource: &'static str, gvr: Gvr) {
        let (history, api) = (self.clone(), cluster.resource(gvr));
        tokio::spawn(async move {
            let mut version = "0".to_owned();
            loop {
                history.watch(&api, resource, &mut version).await;
                tokio::time::sleep(PAUSE).await;
            }
        });
    }

    async fn watch(&self, api: &DynamicApi, resource: &'static str, version: &mut String) {
        let options = WatchOptions {
            resource_version: version.clone(),
            ..WatchOptions::default()
        };
        let Ok(mut events) = api.watch(&options).await else {
            return;
        };
        while let Some(Ok(event)) = events.next().await {
            let (object, is_gone) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(_) => continue,
            };
            object.meta().resource_version().clone_into(version);
            self.0.lock().push(Write {
                revision: version.parse().unwrap(),
                resource,
                object,
                is_gone,
            });
        }
    }

    /// Plays all writes again, one after the other as the server took them. The rule sees each of
    /// them together with all objects as they are after it.
    pub(crate) fn replay(
        &self,
        rule: impl Fn(&Moment, &Change<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut writes = self.0.lock().clone();
        writes.sort_by_key(|write| write.revision);
        let mut moment = Moment::default();
        for write in writes {
            let place = (write.resource, write.object.meta().key());
            let old = match write.is_gone {
                true => moment.0.remove(&place),
                false => moment.0.insert(place, write.object.clone()),
            };
            let change = Change {
                resource: write.resource,
                old: old.as_ref(),
                new: (!write.is_gone).then_some(&write.object),
            };
            rule(&moment, &change).map_err(|broken| {
                let (key, revision) = (write.object.meta().key(), write.revision);
                format!("revision {revision}, {} {key}: {broken}", write.resource)
            })?;
        }
        Ok(())
    }
}
