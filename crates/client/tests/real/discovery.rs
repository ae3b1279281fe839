//! Discovery on a real server.

use windlass_client::{Config, Payload};
use windlass_client::{DiscoveryClient, DiscoveryError, RestClient, Transport};
use windlass_core::{Gvk, Gvr};

use crate::setup::server;

#[tokio::test]
async fn names_resolve_as_kubectl_resolves_them() {
    let Some((_, client)) = server().await else {
        return;
    };
    let discovery = DiscoveryClient::new(client.rest().clone());
    for (name, group, version, resource) in [
        ("deploy", "apps", "v1", "deployments"),
        ("deployment", "apps", "v1", "deployments"),
        ("Deployment", "apps", "v1", "deployments"),
        ("deployments.apps", "apps", "v1", "deployments"),
        ("deployments.v1.apps", "apps", "v1", "deployments"),
        ("po", "", "v1", "pods"),
        ("pods.v1.", "", "v1", "pods"),
        ("events", "", "v1", "events"),
        ("events.events.k8s.io", "events.k8s.io", "v1", "events"),
        ("hpa", "autoscaling", "v2", "horizontalpodautoscalers"),
        (
            "crd",
            "apiextensions.k8s.io",
            "v1",
            "customresourcedefinitions",
        ),
    ] {
        let found = discovery.resolve(name).await.unwrap();
        let place = (found.gvr.group(), found.gvr.version(), found.gvr.resource());
        assert_eq!(place, (group, version, resource), "{name}");
    }
    let unknown = discovery.resolve("gizmos").await.unwrap_err();
    assert!(matches!(&unknown, DiscoveryError::Unknown { name } if name == "gizmos"));
    assert_eq!(
        unknown.to_string(),
        "the server doesn't have a resource type \"gizmos\""
    );
}

#[tokio::test]
async fn kinds_and_resources_lead_to_each_other() {
    let Some((_, client)) = server().await else {
        return;
    };
    let discovery = DiscoveryClient::new(client.rest().clone());
    let kind = Gvk::constant("resource.k8s.io", "v1", "ResourceClaim");
    let claims = discovery.resource_of(&kind).await.unwrap();
    assert_eq!(
        claims.gvr,
        Gvr::constant("resource.k8s.io", "v1", "resourceclaims")
    );
    assert!(claims.is_namespaced);
    assert_eq!(discovery.kind_of(&claims.gvr).await.unwrap(), kind);
    let known = discovery.discovery().await.unwrap();
    let pods = known.resource(&Gvr::constant("", "v1", "pods")).unwrap();
    for part in ["status", "binding", "eviction"] {
        assert!(pods.subresources.iter().any(|it| it == part), "{part}");
    }
    assert!(pods.verbs.iter().any(|verb| verb == "watch"));
    assert!(
        known
            .category("all")
            .iter()
            .any(|it| it.gvr.resource() == "deployments")
    );
    assert_eq!(known.groups[0].name, "");
    let version = discovery.server_version().await.unwrap();
    assert!(version.str_at("/gitVersion").starts_with("v1."));
}

/// Hides the aggregated form from the server.
#[derive(Clone)]
struct Legacy(Transport);

impl tower::Service<http::Request<Payload>> for Legacy {
    type Response = <Transport as tower::Service<http::Request<Payload>>>::Response;
    type Error = <Transport as tower::Service<http::Request<Payload>>>::Error;
    type Future = <Transport as tower::Service<http::Request<Payload>>>::Future;

    fn poll_ready(
        &mut self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<Payload>) -> Self::Future {
        let accept = http::HeaderValue::from_static("application/json");
        request.headers_mut().insert(http::header::ACCEPT, accept);
        self.0.call(request)
    }
}

#[tokio::test]
async fn the_old_form_tells_the_same() {
    let Some((server, client)) = server().await else {
        return;
    };
    let config = Config::from_file(server.kubeconfig()).await.unwrap();
    let transport = Transport::new(Legacy(config.transport().await.unwrap()));
    let legacy = DiscoveryClient::new(RestClient::new(transport, config.rest_options()));
    let aggregated = DiscoveryClient::new(client.rest().clone());
    let (old, new) = (
        legacy.discovery().await.unwrap(),
        aggregated.discovery().await.unwrap(),
    );
    assert!(old.failed.is_empty() && new.failed.is_empty());
    let builtin = |name: &str| !name.ends_with("windlass.dev");
    let groups = |all: &windlass_client::Discovery| -> Vec<_> {
        all.groups
            .iter()
            .filter(|group| builtin(&group.name))
            .cloned()
            .collect()
    };
    assert_eq!(groups(&old), groups(&new));
    for resource in new.resources.iter().filter(|it| builtin(it.gvr.group())) {
        let mut same = old.resource(&resource.gvr).unwrap().clone();
        let mut resource = resource.clone();
        for it in [&mut same, &mut resource] {
            it.subresources.sort();
            it.verbs.sort();
        }
        assert_eq!(same, resource);
    }
}
