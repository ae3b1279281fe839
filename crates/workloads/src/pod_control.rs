//! Creates, patches and deletes pods on behalf of an owner, and tells of it.

use windlass_client::{DeleteOptions, Deletion, Error, Patch, RequestOutcome, WriteOptions};
use windlass_core::{Doc, GroupVersion, Object, OwnerRef, Str, Uid, names};

use windlass_runtime::{Context, EventType, ResourceKind};

/// How often a create whose outcome is not known is repeated.
const REPEATS_LIMIT: u32 = 3;

/// How many names are tried for one pod, as an API server does that makes up names itself.
const NAMES_LIMIT: u32 = 8;

/// Creates, patches and deletes pods on behalf of an owner.
///
/// Pods get their names here, not from the server: a create whose answer was lost can then be
/// repeated, and finds out that it had succeeded. Deletions say which pod they mean by UID.
#[derive(Clone, Debug)]
pub struct PodControl {
    cx: Context,
    kind: ResourceKind,
}

/// A pod was not created or deleted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PodControlError {
    /// The template has no labels, and so nobody could find the pod again.
    #[error("unable to create pods, no labels")]
    NoLabels,
    /// The owner reference is not one of a managing owner.
    #[error("controllerRef has no {0}")]
    BadReference(&'static str),
    /// The server did not create it.
    #[error("{}", .0.cause())]
    Create(Error),
    /// The server did not delete it.
    #[error("unable to delete pods: {}", .0.cause())]
    Delete(Error),
    /// The pod does not exist.
    #[error(transparent)]
    NotFound(Error),
}

impl PodControl {
    /// Pods in the name of a controller.
    #[must_use]
    pub fn new(cx: &Context) -> Self {
        let kind = ResourceKind::namespaced(GroupVersion::constant("", "v1"), "Pod", "pods");
        Self {
            cx: cx.clone(),
            kind,
        }
    }

    /// Creates a pod from a template, managed by `reference`, and tells about it on the owner.
    /// Returns the pod, of which only the metadata can be relied on: more is not read.
    ///
    /// # Errors
    /// When the template or the reference cannot be used, or the server does not create the pod.
    pub async fn create(
        &self,
        owner: &Doc,
        template: &Doc,
        reference: &OwnerRef,
    ) -> Result<Doc, PodControlError> {
        let prefix = name_prefix(owner.meta().name());
        self.create_named(owner, template, reference, &prefix).await
    }

    /// As [`create`](Self::create), under a name with another start.
    ///
    /// # Errors
    /// When the template or the reference cannot be used, or the server does not create the pod.
    pub async fn create_named(
        &self,
        owner: &Doc,
        template: &Doc,
        reference: &OwnerRef,
        prefix: &str,
    ) -> Result<Doc, PodControlError> {
        let prototype = PodPrototype::named(template, reference, prefix)?;
        self.create_from(owner, &prototype).await
    }

    /// Creates one of many pods that are alike but for the name, and tells about it on the owner.
    ///
    /// # Errors
    /// When the server does not create the pod.
    pub async fn create_from(
        &self,
        owner: &Doc,
        prototype: &PodPrototype,
    ) -> Result<Doc, PodControlError> {
        match self.send(owner.meta().namespace(), prototype).await {
            Ok(pod) => {
                let message = format!("Created pod: {}", pod.meta().name());
                self.tell(owner, EventType::Normal, "SuccessfulCreate", &message);
                Ok(pod)
            }
            Err(error) => {
                if !is_namespace_terminating(&error) {
                    let message = format!("Error creating: {}", error.cause());
                    self.tell(owner, EventType::Warning, "FailedCreate", &message);
                }
                Err(PodControlError::Create(error))
            }
        }
    }

    /// Creates a pod. If nothing is known about the outcome that is repeated under the same name;
    /// if the name is taken, under another one.
    async fn send(&self, namespace: &str, prototype: &PodPrototype) -> Result<Doc, Error> {
        let api = self.cx.api(&self.kind, namespace);
        let (mut repeats, mut names) = (0, 1);
        let mut pod = prototype.pod(&self.cx);
        loop {
            let options = WriteOptions::default().metadata_only();
            let error = match api.create(&pod, &options).await {
                Ok(pod) => return Ok(pod),
                Err(error) => error,
            };
            if error.is_already_exists() {
                // The name is random: a pod of that name which is ours is the one from before.
                if repeats > 0 {
                    let found = api.get(pod.meta().name()).await?;
                    if found.meta().is_controlled_by(&prototype.owner) {
                        return Ok(found);
                    }
                }
                if names >= NAMES_LIMIT {
                    return Err(error);
                }
                (repeats, names) = (0, names + 1);
                pod = prototype.pod(&self.cx);
                continue;
            }
            if error.outcome() != RequestOutcome::Unknown || repeats >= REPEATS_LIMIT {
                return Err(error);
            }
            repeats += 1;
        }
    }

    /// Deletes this one pod, and tells about it on the owner.
    ///
    /// # Errors
    /// When the pod does not exist, or the server does not delete it.
    pub async fn delete(&self, owner: &Doc, pod: &Doc) -> Result<Deletion, PodControlError> {
        let meta = pod.meta();
        let api = self.cx.api(&self.kind, meta.namespace());
        match api
            .delete(meta.name(), &DeleteOptions::uid(meta.uid_str()))
            .await
        {
            Ok(deletion) => {
                let message = format!("Deleted pod: {}", meta.name());
                self.tell(owner, EventType::Normal, "SuccessfulDelete", &message);
                Ok(deletion)
            }
            Err(error) if error.is_not_found() => Err(PodControlError::NotFound(error)),
            Err(error) => {
                let message = format!("Error deleting: {}", error.cause());
                self.tell(owner, EventType::Warning, "FailedDelete", &message);
                Err(PodControlError::Delete(error))
            }
        }
    }

    /// Changes a pod by a strategic merge patch.
    ///
    /// # Errors
    /// When the server does not change the pod.
    pub async fn patch(&self, pod: &Doc, patch: Doc) -> Result<Doc, Error> {
        let api = self.cx.api(&self.kind, pod.meta().namespace());
        api.patch(
            pod.meta().name(),
            &Patch::Strategic(patch),
            &WriteOptions::default(),
        )
        .await
    }

    fn tell(&self, owner: &Doc, event_type: EventType, reason: &str, message: &str) {
        self.cx.recorder().event(owner, event_type, reason, message);
    }
}

/// A pod without its name: what all pods of one template have in common.
#[derive(Clone, Debug)]
pub struct PodPrototype {
    metadata: Object,
    pod: Object,
    prefix: String,
    owner: Uid,
}

impl PodPrototype {
    /// The pods that a template describes, managed by `reference` and named after `owner`.
    ///
    /// # Errors
    /// When the template has no labels, or the reference is not one of a managing owner.
    pub fn new(owner: &Doc, template: &Doc, reference: &OwnerRef) -> Result<Self, PodControlError> {
        Self::named(template, reference, &name_prefix(owner.meta().name()))
    }

    /// The pods that a template describes, under names with another start.
    pub(crate) fn named(
        template: &Doc,
        reference: &OwnerRef,
        prefix: &str,
    ) -> Result<Self, PodControlError> {
        check_reference(reference)?;
        let labels = template.at("/metadata/labels");
        if labels.as_object().is_none_or(Object::is_empty) {
            return Err(PodControlError::NoLabels);
        }
        let mut fields = vec![
            (Str::new("generateName"), Doc::from(prefix)),
            (Str::new("labels"), labels.clone()),
            (
                Str::new("ownerReferences"),
                Doc::from(vec![Doc::from(reference)]),
            ),
        ];
        for field in ["annotations", "finalizers"] {
            if let Some(value) = template.at("/metadata").get(field) {
                fields.push((Str::new(field), value.clone()));
            }
        }
        let pod = vec![
            (Str::new("apiVersion"), Doc::from("v1")),
            (Str::new("kind"), Doc::from("Pod")),
            (Str::new("spec"), template.at("/spec").clone()),
        ];
        Ok(Self {
            metadata: Object::new(fields),
            pod: Object::new(pod),
            prefix: prefix.to_owned(),
            owner: reference.uid.clone(),
        })
    }

    /// One of the pods, under a fresh name.
    fn pod(&self, cx: &Context) -> Doc {
        let name = names::generate_name(&self.prefix, cx.env());
        let metadata = self.metadata.with("name", name.into());
        self.pod.with("metadata", metadata.into()).into()
    }
}

fn check_reference(reference: &OwnerRef) -> Result<(), PodControlError> {
    let problem = match reference {
        _ if reference.api_version.is_empty() => "APIVersion",
        _ if reference.kind.is_empty() => "Kind",
        _ if !reference.controller => "Controller set to true",
        _ if !reference.block_owner_deletion => "BlockOwnerDeletion set to true",
        _ => return Ok(()),
    };
    Err(PodControlError::BadReference(problem))
}

/// `<owner>-`, or the name alone where the dash makes it no start of a name.
fn name_prefix(owner: &str) -> String {
    let prefix = format!("{owner}-");
    let is_valid = names::dns1123_subdomain(&names::mask_trailing_dash(&prefix)).is_empty();
    if is_valid { prefix } else { owner.to_owned() }
}

/// Whether the namespace is being deleted, and so nothing can be created in it.
#[must_use]
pub fn is_namespace_terminating(error: &Error) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    details.is_some_and(|it| {
        it.causes
            .iter()
            .any(|cause| cause.reason == "NamespaceTerminating")
    })
}
