//! One event of the core group.

use std::fmt;

use windlass_core::{Doc, Env, Object, Str, Time, doc, names};

/// Longest message that is sent; an API server refuses longer ones.
const MESSAGE_BYTES_LIMIT: usize = 1024;

/// The type of an event: the usual course of things, or a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    /// For information.
    Normal,
    /// Something may be wrong.
    Warning,
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        })
    }
}

/// The object that an event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reference {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// The version of the object that was looked at.
    pub resource_version: String,
    /// The part of the object that is meant, such as `spec.containers{web}`.
    pub field_path: String,
}

impl Reference {
    /// The reference to an object that says its own kind.
    #[must_use]
    pub fn to(object: &Doc) -> Self {
        let meta = object.meta();
        Self {
            api_version: object.str_at("/apiVersion").to_owned(),
            kind: object.str_at("/kind").to_owned(),
            namespace: meta.namespace().to_owned(),
            name: meta.name().to_owned(),
            uid: meta.uid_str().to_owned(),
            resource_version: meta.resource_version().to_owned(),
            field_path: String::new(),
        }
    }

    /// The same object, and a part of it.
    #[must_use]
    pub fn field(mut self, path: &str) -> Self {
        path.clone_into(&mut self.field_path);
        self
    }

    /// The field selector that finds the events of the core group about this object. What the
    /// reference leaves out is not asked for.
    #[must_use]
    pub fn field_selector(&self) -> String {
        let fields = [
            ("kind", &self.kind),
            ("namespace", &self.namespace),
            ("name", &self.name),
            ("uid", &self.uid),
        ];
        let present = fields.iter().filter(|(_, value)| !value.is_empty());
        let terms = present.map(|(field, value)| format!("involvedObject.{field}={value}"));
        terms.collect::<Vec<_>>().join(",")
    }

    fn to_doc(&self) -> Doc {
        let fields = [
            ("apiVersion", &self.api_version),
            ("kind", &self.kind),
            ("namespace", &self.namespace),
            ("name", &self.name),
            ("uid", &self.uid),
            ("resourceVersion", &self.resource_version),
            ("fieldPath", &self.field_path),
        ];
        present(fields)
    }
}

/// The reporter of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Source {
    /// The name of the controller.
    pub component: String,
    /// The machine it runs on; may be empty.
    pub host: String,
}

/// An event, with the count and the times that make it a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The name of the event object itself.
    pub name: String,
    /// The object that it is about.
    pub involved: Reference,
    /// The reporter.
    pub source: Source,
    /// Normal or Warning.
    pub event_type: EventType,
    /// One word for programs, such as `SuccessfulCreate`.
    pub reason: String,
    /// For people.
    pub message: String,
    /// Further facts, for programs.
    pub annotations: Vec<(String, String)>,
    /// The number of times that it has happened.
    pub count: u32,
    /// When it happened first.
    pub first: Time,
    /// When it happened last.
    pub last: Time,
    /// The version of the event object, once it is stored.
    pub resource_version: String,
}

impl Event {
    /// An event that happens now for the first time.
    #[must_use]
    pub fn new(
        env: &Env,
        source: &Source,
        involved: Reference,
        event_type: EventType,
        reason: &str,
        message: &str,
    ) -> Self {
        let now = env.now();
        let end = message.floor_char_boundary(MESSAGE_BYTES_LIMIT);
        Self {
            name: event_name(env, &involved.name),
            involved,
            source: source.clone(),
            event_type,
            reason: reason.to_owned(),
            message: message[..end].to_owned(),
            annotations: Vec::new(),
            count: 1,
            first: now,
            last: now,
            resource_version: String::new(),
        }
    }

    /// The namespace of the event: that of its object, or `default`.
    #[must_use]
    pub fn namespace(&self) -> &str {
        match &*self.involved.namespace {
            "" => "default",
            namespace => namespace,
        }
    }

    /// The event as it is created, without a version.
    #[must_use]
    pub fn to_doc(&self) -> Doc {
        let mut metadata = doc!({ "name": &self.name, "namespace": self.namespace() });
        if !self.annotations.is_empty() {
            let pairs = self
                .annotations
                .iter()
                .map(|(key, value)| (Str::new(key), value.into()));
            let pairs = Doc::from(pairs.collect::<Object>());
            metadata = metadata.with("/annotations", pairs).unwrap_or(metadata);
        }
        doc!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": metadata,
            "involvedObject": self.involved.to_doc(),
            "reason": &self.reason,
            "message": &self.message,
            "source": present([("component", &self.source.component), ("host", &self.source.host)]),
            "firstTimestamp": self.first.to_string(),
            "lastTimestamp": self.last.to_string(),
            "count": self.count,
            "type": self.event_type.to_string(),
            "reportingComponent": &self.source.component,
            "reportingInstance": &self.source.host
        })
    }

    /// The patch between two reports of the same event.
    #[must_use]
    pub fn to_patch(&self) -> Doc {
        doc!({
            "count": self.count,
            "lastTimestamp": self.last.to_string(),
            "message": &self.message
        })
    }
}

/// `<object>.<hex of the time>`, which is unique enough and sorts; a UID where that is no name.
pub(super) fn event_name(env: &Env, object: &str) -> String {
    // The time of day has microseconds; what is random below that keeps two events apart.
    let micros = u64::try_from(env.now_micro().unix_micros()).unwrap_or(0);
    let nanos = micros
        .saturating_mul(1000)
        .saturating_add(env.random_below(1000));
    let name = format!("{object}.{nanos:x}");
    if names::dns1123_subdomain(&name).is_empty() {
        name
    } else {
        env.uid().to_string()
    }
}

fn present<const N: usize>(fields: [(&str, &String); N]) -> Doc {
    let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
    fields
        .map(|(key, value)| (Str::new(key), Doc::from(value)))
        .collect::<Object>()
        .into()
}
