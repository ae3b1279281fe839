//! All objects as they change.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::sleep;
use windlass_client::{
    DynamicApi, DynamicClient, Error, RestClient, RestOptions, Transport, WatchEvent, WatchOptions,
};
use windlass_core::{Doc, Gvr, Key};

use super::WorldRule;

/// How long to wait before a watch that ended is opened again.
const PAUSE: Duration = Duration::from_millis(1);

/// The objects of the resources that are observed, after one change.
#[derive(Clone, Debug, Default)]
pub struct World {
    objects: BTreeMap<(Gvr, Key), Doc>,
    /// What has changed last: the object, or its last state.
    changed: Doc,
}

impl World {
    /// The objects of a resource such as `pods`, in the order of their keys.
    pub fn of<'w>(&'w self, resource: &'w str) -> impl Iterator<Item = &'w Doc> {
        let all = self.objects.iter();
        all.filter(move |((of, _), _)| of.resource() == resource)
            .map(|(_, object)| object)
    }

    /// The object that has changed last, or its last state.
    #[must_use]
    pub fn changed(&self) -> &Doc {
        &self.changed
    }
}

/// What the observers of one run share.
struct Observed {
    world: Mutex<World>,
    noted: Noted,
}

/// What becomes of the changes.
pub(super) struct Noted {
    /// What must hold after each of them.
    pub(super) rules: Vec<WorldRule>,
    /// The first rule that was broken goes here.
    pub(super) problem: Arc<Mutex<Option<String>>>,
    /// How many there were.
    pub(super) changes: Arc<AtomicU64>,
}

pub(super) fn observe(transport: &Transport, resources: &[Gvr], noted: Noted) {
    let options = RestOptions {
        user_agent: "observer".to_owned(),
        rate_limit: None,
        ..RestOptions::default()
    };
    let client = DynamicClient::new(RestClient::new(transport.clone(), options));
    let observed = Arc::new(Observed {
        world: Mutex::default(),
        noted,
    });
    for resource in resources {
        tokio::spawn(Arc::clone(&observed).follow(client.resource(resource.clone())));
    }
}

impl Observed {
    async fn follow(self: Arc<Self>, api: DynamicApi) {
        let mut version = "0".to_owned();
        loop {
            // The observer stands beside the faults: a watch only ends by its time.
            if self.watch(&api, &mut version).await.is_err() {
                version = "0".to_owned();
            }
            sleep(PAUSE).await;
        }
    }

    async fn watch(&self, api: &DynamicApi, version: &mut String) -> Result<(), Error> {
        let options = WatchOptions {
            resource_version: version.clone(),
            ..WatchOptions::default()
        };
        let mut events = api.watch(&options).await?;
        while let Some(Ok(event)) = events.next().await {
            let (object, is_gone) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(_) => continue,
            };
            object.meta().resource_version().clone_into(version);
            self.change(api.gvr(), object, is_gone);
        }
        Ok(())
    }

    fn change(&self, resource: &Gvr, object: Doc, is_gone: bool) {
        let mut world = self.world.lock();
        let place = (resource.clone(), object.meta().key());
        if is_gone {
            world.objects.remove(&place);
        } else {
            world.objects.insert(place, object.clone());
        }
        world.changed = object;
        self.noted.changes.fetch_add(1, Ordering::Relaxed);
        let broken = self.noted.rules.iter().find_map(|rule| rule(&world).err());
        if let Some(text) = broken {
            let meta = world.changed.meta();
            let (key, version) = (meta.key(), meta.resource_version());
            let text = format!("after revision {version} of {resource} {key}: {text}");
            self.noted.problem.lock().get_or_insert(text);
        }
    }
}
