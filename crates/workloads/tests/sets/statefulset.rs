//! StatefulSets.

mod claims;
mod order;
mod ownership;
mod updates;

use windlass_core::{Doc, doc, merge_patch};

use crate::world::{NAMESPACE, STATEFUL_SETS, World, template};

/// A StatefulSet `web` with these fields in its spec, whose pods are on a node.
fn set(spec: Doc) -> Doc {
    let base = doc!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": { "name": "web", "namespace": NAMESPACE },
        "spec": {
            "serviceName": "svc", "selector": { "matchLabels": { "app": "web" } },
            "template": (template("web", doc!({ "nodeName": "n1" })))
        }
    });
    merge_patch(&base, &doc!({ "spec": spec }))
}

/// The spec of a set with one claim for each pod.
fn with_claims(spec: &Doc) -> Doc {
    let claim = doc!({
        "metadata": { "name": "data" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } }
        }
    });
    merge_patch(&doc!({ "volumeClaimTemplates": [claim] }), spec)
}

impl World {
    /// Creates a set, and makes all its pods ready if it is to run.
    async fn running(&self, spec: Doc) -> Doc {
        let created = self.create(set(spec)).await;
        self.settle().await;
        self.serve_all().await;
        created
    }

    async fn web(&self) -> Doc {
        self.get(&STATEFUL_SETS, "web").await
    }

    async fn change_web(&self, spec: Doc) {
        let patch = doc!({ "spec": spec });
        self.patch(&STATEFUL_SETS, "web", patch).await;
        self.settle().await;
    }

    /// Gives the set another image.
    async fn roll_web(&self, image: &str) {
        let patch = crate::world::of_image(image);
        self.patch(&STATEFUL_SETS, "web", patch).await;
        self.settle().await;
    }

    /// The images of the pods, by name.
    async fn images(&self) -> String {
        let pods = self.live().await;
        let images: Vec<&str> = pods.iter().map(crate::world::image).collect();
        images.join("")
    }
}
