//! The objects that a namespace is filled with.

use windlass_core::{Doc, doc};

/// Where the definitions of custom resources are.
pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Where the custom resources of all namespaces are.
pub(super) const CUSTOM_RESOURCES: &str = "/apis/soak.windlass.dev/v1/widgets";

/// Objects of each of the plain kinds.
const EACH: usize = 3;

/// The definition of the custom resources.
pub(super) fn definition() -> Doc {
    doc!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.soak.windlass.dev" },
        "spec": {
            "group": "soak.windlass.dev", "scope": "Namespaced",
            "names": {
                "kind": "Widget", "listKind": "WidgetList",
                "plural": "widgets", "singular": "widget"
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "spec": {
                        "type": "object",
                        "properties": { "size": { "type": "integer", "minimum": 0 } }
                    } }
                } }
            }]
        }
    })
}

/// The namespace itself and what is in it, with the paths that they are created at, in order.
pub(super) fn of_namespace(namespace: &str, pods: usize) -> Vec<(String, Doc)> {
    let core = format!("/api/v1/namespaces/{namespace}");
    let mut objects = vec![(
        "/api/v1/namespaces".to_owned(),
        doc!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }),
    )];
    for index in 0..EACH {
        objects.push((format!("{core}/configmaps"), config_map(index)));
        objects.push((format!("{core}/secrets"), secret(index)));
        objects.push((format!("{core}/services"), service(index)));
        objects.push((format!("{core}/events"), event(namespace, index)));
        let widgets = format!("/apis/soak.windlass.dev/v1/namespaces/{namespace}/widgets");
        objects.push((widgets, widget(index)));
    }
    let deployments = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    objects.push((deployments, deployment(pods)));
    objects
}

fn config_map(index: usize) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": (format!("settings-{index}")) },
        "data": { "text": ("x".repeat(1024)) }
    })
}

fn secret(index: usize) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": (format!("password-{index}")) },
        "data": { "password": "c29hayBzb2FrIHNvYWs=" }
    })
}

fn service(index: usize) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": (format!("web-{index}")) },
        "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80 }] }
    })
}

fn event(namespace: &str, index: usize) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": { "name": (format!("soak.{index}")), "namespace": namespace },
        "involvedObject": { "kind": "Namespace", "name": namespace, "namespace": namespace },
        "reason": "Soaked", "message": "something happened", "type": "Normal", "count": 1
    })
}

fn widget(index: usize) -> Doc {
    doc!({
        "apiVersion": "soak.windlass.dev/v1", "kind": "Widget",
        "metadata": { "name": (format!("widget-{index}")) },
        "spec": { "size": index }
    })
}

fn deployment(pods: usize) -> Doc {
    doc!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web" },
        "spec": {
            "replicas": pods,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": {
                    // The namespace controller waits for half of it before it looks again.
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{ "name": "web", "image": "nginx" }]
                }
            }
        }
    })
}
