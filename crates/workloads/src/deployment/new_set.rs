//! The set of the current template: found, kept up to date, or created.

use windlass_client::{Error as ClientError, WriteOptions};
use windlass_core::{Doc, Object, OwnerRef, doc, names};
use windlass_runtime::{Error, EventType, Result};

use super::{
    annotations::{self, REVISION, REVISION_HISTORY},
    conditions::{Conditions, News, PROGRESSING},
    limits, progress,
    rollout::Rollout,
    set::Set,
    template::{self, HASH_LABEL},
};
use crate::is_namespace_terminating;

impl Rollout<'_> {
    /// The revision that the current set is to have at least.
    fn next_revision(&self) -> i64 {
        let revisions = self.old_sets().filter_map(Set::revision);
        revisions.max().unwrap_or(0).max(0).saturating_add(1)
    }

    /// Brings annotations of the current set up to date, and the revision of the Deployment with
    /// them. Does nothing if there is no current set.
    pub(super) async fn sync_revision(&mut self) -> Result<()> {
        let Some(at) = self.new else { return Ok(()) };
        let revision = self.next_revision();
        if self.sets[at].is_before(revision) {
            self.confirm().await?;
        }
        let set = &self.sets[at];
        let annotations = annotations::for_existing(&self.deployment, set, revision);
        let min_ready = min_ready(&self.deployment);
        if annotations != annotations::of(set.doc()) || min_ready != min_ready_of(set.doc()) {
            let changed = set.doc().with("/metadata/annotations", annotations)?;
            let changed = changed.with("/spec/minReadySeconds", min_ready)?;
            let api = self.set_api();
            let updated = api.update(&changed, &WriteOptions::default()).await?;
            self.sets[at] = Set::new(updated);
        }
        let set = &self.sets[at];
        let revision = set.doc().meta().annotation(REVISION);
        let revision = revision.unwrap_or("").to_owned();
        let conditions = self.with_found(set, &revision);
        self.write_revision(&revision, conditions).await
    }

    /// Makes sure that the Deployment is as it was seen last. A set that was replaced becomes the
    /// newest again when its template comes back, or when it seems to: the change that brought
    /// the next template may not have been seen yet. Two controllers that see different templates
    /// would outbid each other with revisions for as long as that lasts.
    async fn confirm(&self) -> Result<()> {
        let seen = self.deployment.meta();
        let live = self.deployment_api().get(seen.name()).await?;
        let is_same = live.meta().uid() == seen.uid();
        if is_same && live.meta().generation() == seen.generation() {
            return Ok(());
        }
        let key = seen.key();
        Err(Error::msg(format!(
            "deployment {key} has changed since it was seen last"
        )))
    }

    /// The conditions, with the news that the current set was found where that is news: nothing is
    /// known about the progress, or a rollout begins that was not announced when its set was made.
    /// Whoever made it may have crashed then, and what is said of the progress is about the
    /// rollout before: its deadline would never pass. A set that had another revision before was
    /// gone back to: nobody announces that.
    fn with_found(&self, set: &Set, revision: &str) -> Conditions {
        let mut conditions = Conditions::of(&self.deployment);
        let is_unknown = conditions.get(PROGRESSING).is_none();
        let was_made_for_it = set.doc().meta().annotation(REVISION_HISTORY).is_none();
        let is_of_former = was_made_for_it
            && conditions.reason(PROGRESSING) == progress::COMPLETE
            && self.deployment.meta().annotation(REVISION) != Some(revision)
            && self.old_sets().any(|set| set.most_replicas() > 0);
        if (is_unknown || is_of_former) && progress::deadline(&self.deployment).is_some() {
            let message = format!("Found new replica set {:?}", set.name());
            let news = progressing("FoundNewReplicaSet", &message);
            conditions.set(news, self.cx.env().now());
        }
        conditions
    }

    /// Writes the revision and the conditions of the Deployment, if they are new.
    async fn write_revision(&mut self, revision: &str, conditions: Conditions) -> Result<()> {
        let annotations = annotations::of(&self.deployment).with(REVISION, revision.into());
        let mut changed = self.deployment.with("/metadata/annotations", annotations)?;
        if let Some(conditions) = conditions.into_doc() {
            changed = changed.with("/status/conditions", conditions)?;
        }
        if changed == self.deployment {
            return Ok(());
        }
        self.write_status(&changed).await
    }

    /// As [`sync_revision`](Self::sync_revision), and creates the set if there is none.
    pub(super) async fn ensure_new_set(&mut self) -> Result<()> {
        if self.new.is_some() {
            return self.sync_revision().await;
        }
        let (set, revision) = (self.set_to_create()?, self.next_revision());
        let name = set.meta().name().to_owned();
        let created = match self.set_api().create(&set, &WriteOptions::default()).await {
            Ok(created) => Set::new(created),
            Err(error) => return Err(self.not_created(&name, error).await?),
        };
        if created.size() > 0 {
            let message = format!("Scaled up replica set {name} from 0 to {}", created.size());
            self.tell(EventType::Normal, "ScalingReplicaSet", &message);
        }
        self.sets.push(created);
        self.new = Some(self.sets.len() - 1);
        let conditions = self.with_created(&name);
        self.write_revision(&revision.to_string(), conditions).await
    }

    fn with_created(&self, name: &str) -> Conditions {
        let mut conditions = Conditions::of(&self.deployment);
        if progress::deadline(&self.deployment).is_some() {
            let message = format!("Created new replica set {name:?}");
            let news = progressing("NewReplicaSetCreated", &message);
            conditions.set(news, self.cx.env().now());
        }
        conditions
    }

    /// The set of the current template.
    fn set_to_create(&self) -> Result<Doc> {
        let deployment = &self.deployment;
        let collisions = deployment.at("/status/collisionCount").as_i64();
        let hash = template::hash(deployment.at("/spec/template"), collisions);
        let template = deployment.at("/spec/template");
        let template = template.with(&format!("/metadata/labels/{HASH_LABEL}"), hash.as_str())?;
        let labels = template.at("/metadata/labels").clone();
        let selector = deployment.at("/spec/selector");
        let selector = selector.with(&format!("/matchLabels/{HASH_LABEL}"), hash.as_str())?;
        let replicas = limits::replicas(deployment);
        let max = replicas + limits::max_surge(deployment);
        let annotations = annotations::for_new(deployment, self.next_revision(), replicas, max);
        let owner = OwnerRef::controller_of(deployment, self.engine.kinds.deployments.gvk());
        let spec = Object::empty()
            .with(
                "replicas",
                limits::new_set_size(deployment, 0, self.most_replicas()).into(),
            )
            .with("selector", selector)
            .with("template", template);
        let spec = match min_ready(deployment) {
            0 => spec,
            seconds => spec.with("minReadySeconds", seconds.into()),
        };
        Ok(doc!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": (set_name(deployment.meta().name(), &hash)),
                "namespace": (deployment.meta().namespace()),
                "labels": labels,
                "annotations": annotations,
                "ownerReferences": [(Doc::from(&owner))]
            },
            "spec": spec
        }))
    }

    /// What to make of a set that was not created: the error to end with. One of that name may be
    /// the one that is meant. As it was not seen before, others may have been missed as well, and
    /// to scale it now could be too much: the sync that it brings about when it is seen will do it.
    async fn not_created(&mut self, name: &str, error: ClientError) -> Result<Error> {
        if error.is_already_exists() {
            let found = self.set_api().get(name).await?;
            let is_ours = found.meta().is_controlled_by(&self.deployment.meta().uid());
            let template = self.deployment.at("/spec/template");
            if is_ours && template::is_same(found.at("/spec/template"), template) {
                return Ok(Error::msg(format!(
                    "replica set {name:?} exists and was not seen yet"
                )));
            }
            // Another template has the same hash; the next sync tries another one.
            let collisions = self.deployment.at("/status/collisionCount").as_i64();
            let collisions = collisions.unwrap_or(0).saturating_add(1);
            let changed = self.deployment.with("/status/collisionCount", collisions)?;
            self.write_status(&changed).await?;
        } else if !is_namespace_terminating(&error) {
            let message = format!(
                "Failed to create new replica set {name:?}: {}",
                error.cause()
            );
            if progress::deadline(&self.deployment).is_some() {
                let news = News {
                    kind: PROGRESSING,
                    status: "False",
                    reason: SET_CREATE_ERROR,
                    message: &message,
                };
                let mut conditions = Conditions::of(&self.deployment);
                conditions.set(news, self.cx.env().now());
                if let Err(error) = self.write_conditions(conditions).await {
                    tracing::warn!(%error, "the failure is not in the status");
                }
            }
            self.tell(EventType::Warning, SET_CREATE_ERROR, &message);
        }
        Ok(error.into())
    }
}

const SET_CREATE_ERROR: &str = "ReplicaSetCreateError";

fn progressing<'a>(reason: &'a str, message: &'a str) -> News<'a> {
    News {
        kind: PROGRESSING,
        status: "True",
        reason,
        message,
    }
}

fn min_ready(deployment: &Doc) -> i64 {
    min_ready_of(deployment)
}

fn min_ready_of(object: &Doc) -> i64 {
    object.at("/spec/minReadySeconds").as_i64().unwrap_or(0)
}

/// `<deployment>-<hash>`, with the first part shortened where the whole is too long for a name.
fn set_name(deployment: &str, hash: &str) -> String {
    let room = names::SUBDOMAIN_BYTES_MAX.saturating_sub(1 + hash.len());
    let is_too_long = deployment.len() > room && room > 0;
    let start = if is_too_long {
        deployment.get(..room).unwrap_or(deployment)
    } else {
        deployment
    };
    format!("{start}-{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sets_fit_into_a_name() {
        assert_eq!(set_name("web", "abc"), "web-abc");
        let (fits, long) = ("a".repeat(242), "a".repeat(250));
        let hash = "0123456789";
        assert_eq!(set_name(&fits, hash), format!("{fits}-{hash}"));
        assert_eq!(set_name(&long, hash), format!("{fits}-{hash}"));
        let absurd = "h".repeat(253);
        assert_eq!(set_name("web", &absurd), format!("web-{absurd}"));
    }
}
