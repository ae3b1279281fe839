//! The choice of a provisioner for a claim that no volume fits.

use windlass_cache::Obj;
use windlass_core::{Doc, Key};
use windlass_runtime::{Context, EventType, Result};

use super::{
    Engine,
    bind::with_annotation,
    facts::{BETA_PROVISIONER, PROVISIONER, class_of, has_class},
};

/// The prefix of provisioners that used to be part of Kubernetes. None of them is here.
const IN_TREE: &str = "kubernetes.io/";

const DEFAULT_CLASS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

impl Engine {
    /// Gives a claim that says nothing about its class the default one. Returns true if it did.
    pub(super) async fn assign_default_class(&self, cx: &Context, claim: &Doc) -> Result<bool> {
        if has_class(claim) {
            return Ok(false);
        }
        let Some(class) = self.default_class() else {
            return Ok(false);
        };
        let changed = claim.with("/spec/storageClassName", class.name())?;
        self.put_claim(cx, &changed).await?;
        Ok(true)
    }

    /// The newest default class, and by name among those of the same second.
    fn default_class(&self) -> Option<Obj> {
        let classes = self.classes.lister().snapshot();
        let is_default = |class: &Obj| {
            let annotation = |key: &&str| class.meta().annotation(key) == Some("true");
            DEFAULT_CLASS.iter().any(annotation)
        };
        let mut defaults: Vec<Obj> = classes.iter().filter(is_default).collect();
        defaults.sort_by(|a, b| {
            let created = |it: &Obj| it.meta().creation_timestamp();
            created(b).cmp(&created(a)).then(a.name().cmp(b.name()))
        });
        defaults.into_iter().next()
    }

    /// Notes in a claim who is to make its volume, and says so.
    pub(super) async fn provision(&self, cx: &Context, claim: &Doc) -> Result<()> {
        let recorder = cx.recorder();
        let name = class_of(claim);
        let fail = |text: &str| {
            recorder.event(claim, EventType::Warning, "ProvisioningFailed", text);
        };
        let Some(class) = self.classes.lister().get(&Key::cluster(name)) else {
            fail(&format!("storageclass.storage.k8s.io {name:?} not found"));
            return Ok(());
        };
        let provisioner = class.doc().str_at("/provisioner");
        if provisioner.starts_with(IN_TREE) {
            fail(&format!("no volume plugin matched name: {provisioner}"));
            return Ok(());
        }
        let is_noted = claim.meta().annotation(PROVISIONER) == Some(provisioner);
        let claim = match is_noted {
            true => claim.clone(),
            false => {
                let changed = with_annotation(claim, BETA_PROVISIONER, provisioner)?;
                let changed = with_annotation(&changed, PROVISIONER, provisioner)?;
                self.put_claim(cx, &changed).await?
            }
        };
        let text = format!(
            "Waiting for a volume to be created either by the external provisioner \
             '{provisioner}' or manually by the system administrator. If volume creation is \
             delayed, please verify that the provisioner is running and correctly registered."
        );
        recorder.event(&claim, EventType::Normal, "ExternalProvisioning", &text);
        Ok(())
    }
}
