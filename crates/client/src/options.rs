//! The options of lists, watches and writes.

use std::time::Duration;

use serde::Serialize;
use windlass_core::Prune;

/// The `resourceVersionMatch` of a list or watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// Exactly this state.
    Exact,
    /// This state or a newer one.
    NotOlderThan,
}

/// Options of a list.
#[derive(Clone, Debug)]
pub struct ListOptions {
    /// Only objects with these labels, such as `app=web,tier!=db`.
    pub label_selector: String,
    /// Only objects with these fields, such as `spec.nodeName=n1`.
    pub field_selector: String,
    /// At most this many in one answer; zero for all of them.
    pub limit: u32,
    /// The continue token of the page before.
    pub continue_token: String,
    /// The state to read: empty for the latest, `0` for any.
    pub resource_version: String,
    /// The meaning of `resource_version`.
    pub version_match: Option<VersionMatch>,
    /// Ask for names, labels and the rest of the metadata only.
    pub is_metadata_only: bool,
    /// The fields that are skipped while decoding.
    pub prune: Prune,
    /// The time limit of the request, in place of the client's own.
    pub timeout: Option<Duration>,
}

/// Options of a watch.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// Only objects with these labels, such as `app=web,tier!=db`.
    pub label_selector: String,
    /// Only objects with these fields, such as `spec.nodeName=n1`.
    pub field_selector: String,
    /// The state after which events are sent: empty for the latest, `0` for any.
    pub resource_version: String,
    /// The meaning of `resource_version`; only with `send_initial_events`.
    pub version_match: Option<VersionMatch>,
    /// Start with the objects that exist, and mark their end with a bookmark.
    pub send_initial_events: bool,
    /// Ask for bookmarks now and then, so that a quiet watch can be resumed.
    pub bookmarks: bool,
    /// When the server shall end the watch.
    pub timeout: Option<Duration>,
    /// Ask for names, labels and the rest of the metadata only.
    pub is_metadata_only: bool,
    /// The fields that are skipped while decoding.
    pub prune: Prune,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self {
            label_selector: String::new(),
            field_selector: String::new(),
            limit: 0,
            continue_token: String::new(),
            resource_version: String::new(),
            version_match: None,
            is_metadata_only: false,
            prune: Prune::managed_fields(),
            timeout: None,
        }
    }
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            label_selector: String::new(),
            field_selector: String::new(),
            resource_version: String::new(),
            version_match: None,
            send_initial_events: false,
            bookmarks: true,
            timeout: None,
            is_metadata_only: false,
            prune: Prune::managed_fields(),
        }
    }
}

impl ListOptions {
    /// Only objects with these labels.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.label_selector = selector.into();
        self
    }

    /// Only objects with these fields.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.field_selector = selector.into();
        self
    }

    /// At most this many in one answer.
    #[must_use]
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    pub(crate) fn params(&self) -> Vec<(&'static str, String)> {
        let mut params = Vec::new();
        text(&mut params, "labelSelector", &self.label_selector);
        text(&mut params, "fieldSelector", &self.field_selector);
        if self.limit > 0 {
            params.push(("limit", self.limit.to_string()));
        }
        text(&mut params, "continue", &self.continue_token);
        text(&mut params, "resourceVersion", &self.resource_version);
        version_match(&mut params, self.version_match);
        params
    }
}

impl WatchOptions {
    /// Watches from a state on.
    #[must_use]
    pub fn from(resource_version: impl Into<String>) -> Self {
        Self {
            resource_version: resource_version.into(),
            ..Self::default()
        }
    }

    /// Starts with the objects that exist; a bookmark marks their end.
    #[must_use]
    pub fn initial() -> Self {
        Self {
            version_match: Some(VersionMatch::NotOlderThan),
            send_initial_events: true,
            ..Self::default()
        }
    }

    /// Only objects with these labels.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.label_selector = selector.into();
        self
    }

    /// When the server shall end the watch.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    pub(crate) fn params(&self) -> Vec<(&'static str, String)> {
        let mut params = vec![("watch", "true".to_owned())];
        text(&mut params, "labelSelector", &self.label_selector);
        text(&mut params, "fieldSelector", &self.field_selector);
        text(&mut params, "resourceVersion", &self.resource_version);
        version_match(&mut params, self.version_match);
        if self.send_initial_events {
            params.push(("sendInitialEvents", "true".to_owned()));
        }
        if self.bookmarks {
            params.push(("allowWatchBookmarks", "true".to_owned()));
        }
        if let Some(timeout) = self.timeout {
            params.push(("timeoutSeconds", timeout.as_secs().max(1).to_string()));
        }
        params
    }
}

fn text(params: &mut Vec<(&'static str, String)>, name: &'static str, value: &str) {
    if !value.is_empty() {
        params.push((name, value.to_owned()));
    }
}

fn version_match(params: &mut Vec<(&'static str, String)>, wanted: Option<VersionMatch>) {
    let value = match wanted {
        None => return,
        Some(VersionMatch::Exact) => "Exact",
        Some(VersionMatch::NotOlderThan) => "NotOlderThan",
    };
    params.push(("resourceVersionMatch", value.to_owned()));
}

/// The deletion propagation policy: the fate of the objects that belong to a deleted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Propagation {
    /// They stay, without an owner.
    Orphan,
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
}

/// The treatment of unknown fields by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped, and the answer warns.
    Warn,
    /// The request is refused.
    Strict,
}

/// Options of a create, an update or a patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// The field manager, for the record of managed fields.
    pub field_manager: String,
    /// Go through all checks and store nothing.
    pub is_dry_run: bool,
    /// Take over fields that others manage; for apply only.
    pub is_forced: bool,
    /// The treatment of unknown fields.
    pub field_validation: Option<FieldValidation>,
    /// True to get only the metadata of the answer, without managed fields. The server is asked to
    /// send no more, and the rest is not decoded if it comes nevertheless, which for a large object
    /// is most of the work; a server in the same process may answer with all of it.
    pub is_metadata_only: bool,
}

impl WriteOptions {
    /// Writes in the name of a field manager.
    #[must_use]
    pub fn manager(name: impl Into<String>) -> Self {
        Self {
            field_manager: name.into(),
            ..Self::default()
        }
    }

    /// Goes through all checks and stores nothing.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.is_dry_run = true;
        self
    }

    /// Reads only the metadata of the answer.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.is_metadata_only = true;
        self
    }

    /// Takes over fields that others manage.
    #[must_use]
    pub fn force(mut self) -> Self {
        self.is_forced = true;
        self
    }

    pub(crate) fn params(&self) -> Vec<(&'static str, String)> {
        let mut params = Vec::new();
        text(&mut params, "fieldManager", &self.field_manager);
        if self.is_dry_run {
            params.push(("dryRun", "All".to_owned()));
        }
        if self.is_forced {
            params.push(("force", "true".to_owned()));
        }
        if let Some(validation) = self.field_validation {
            params.push(("fieldValidation", format!("{validation:?}")));
        }
        params
    }
}

/// Options of a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Only if the object is this one, and not another of the same name.
    pub uid: Option<String>,
    /// Only if the object has not changed since.
    pub resource_version: Option<String>,
    /// The grace period.
    pub grace_period: Option<Duration>,
    /// The propagation policy: the fate of its dependents.
    pub propagation: Option<Propagation>,
    /// Go through all checks and delete nothing.
    pub is_dry_run: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeleteBody<'a> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_period_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    propagation_policy: Option<Propagation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preconditions: Option<Preconditions<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    dry_run: &'static [&'static str],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Preconditions<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<&'a str>,
}

impl DeleteOptions {
    /// Deletes this one object, and not another of the same name.
    #[must_use]
    pub fn uid(uid: impl Into<String>) -> Self {
        Self {
            uid: Some(uid.into()),
            ..Self::default()
        }
    }

    /// Chooses what happens to the dependents.
    #[must_use]
    pub fn propagate(mut self, propagation: Propagation) -> Self {
        self.propagation = Some(propagation);
        self
    }

    /// The `DeleteOptions` object that a request carries.
    pub(crate) fn body(&self) -> impl Serialize {
        let has_condition = self.uid.is_some() || self.resource_version.is_some();
        DeleteBody {
            api_version: "v1",
            kind: "DeleteOptions",
            grace_period_seconds: self.grace_period.map(|period| period.as_secs()),
            propagation_policy: self.propagation,
            preconditions: has_condition.then_some(Preconditions {
                uid: self.uid.as_deref(),
                resource_version: self.resource_version.as_deref(),
            }),
            dry_run: if self.is_dry_run { &["All"] } else { &[] },
        }
    }
}
