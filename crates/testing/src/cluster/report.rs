//! What a failed wait shows.

use std::fmt::Write as _;

use windlass_client::ListOptions;
use windlass_core::{Doc, Gvr, Key, Prune};

use super::Cluster;

const EVENTS: Gvr = Gvr::constant("", "v1", "events");

/// How many objects a report shows.
const OBJECTS_LIMIT: usize = 5;

impl Cluster {
    /// The objects that the condition looked at, their events, and what controllers did.
    pub(super) async fn report(&self) -> String {
        let looked_at = std::mem::take(&mut *self.0.looked_at.lock());
        let mut text = String::new();
        let total = looked_at.len();
        for (resource, key) in looked_at.into_iter().take(OBJECTS_LIMIT) {
            self.report_object(&mut text, &resource, &key).await;
        }
        if total > OBJECTS_LIMIT {
            let _ = writeln!(text, "and {} objects more", total - OBJECTS_LIMIT);
        }
        text
    }

    async fn report_object(&self, text: &mut String, resource: &Gvr, key: &Key) {
        let namespace = key.namespace().unwrap_or_default();
        let found = self.api(resource, namespace).get(key.name()).await;
        let _ = writeln!(text, "--- {} {key}", resource.group_resource());
        match found {
            Err(error) => drop(writeln!(text, "{error}")),
            Ok(object) => {
                let object = Prune::managed_fields().apply(&object);
                text.push_str(&object.to_yaml().unwrap_or_else(|error| error.to_string()));
                self.report_events(text, &object).await;
            }
        }
        let runs = self.0.runs.lock().clone();
        for why in runs.iter().map(|run| run.why(key)) {
            if !why.is_empty() {
                let _ = writeln!(text, "why:\n{why}");
            }
        }
    }

    async fn report_events(&self, text: &mut String, object: &Doc) {
        let options = ListOptions {
            field_selector: format!("involvedObject.uid={}", object.meta().uid_str()),
            ..ListOptions::default()
        };
        let api = self.api(&EVENTS, object.meta().namespace());
        let Ok(events) = api.list_all(&options).await else {
            return;
        };
        for event in &events.items {
            let _ = writeln!(
                text,
                "event: {} {} {}",
                event.str_at("/type"),
                event.str_at("/reason"),
                event.str_at("/message")
            );
        }
    }
}
