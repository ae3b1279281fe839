//! Objects of a cluster, for tests: what does not work ends the test.

use windlass_cache::Obj;
use windlass_client::{
    DeleteOptions, DynamicApi, ListOptions, Patch, Propagation, Typed, WriteOptions,
};
use windlass_core::{Doc, GroupVersion, Gvr, Key, condition};

use super::Cluster;

const DEFINITIONS: Gvr = Gvr::constant("apiextensions.k8s.io", "v1", "customresourcedefinitions");

/// The field manager of what tests write.
const MANAGER: &str = "test";

impl Cluster {
    /// Creates an object of a typed kind.
    ///
    /// # Panics
    /// When the server refuses it.
    pub async fn create<K: Typed>(&self, object: K) -> Obj<K> {
        let object = Doc::encode(&object).expect("a typed object is a document");
        named(self.create_doc(&with_type::<K>(&object)).await)
    }

    /// Creates an object of any kind.
    ///
    /// # Panics
    /// When the server refuses it, or does not know its kind.
    pub async fn create_doc(&self, object: &Doc) -> Doc {
        let api = self.api_of(object).await;
        let created = api.create(object, &WriteOptions::manager(MANAGER)).await;
        created.unwrap_or_else(|error| panic!("{} is not created: {error}", title(object)))
    }

    /// Makes an object as it is here, whether or not it exists, by server-side apply.
    ///
    /// # Panics
    /// When the server refuses it, or does not know its kind.
    pub async fn apply_doc(&self, object: &Doc) -> Doc {
        let api = self.api_of(object).await;
        let options = WriteOptions {
            is_forced: true,
            ..WriteOptions::manager(MANAGER)
        };
        let patch = Patch::Apply(object.clone());
        let applied = api.patch(object.meta().name(), &patch, &options).await;
        applied.unwrap_or_else(|error| panic!("{} is not applied: {error}", title(object)))
    }

    /// Creates all objects of a text of YAML documents.
    ///
    /// # Panics
    /// When the text cannot be read, or the server refuses an object.
    pub async fn create_yaml(&self, text: &str) -> Vec<Doc> {
        let mut created = Vec::new();
        for object in Doc::parse_yaml(text).expect("the text is YAML") {
            created.push(self.create_doc(&object).await);
        }
        created
    }

    /// Makes the CustomResourceDefinitions of a text as they are there, and waits until their kinds
    /// are served. On an existing cluster they may be there from before.
    ///
    /// # Panics
    /// When the server refuses one, or does not come to serve it.
    pub async fn define(&self, text: &str) {
        for definition in Doc::parse_yaml(text).expect("the text is YAML") {
            self.apply_doc(&definition).await;
            self.until(async |cluster| cluster.is_served(&definition).await)
                .await;
        }
    }

    /// Whether the objects of a definition can be listed.
    async fn is_served(&self, definition: &Doc) -> bool {
        let name = definition.meta().name();
        let Some(now) = self.find(&DEFINITIONS, name).await else {
            return false;
        };
        if !condition(&now, "Established").is_some_and(|established| established.is_true()) {
            return false;
        }
        let (group, plural) = (now.str_at("/spec/group"), now.str_at("/spec/names/plural"));
        for version in now.at("/spec/versions").items() {
            if version.at("/served").as_bool() != Some(true) {
                continue;
            }
            let version: GroupVersion = format!("{group}/{}", version.str_at("/name"))
                .parse()
                .expect("the server has accepted group and version");
            let resource = version.with_resource(plural.to_owned());
            let list = self.api(&resource, "");
            if list.list(&ListOptions::default()).await.is_err() {
                return false;
            }
        }
        true
    }

    /// An object of a typed kind, by `namespace/name`, or by name where there are no namespaces.
    ///
    /// # Panics
    /// When the key makes no sense, or the server fails.
    pub async fn get<K: Typed>(&self, key: &str) -> Option<Obj<K>> {
        self.find(&K::gvr(), key).await.map(named)
    }

    /// An object of any resource, by `namespace/name`, or by name where there are no namespaces.
    ///
    /// # Panics
    /// When the key makes no sense, or the server fails.
    pub async fn find(&self, resource: &Gvr, key: &str) -> Option<Doc> {
        let key = parsed(key);
        self.note(resource, &key);
        match self
            .api(resource, key.namespace().unwrap_or_default())
            .get(key.name())
            .await
        {
            Ok(object) => Some(object),
            Err(error) if error.is_not_found() => None,
            Err(error) => panic!("{resource} {key} cannot be read: {error}"),
        }
    }

    /// All objects of a typed kind in a namespace; in all if it is empty.
    ///
    /// # Panics
    /// When the server fails.
    pub async fn list<K: Typed>(&self, namespace: &str) -> Vec<Obj<K>> {
        let objects = self.list_docs(&K::gvr(), namespace, "").await;
        objects.into_iter().map(named).collect()
    }

    /// All objects of a resource in a namespace that match a label selector, either of which may be
    /// empty for all.
    ///
    /// # Panics
    /// When the server fails.
    pub async fn list_docs(&self, resource: &Gvr, namespace: &str, labels: &str) -> Vec<Doc> {
        let options = ListOptions {
            label_selector: labels.to_owned(),
            ..ListOptions::default()
        };
        let list = self.api(resource, namespace).list_all(&options).await;
        let list = list.unwrap_or_else(|error| panic!("{resource} cannot be listed: {error}"));
        for object in &list.items {
            self.note(resource, &object.meta().key());
        }
        list.items
    }

    /// Changes an object by a merge patch.
    ///
    /// # Panics
    /// When the server refuses it.
    pub async fn patch(&self, object: &Doc, patch: Doc) -> Doc {
        let api = self.api_of(object).await;
        let options = WriteOptions::manager(MANAGER);
        let patched = api
            .patch(object.meta().name(), &Patch::Merge(patch), &options)
            .await;
        patched.unwrap_or_else(|error| panic!("{} is not patched: {error}", title(object)))
    }

    /// Changes the status of an object by a merge patch of the status.
    ///
    /// # Panics
    /// When the server refuses it.
    pub async fn patch_status(&self, object: &Doc, status: Doc) -> Doc {
        let api = self.api_of(object).await;
        let options = WriteOptions::manager(MANAGER);
        let patch = Patch::Merge(windlass_core::doc!({ "status": status }));
        let patched = api
            .patch_status(object.meta().name(), &patch, &options)
            .await;
        patched.unwrap_or_else(|error| panic!("the status of {}: {error}", title(object)))
    }

    /// Deletes an object, this one and no other of its name.
    ///
    /// # Panics
    /// When the server refuses it.
    pub async fn delete(&self, object: &Doc, propagation: Propagation) {
        let options = DeleteOptions {
            uid: Some(object.meta().uid_str().to_owned()),
            propagation: Some(propagation),
            ..DeleteOptions::default()
        };
        let api = self.api_of(object).await;
        if let Err(error) = api.delete(object.meta().name(), &options).await {
            panic!("{} is not deleted: {error}", title(object));
        }
    }

    /// The verbs of a resource in a namespace; in all if it is empty.
    #[must_use]
    pub fn api(&self, resource: &Gvr, namespace: &str) -> DynamicApi {
        let api = self.resource(resource.clone());
        match namespace {
            "" => api.all(),
            namespace => api.namespaced(namespace),
        }
    }

    /// The verbs of the kind of an object, where the object lives.
    ///
    /// # Panics
    /// When the server does not know the kind.
    pub async fn api_of(&self, object: &Doc) -> DynamicApi {
        let kind = object.gvk().expect("an object names its kind");
        let found = match self.0.discovery.resource_of(&kind).await {
            // The kind may have come since the last look.
            Err(_) => {
                let refreshed = self.0.discovery.refresh().await;
                refreshed.unwrap_or_else(|error| panic!("discovery fails: {error}"));
                self.0.discovery.resource_of(&kind).await
            }
            found => found,
        };
        let found = found.unwrap_or_else(|error| panic!("{kind}: {error}"));
        let namespace = match (found.is_namespaced, object.meta().namespace()) {
            (false, _) => "",
            (true, "") => "default",
            (true, namespace) => namespace,
        };
        self.api(&found.gvr, namespace)
    }
}

/// The object with the names of its kind, which kinds derived for custom resources carry already
/// and those of k8s-openapi write themselves.
fn with_type<K: Typed>(object: &Doc) -> Doc {
    let group_version = K::gvr().group_version().to_string();
    object
        .with("/apiVersion", Doc::from(group_version.as_str()))
        .and_then(|object| object.with("/kind", Doc::from(&*K::kind(&()))))
        .expect("a typed object is a JSON object")
}

fn named<K>(object: Doc) -> Obj<K> {
    Obj::new(object).expect("the server names its objects")
}

fn parsed(key: &str) -> Key {
    key.parse()
        .unwrap_or_else(|error| panic!("{key:?} is neither namespace/name nor a name: {error}"))
}

fn title(object: &Doc) -> String {
    format!("{} {}", object.str_at("/kind"), object.meta().key())
}
