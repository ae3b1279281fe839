//! Writes of pods and claims, each with its event on the set.

use windlass_client::{DeleteOptions, Error, WriteOptions};
use windlass_core::{Doc, Key};
use windlass_runtime::{Error as SyncError, EventType, Result};

use super::{
    claim_owners::ClaimOwners,
    claims::{self, ClaimDraft},
    pod::{self, Member},
    update::Update,
};

/// A write of a pod, as events name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Create,
    Update,
    Delete,
}

impl Verb {
    fn as_str(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Update => "Update",
            Self::Delete => "Delete",
        }
    }
}

impl Update<'_> {
    /// Creates a pod after its claims. A claim that exists already gets the owners of the policy.
    pub(super) async fn create_pod(&self, pod: &Member) -> Result<()> {
        if let Err(error) = self.create_claims(pod).await {
            self.tell(Verb::Create, pod, Err(&error.to_string()));
            return Err(error);
        }
        let api = self
            .cx
            .api(&self.engine.kinds.pods, self.set.meta().namespace());
        let options = WriteOptions::default().metadata_only();
        let created = api.create(&pod.doc, &options).await;
        if let Err(error) = &created
            && error.is_already_exists()
        {
            return Ok(created.map(drop)?);
        }
        if let Err(error) = self.update_claim_owners(pod).await {
            self.tell(Verb::Update, pod, Err(&error.to_string()));
            return Err(error);
        }
        let failure = created.as_ref().err().map(|it| it.cause().to_string());
        self.tell(Verb::Create, pod, failure.as_deref().map_or(Ok(()), Err));
        Ok(created.map(drop)?)
    }

    /// Creates the claims that are missing under a pod that exists.
    pub(super) async fn restore_claims(&self, pod: &Member) -> Result<()> {
        self.create_claims(pod).await?;
        let updated = self.update_claim_owners(pod).await;
        if let Err(error) = &updated {
            self.tell(Verb::Update, pod, Err(&error.to_string()));
        }
        updated
    }

    /// Puts the labels, the volumes and the claims of a pod right.
    pub(super) async fn update_pod(&self, pod: &Member) -> Result<()> {
        let updated = self.try_to_update(pod).await;
        let failure = updated.as_ref().err().map(ToString::to_string);
        self.tell(Verb::Update, pod, failure.as_deref().map_or(Ok(()), Err));
        updated
    }

    async fn try_to_update(&self, pod: &Member) -> Result<()> {
        let api = self
            .cx
            .api(&self.engine.kinds.pods, self.set.meta().namespace());
        // The cache may lack parts of the pod.
        let mut live = api.get(pod.name()).await?;
        if live.meta().uid() != pod.doc.meta().uid() {
            return Ok(());
        }
        if !pod.has_identity(self.set) {
            live = pod::identified(&live, pod.name(), pod.ordinal)?;
        }
        if !claims::match_volumes(self.set, &live, pod.ordinal) {
            live = claims::with_volumes(self.set, &live, pod.ordinal)?;
            self.create_claims(pod).await?;
        }
        if !self.claims_match(pod) {
            self.update_claim_owners(pod).await?;
        }
        let options = WriteOptions::default().metadata_only();
        Ok(api.update(&live, &options).await.map(drop)?)
    }

    /// Deletes a pod. One that is gone is deleted.
    pub(super) async fn delete_pod(&self, pod: &Member) -> Result<()> {
        let meta = pod.doc.meta();
        let api = self.cx.api(&self.engine.kinds.pods, meta.namespace());
        let deleted = api
            .delete(meta.name(), &DeleteOptions::uid(meta.uid_str()))
            .await;
        match deleted {
            Err(error) if !error.is_not_found() => {
                self.tell(Verb::Delete, pod, Err(&error.cause().to_string()));
                Err(error.into())
            }
            _ => {
                self.tell(Verb::Delete, pod, Ok(()));
                Ok(())
            }
        }
    }

    /// Returns true if a claim of a pod goes with an earlier pod of this name.
    pub(super) fn has_stale_claim(&self, pod: &Member) -> bool {
        let mut claims = self.known_claims(pod);
        claims.any(|claim| self.owners(pod).is_stale(&claim))
    }

    /// Returns true if the claims of a pod have the owners that the policy asks for.
    pub(super) fn claims_match(&self, pod: &Member) -> bool {
        let mut claims = self.known_claims(pod);
        claims.all(|claim| self.owners(pod).is_up_to_date(&claim))
    }

    /// Gives the claims of a pod the owners that the policy asks for.
    pub(super) async fn update_claim_owners(&self, pod: &Member) -> Result<()> {
        let owners = self.owners(pod);
        for claim in self.known_claims(pod) {
            let name = claim.meta().name();
            if owners.is_foreign(&claim) {
                let text = format!(
                    "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a \
                     manging controller, the retention policy is ignored for this claim"
                );
                self.warn("ConflictingController", &text);
            }
            if owners.is_up_to_date(&claim) {
                continue;
            }
            let write = claim.with("/metadata/ownerReferences", owners.corrected(&claim))?;
            let api = self.claims_api();
            if let Err(error) = api.update(&write, &WriteOptions::default()).await {
                let text = format!("could not update claim {name} for delete policy ownerRefs");
                return Err(SyncError::from(error).context(text));
            }
        }
        Ok(())
    }

    /// Creates the claims of a pod that are missing.
    async fn create_claims(&self, pod: &Member) -> Result<()> {
        let mut problems = Vec::new();
        for draft in claims::drafts(self.set, pod.ordinal)? {
            match self.known_claim(&draft.name) {
                None => problems.extend(self.create_claim(pod, &draft).await),
                Some(claim) if claim.meta().is_deleting() => {
                    problems.push(format!("pvc {} is being deleted", draft.name));
                }
                Some(_) => {}
            }
        }
        match &problems[..] {
            [] => Ok(()),
            [only] => Err(SyncError::msg(only)),
            several => Err(SyncError::msg(format!("[{}]", several.join(", ")))),
        }
    }

    async fn create_claim(&self, pod: &Member, draft: &ClaimDraft) -> Option<String> {
        let created = self
            .claims_api()
            .create(&draft.doc, &WriteOptions::default())
            .await;
        let (claim, pod, set) = (&draft.name, pod.name(), self.set.meta().name());
        let Err(error) = created else {
            let text = format!("Create Claim {claim} Pod {pod} in StatefulSet {set} success");
            let recorder = self.cx.recorder();
            recorder.event(self.set, EventType::Normal, "SuccessfulCreate", &text);
            return None;
        };
        let cause = Error::cause(&error).to_string();
        if !error.is_already_exists() {
            let text = format!(
                "Create Claim {claim} for Pod {pod} in StatefulSet {set} failed error: {cause}"
            );
            self.warn("FailedCreate", &text);
        }
        Some(format!("failed to create PVC {claim}: {cause}"))
    }

    fn claims_api(&self) -> windlass_client::DynamicApi {
        let kind = &self.engine.kinds.claims;
        self.cx.api(kind, self.set.meta().namespace())
    }

    fn known_claim(&self, name: &str) -> Option<Doc> {
        let key = Key::new(self.set.meta().namespace(), name);
        let claim = self.engine.claims.lister().get(&key)?;
        Some(claim.doc().clone())
    }

    /// The claims of a pod that exist.
    fn known_claims(&self, pod: &Member) -> impl Iterator<Item = Doc> + use<'_> {
        let names = claims::names(self.set, pod.ordinal).into_iter();
        names.filter_map(|name| self.known_claim(&name))
    }

    fn owners<'a>(&'a self, pod: &'a Member) -> ClaimOwners<'a> {
        ClaimOwners {
            set: self.set,
            set_kind: self.engine.kinds.sets.gvk(),
            pod: &pod.doc,
            pod_kind: self.engine.kinds.pods.gvk(),
            spec: self.spec,
            ordinal: pod.ordinal,
        }
    }

    fn tell(&self, verb: Verb, pod: &Member, outcome: Result<(), &str>) {
        let (verb, pod, set) = (verb.as_str(), pod.name(), self.set.meta().name());
        match outcome {
            Ok(()) => {
                let text = format!("{verb} Pod {pod} in StatefulSet {set} successful");
                let reason = format!("Successful{verb}");
                let recorder = self.cx.recorder();
                recorder.event(self.set, EventType::Normal, &reason, &text);
            }
            Err(error) => {
                let text = format!("{verb} Pod {pod} in StatefulSet {set} failed error: {error}");
                self.warn(&format!("Failed{verb}"), &text);
            }
        }
    }

    fn warn(&self, reason: &str, text: &str) {
        let recorder = self.cx.recorder();
        recorder.event(self.set, EventType::Warning, reason, text);
    }
}
