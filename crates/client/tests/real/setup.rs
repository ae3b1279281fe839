//! A client of the shared server, and a namespace for each test.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_client::{Clientset, Config, RestClient, WriteOptions};
use windlass_envtest::{ControlPlane, real_server};

/// The shared server and a client of it as the administrator.
pub(crate) async fn server() -> Option<(&'static ControlPlane, Clientset)> {
    let server = real_server()?;
    let config = Config::from_file(server.kubeconfig()).await.unwrap();
    Some((
        server,
        Clientset::new(RestClient::connect(&config).await.unwrap()),
    ))
}

/// Makes a namespace of this name.
pub(crate) async fn namespace(client: &Clientset, name: &str) {
    let namespace = Namespace {
        metadata: named(name),
        ..Namespace::default()
    };
    client
        .api::<Namespace>()
        .create(&namespace, &WriteOptions::default())
        .await
        .unwrap();
}

pub(crate) fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

pub(crate) fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: named(name),
        data: Some([("key".to_owned(), value.to_owned())].into()),
        ..ConfigMap::default()
    }
}
