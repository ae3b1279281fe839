//! Scripts of a Service `web` without a selector and Endpoints that somebody writes.

use windlass_core::{Doc, doc, merge_patch};

use crate::scene::{ENDPOINTS, SERVICES, SLICES, Scene, scripts};

impl Scene {
    async fn service(&self) {
        let service = doc!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
            "spec": { "ports": [{ "port": 80 }] }
        });
        self.create(service).await;
    }

    /// Endpoints with these subsets and metadata.
    async fn endpoints(&self, metadata: Doc, subsets: Doc) {
        let base = doc!({
            "apiVersion": "v1", "kind": "Endpoints", "metadata": { "name": "web" },
            "subsets": subsets
        });
        self.create(merge_patch(&base, &doc!({ "metadata": metadata })))
            .await;
    }

    /// Waits until there are slices with so many endpoints each.
    async fn slices(&self, sizes: &[usize]) {
        self.until(async || {
            let slices = self.list(&SLICES).await;
            let found = slices.iter().map(|it| it.at("/endpoints").items().len());
            let mut found: Vec<usize> = found.collect();
            found.sort_unstable();
            found == sizes
        })
        .await;
    }

    async fn mirrored(&self) {
        self.service().await;
        self.endpoints(doc!({}), doc!([(subset(&["10.0.0.1"], 80))]))
            .await;
        self.slices(&[1]).await;
    }
}

fn subset(ips: &[&str], port: i64) -> Doc {
    let addresses: Vec<Doc> = ips.iter().map(|ip| doc!({ "ip": (*ip) })).collect();
    doc!({ "addresses": addresses, "ports": [{ "port": port }] })
}

scripts! {
    mirrors |scene| {
        scene.mirrored().await;
    }
    follows_addresses |scene| {
        scene.mirrored().await;
        let subsets = doc!([(subset(&["10.0.0.1", "10.0.0.2"], 80))]);
        scene.patch(&ENDPOINTS, "web", doc!({ "subsets": subsets })).await;
        scene.slices(&[2]).await;
    }
    follows_ports |scene| {
        scene.mirrored().await;
        let subsets = doc!([(subset(&["10.0.0.1"], 90))]);
        scene.patch(&ENDPOINTS, "web", doc!({ "subsets": subsets })).await;
        scene.until(async || {
            let slices = scene.list(&SLICES).await;
            slices.len() == 1 && *slices[0].at("/ports/0/port") == 90
        }).await;
    }
    tells_ready_from_not_ready |scene| {
        scene.service().await;
        let target = doc!({ "kind": "Pod", "namespace": "x", "name": "p", "uid": "u" });
        let ready = doc!({
            "ip": "10.0.0.1", "hostname": "h", "nodeName": "n", "targetRef": target
        });
        let ports = doc!([
            { "name": "a", "port": 80, "appProtocol": "http" },
            { "name": "b", "port": 53, "protocol": "UDP" }
        ]);
        let subset = doc!({
            "addresses": [ready], "notReadyAddresses": [{ "ip": "10.0.0.2" }], "ports": ports
        });
        scene.endpoints(doc!({}), doc!([subset])).await;
        scene.slices(&[2]).await;
    }
    has_a_slice_for_each_family |scene| {
        scene.service().await;
        let subsets = doc!([(subset(&["10.0.0.1", "10.0.0.2", "2001:db8::1"], 80))]);
        scene.endpoints(doc!({}), subsets).await;
        scene.slices(&[1, 2]).await;
    }
    has_a_slice_for_each_set_of_ports |scene| {
        scene.service().await;
        let subsets = doc!([(subset(&["10.0.0.1", "10.0.0.2"], 80)), (subset(&["10.0.0.3"], 90))]);
        scene.endpoints(doc!({}), subsets).await;
        scene.slices(&[1, 2]).await;
    }
    copies_labels_and_annotations |scene| {
        scene.service().await;
        let metadata = doc!({
            "labels": { "team": "x" },
            "annotations": {
                "note": "y", "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z"
            }
        });
        scene.endpoints(metadata, doc!([(subset(&["10.0.0.1"], 80))])).await;
        scene.slices(&[1]).await;
        let patch = doc!({ "metadata": { "labels": { "team": "z" } } });
        scene.patch(&ENDPOINTS, "web", patch).await;
        scene.until(async || {
            let slices = scene.list(&SLICES).await;
            slices[0].meta().label("team") == Some("z")
        }).await;
    }
    skips_those_that_say_so |scene| {
        scene.mirrored().await;
        let skip = doc!({ "labels": { "endpointslice.kubernetes.io/skip-mirror": "true" } });
        scene.patch(&ENDPOINTS, "web", doc!({ "metadata": skip })).await;
        scene.slices(&[]).await;
    }
    skips_locks |scene| {
        scene.service().await;
        let lock = doc!({ "annotations": { "control-plane.alpha.kubernetes.io/leader": "{}" } });
        scene.endpoints(lock, doc!([(subset(&["10.0.0.1"], 80))])).await;
    }
    yields_to_a_selector |scene| {
        scene.mirrored().await;
        scene.patch(&SERVICES, "web", doc!({ "spec": { "selector": { "a": "b" } } })).await;
        scene.slices(&[]).await;
    }
    goes_with_the_service |scene| {
        scene.mirrored().await;
        scene.delete(&SERVICES, "web").await;
        scene.slices(&[]).await;
    }
    goes_with_the_endpoints |scene| {
        scene.mirrored().await;
        scene.delete(&ENDPOINTS, "web").await;
        scene.slices(&[]).await;
    }
    puts_back_what_others_change |scene| {
        scene.mirrored().await;
        let slices = scene.list(&SLICES).await;
        let name = slices[0].meta().name().to_owned();
        scene.patch(&SLICES, &name, doc!({ "endpoints": [{ "addresses": ["10.9.9.9"] }] })).await;
        scene.until(async || {
            let slice = scene.get(&SLICES, &name).await;
            slice.str_at("/endpoints/0/addresses/0") == "10.0.0.1"
        }).await;
        scene.delete(&SLICES, &name).await;
        scene.slices(&[1]).await;
    }
}
