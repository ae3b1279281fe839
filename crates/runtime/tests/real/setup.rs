//! Clients and namespaces of the real server.

use std::time::Duration;

use windlass_client::{
    Config, DynamicApi, DynamicClient, RestClient, RestOptions, Transport, WriteOptions,
};
use windlass_core::{GroupVersion, doc};
use windlass_envtest::ControlPlane;

/// A namespace of the real server, and the way to it.
pub(crate) struct Place {
    pub(crate) transport: Transport,
    pub(crate) client: RestClient,
    pub(crate) namespace: String,
}

pub(crate) async fn place(server: &ControlPlane, namespace: &str) -> Place {
    let config = Config::from_file(server.kubeconfig()).await.unwrap();
    let transport = config.transport().await.unwrap();
    let client = RestClient::new(transport.clone(), RestOptions::default());
    let object = doc!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace }
    });
    let namespaces = DynamicClient::new(client.clone())
        .resource(GroupVersion::constant("", "v1").with_resource("namespaces"));
    namespaces
        .create(&object, &WriteOptions::default())
        .await
        .unwrap();
    Place {
        transport,
        client,
        namespace: namespace.to_owned(),
    }
}

pub(crate) fn resource(client: &RestClient, resource: &str, namespace: &str) -> DynamicApi {
    let gvr = GroupVersion::constant("", "v1").with_resource(resource.to_owned());
    DynamicClient::new(client.clone())
        .resource(gvr)
        .namespaced(namespace)
}

pub(crate) async fn names(api: &DynamicApi) -> Vec<String> {
    let list = api.list(&Default::default()).await.unwrap();
    list.items
        .iter()
        .map(|it| it.meta().name().to_owned())
        .collect()
}

pub(crate) async fn count(api: &DynamicApi) -> usize {
    names(api).await.len()
}

/// Waits until something is so; half a minute is enough for anything here.
pub(crate) async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(30), wait).await;
    assert!(ended.is_ok(), "{what} did not come");
}
