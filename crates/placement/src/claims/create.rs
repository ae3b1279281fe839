//! Making the claim of an entry of a pod.

use windlass_client::WriteOptions;
use windlass_core::{Doc, Key, Object, doc};
use windlass_runtime::{Context, Error, Result};

use super::{
    ClaimName, Claims, NAME, NameError, Naming, POD_CLAIM_NAME, claim_kind, claim_name, is_for_pod,
    metrics::asks_for_admin_access, must_be_for_pod, naming,
};

impl Claims {
    /// Sees to it that the claim of an entry exists. Returns its name if the status of the pod
    /// does not have it.
    pub(super) async fn provide(
        &self,
        pod: &Doc,
        entry: &Doc,
        cx: &Context,
    ) -> Result<Option<String>> {
        match claim_name(pod, entry) {
            Ok(
                ClaimName::NotNeeded
                | ClaimName::Named {
                    is_generated: false,
                    ..
                },
            ) => {
                return Ok(None);
            }
            Ok(ClaimName::Named { name, .. }) => {
                if self.exists_for(pod, name, cx).await? {
                    return Ok(None);
                }
            }
            Err(NameError::NotCreatedYet { .. }) => {}
            Err(error) => {
                return Err(Error::from(error).context("checking for claim before creating it"));
            }
        }
        if let Some(made) = self.made_for(pod, entry).first() {
            return Ok(Some(made.name().to_owned()));
        }
        self.create(pod, entry, cx).await.map(Some)
    }

    /// Whether the claim that a pod names is there and was made for it. What the cache does not
    /// show the server is asked for, before a second one is made.
    async fn exists_for(&self, pod: &Doc, name: &str, cx: &Context) -> Result<bool> {
        let namespace = pod.meta().namespace();
        if let Some(claim) = self.claims.get(&Key::new(namespace, name)) {
            return Ok(is_for_pod(pod, claim.doc()));
        }
        match cx.api(&claim_kind(), namespace).get(name).await {
            Ok(claim) => Ok(is_for_pod(pod, &claim)),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn create(&self, pod: &Doc, entry: &Doc, cx: &Context) -> Result<String> {
        let template = self.template_of(pod, entry)?;
        let (claim, name) = (
            self.claim_from(&template, pod, entry),
            entry.str_at("/name"),
        );
        let api = cx.api(&claim_kind(), pod.meta().namespace());
        let options = WriteOptions::manager(NAME);
        let is_admin = asks_for_admin_access(template.at("/spec/spec"));
        let created = api.create(&claim, &options).await;
        self.options.metrics.created(created.is_ok(), is_admin);
        let error = match created {
            Ok(created) => return Ok(created.meta().name().to_owned()),
            Err(error) => error,
        };
        if !error.is_already_exists() {
            return Err(Error::from(error).context("create ResourceClaim "));
        }
        let found = api.get(claim.meta().name()).await?;
        match must_be_for_pod(pod, &found) {
            Ok(()) if found.meta().annotation(POD_CLAIM_NAME) == Some(name) => {
                Ok(found.meta().name().to_owned())
            }
            Err(error) if self.options.naming == Naming::Deterministic => Err(error.into()),
            // Somebody else has that name: the server finds one that is free.
            _ => {
                let claim = claim.without("/metadata/name")?;
                let created = api.create(&claim, &options).await;
                self.options.metrics.created(created.is_ok(), is_admin);
                let created =
                    created.map_err(|error| Error::from(error).context("create ResourceClaim "))?;
                Ok(created.meta().name().to_owned())
            }
        }
    }

    /// The template of an entry, if it may be used.
    fn template_of(&self, pod: &Doc, entry: &Doc) -> Result<Doc> {
        let name = entry.str_at("/resourceClaimTemplateName");
        let template = self.templates.get(&Key::new(pod.meta().namespace(), name));
        let Some(template) = template else {
            return Err(Error::msg(format!(
                "resource claim template {name:?}: \
                 resourceclaimtemplate.resource.k8s.io {name:?} not found"
            )));
        };
        let spec = template.doc().at("/spec/spec");
        if !self.options.is_admin_access_enabled && asks_for_admin_access(spec) {
            return Err(Error::msg(
                "admin access is requested, but the feature is disabled",
            ));
        }
        let mut requests = spec.at("/devices/requests").items().iter();
        if !self.options.is_prioritized_list_enabled
            && requests.any(|request| !request.at("/firstAvailable").items().is_empty())
        {
            return Err(Error::msg(
                "template includes a prioritized list of subrequests, but the feature is disabled",
            ));
        }
        Ok(template.doc().clone())
    }

    /// The claim for an entry of a pod, as its template describes it.
    fn claim_from(&self, template: &Doc, pod: &Doc, entry: &Doc) -> Doc {
        let (meta, name) = (pod.meta(), entry.str_at("/name"));
        let is_generated = self.options.naming == Naming::Generated;
        let mut owner = vec![
            ("apiVersion", Doc::from("v1")),
            ("kind", Doc::from("Pod")),
            ("name", Doc::from(meta.name())),
            ("uid", Doc::from(meta.uid_str())),
            ("controller", Doc::from(true)),
        ];
        if !is_generated {
            owner.push(("blockOwnerDeletion", Doc::from(true)));
        }
        let annotations = template.at("/spec/metadata/annotations").as_object();
        let annotations = annotations.cloned().unwrap_or_else(Object::empty);
        let mut metadata = vec![
            ("namespace", Doc::from(meta.namespace())),
            ("ownerReferences", Doc::from(vec![object(owner)])),
            (
                "annotations",
                annotations.with(POD_CLAIM_NAME, Doc::from(name)).into(),
            ),
        ];
        if is_generated {
            metadata.push(("name", naming::generated(pod, name).into()));
            metadata.push(("generateName", naming::prefix(meta.name(), name).into()));
        } else {
            metadata.push(("name", naming::deterministic(pod, name).into()));
        }
        let labels = template.at("/spec/metadata/labels");
        if !labels.is_null() {
            metadata.push(("labels", labels.clone()));
        }
        doc!({
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": (object(metadata)),
            "spec": (template.at("/spec/spec"))
        })
    }
}

fn object(fields: Vec<(&'static str, Doc)>) -> Doc {
    let fields = fields.into_iter().map(|(key, value)| (key.into(), value));
    Object::new(fields.collect()).into()
}
