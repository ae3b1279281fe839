//! What holds for every kind: each case takes one kind through its whole life.

use http::Method;
use windlass_contract::objects::{
    config_map, daemon_set, deployment, event, job, lease, node, pod, pod_spec, replica_set, role,
    role_binding, secret, service, stateful_set, template,
};
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

use crate::protobuf::{PROTOBUF, is_written_as_here};
use Trait::{Generation, GenerationOfLabels, MadeByUpdate, NeedsRevision, ReturnedByDelete};

cases![
    config_maps,
    controller_revisions,
    cron_jobs,
    daemon_sets,
    deployments,
    endpoints,
    endpoint_slices,
    events,
    horizontal_pod_autoscalers,
    ingresses,
    jobs,
    leases,
    limit_ranges,
    network_policies,
    persistent_volume_claims,
    pod_disruption_budgets,
    pods,
    pod_templates,
    replica_sets,
    replication_controllers,
    resource_claims,
    resource_claim_templates,
    resource_quotas,
    role_bindings,
    roles,
    secrets,
    service_accounts,
    services,
    stateful_sets,
    cluster_roles,
    device_classes,
    nodes,
    persistent_volumes,
    priority_classes,
    resource_slices,
    storage_classes,
];

/// In what kinds differ.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trait {
    /// Has a generation.
    Generation,
    /// Has a generation that grows with its labels too.
    GenerationOfLabels,
    /// Is created by an update if it is not there.
    MadeByUpdate,
    /// Cannot be updated without a revision.
    NeedsRevision,
    /// Is returned by its deletion, in place of a `Status`.
    ReturnedByDelete,
}

/// One kind under test.
struct Kind<'a> {
    t: &'a Scope,
    resource: &'static str,
    object: Doc,
    path: String,
    traits: &'static [Trait],
}

async fn live(t: &Scope, resource: &'static str, object: Doc, traits: &'static [Trait]) {
    let path = format!("{resource}/{}", object.str_at("/metadata/name"));
    let kind = Kind {
        t,
        resource,
        object,
        path,
        traits,
    };
    kind.refuses_malformed_bodies().await;
    kind.is_not_made_by_a_dry_run().await;
    kind.is_made_by_an_update_or_not().await;
    let made = kind.is_read_as_it_was_made().await;
    kind.is_listed_and_watched(&made).await;
    kind.is_sent_in_protobuf(&made).await;
    kind.is_hidden_from_nobody(&made).await;
    kind.keeps_its_revision(&made).await;
    kind.takes_a_label().await;
    kind.is_held_by_a_finalizer().await;
    kind.is_gone_after_its_deletion().await;
}

impl Kind<'_> {
    fn is(&self, which: Trait) -> bool {
        self.traits.contains(&which)
    }

    fn generation(&self, number: i32) -> Doc {
        let has_one = self.is(Generation) || self.is(GenerationOfLabels);
        if has_one { number.into() } else { Doc::NULL }
    }

    async fn refuses_malformed_bodies(&self) {
        for body in [
            "",
            "{",
            "[]",
            "null{",
            "{\"metadata\":{\"name\":1}}",
            "{\"metadata\":[]}",
        ] {
            let request = self.t.request(Method::POST, self.resource);
            let answer = self.t.send(request.body("application/json", body)).await;
            answer.fails(400, "BadRequest");
        }
    }

    async fn is_not_made_by_a_dry_run(&self) {
        let path = format!("{}?dryRun=All", self.resource);
        let shown = self.t.create(&path, &self.object).await.is(201);
        assert!(shown.at("/metadata/resourceVersion").is_null());
        self.t.get(&self.path).await.fails(404, "NotFound");
    }

    async fn is_made_by_an_update_or_not(&self) {
        let answer = self.t.update(&self.path, &self.object).await;
        if self.is(MadeByUpdate) {
            answer.is(201);
            self.remove().await.is(200);
        } else {
            answer.fails(404, "NotFound");
        }
    }

    async fn is_read_as_it_was_made(&self) -> Doc {
        let made = self.t.made(self.resource, &self.object).await;
        assert_eq!(made.at("/metadata/generation"), &self.generation(1));
        assert_eq!(self.t.get(&self.path).await.is(200), made);
        self.t
            .create(self.resource, &self.object)
            .await
            .fails(409, "AlreadyExists");
        made
    }

    async fn is_listed_and_watched(&self, made: &Doc) {
        let name = made.str_at("/metadata/name");
        let query = format!("fieldSelector=metadata.name%3D{name}");
        let list = self
            .t
            .get(&format!("{}?{query}", self.resource))
            .await
            .is(200);
        let kind = format!("{}List", made.str_at("/kind"));
        assert_eq!(list.at("/kind"), kind.as_str());
        assert_eq!(list.at("/apiVersion"), made.at("/apiVersion"));
        let bare = made.cut("/kind").cut("/apiVersion");
        assert_eq!(list.at("/items"), &Doc::from(vec![bare]));
        let mut watch = self.t.watch(self.resource, &query).await;
        assert_eq!(&watch.expect("ADDED", name).await, made);
    }

    async fn is_sent_in_protobuf(&self, made: &Doc) {
        let protobuf = self.t.with_header("accept", PROTOBUF);
        let answer = protobuf.get(&self.path).await;
        assert_eq!(&answer.is_protobuf(200), made);
        is_written_as_here(made, answer.bytes());
        let name = made.str_at("/metadata/name");
        let query = format!("fieldSelector=metadata.name%3D{name}");
        let path = format!("{}?{query}", self.resource);
        let (in_json, in_protobuf) = (self.t.get(&path).await, protobuf.get(&path).await);
        let unstamped = |list: &Doc| list.cut("/metadata/resourceVersion");
        assert_eq!(
            unstamped(&in_protobuf.is_protobuf(200)),
            unstamped(&in_json.is(200))
        );
        let mut watch = protobuf.watch(self.resource, &query).await;
        assert_eq!(&watch.expect("ADDED", name).await, made);
    }

    async fn is_hidden_from_nobody(&self, made: &Doc) {
        let nobody = self.t.as_nobody();
        let (all, one) = (self.resource, self.path.as_str());
        nobody.get(all).await.fails(403, "Forbidden");
        nobody
            .get(&format!("{all}?watch=true"))
            .await
            .fails(403, "Forbidden");
        nobody.create(all, made).await.fails(403, "Forbidden");
        nobody.delete(all).await.fails(403, "Forbidden");
        nobody.get(one).await.fails(403, "Forbidden");
        nobody.update(one, made).await.fails(403, "Forbidden");
        nobody.merge(one, &doc!({})).await.fails(403, "Forbidden");
        nobody.delete(one).await.fails(403, "Forbidden");
        assert_eq!(&self.t.get(one).await.is(200), made);
    }

    async fn keeps_its_revision(&self, made: &Doc) {
        // The first update may change who is known to have set which field.
        let made = &self.t.update(&self.path, made).await.is(200);
        assert_eq!(&self.t.update(&self.path, made).await.is(200), made);
        let bare = made.cut("/metadata/resourceVersion");
        let answer = self.t.update(&self.path, &bare).await;
        if self.is(NeedsRevision) {
            let refusal = answer.fails(422, "Invalid");
            refusal.because("FieldValueInvalid", "metadata.resourceVersion");
        } else {
            assert_eq!(&answer.is(200), made);
        }
    }

    async fn takes_a_label(&self) {
        let patch = doc!({ "metadata": { "labels": { "example.com/role": "web" } } });
        let patched = self.t.merge(&self.path, &patch).await.is(200);
        assert_eq!(patched.at("/metadata/labels/example.com~1role"), "web");
        let generation = if self.is(GenerationOfLabels) { 2 } else { 1 };
        assert_eq!(
            patched.at("/metadata/generation"),
            &self.generation(generation)
        );
    }

    async fn is_held_by_a_finalizer(&self) {
        let hold = doc!({ "metadata": { "finalizers": ["example.com/hold"] } });
        self.t.merge(&self.path, &hold).await.is(200);
        let options = doc!({ "propagationPolicy": "Background" });
        let deleted = self.t.delete_with(&self.path, &options).await.is(200);
        assert!(
            !deleted.at("/metadata/deletionTimestamp").is_null(),
            "{deleted}"
        );
        let release = doc!({ "metadata": { "finalizers": null } });
        self.t.merge(&self.path, &release).await.is(200);
        self.t.get(&self.path).await.fails(404, "NotFound");
    }

    async fn is_gone_after_its_deletion(&self) {
        let made = self.t.made(self.resource, &self.object).await;
        let deleted = self.remove().await.is(200);
        let kind = if self.is(ReturnedByDelete) {
            made.str_at("/kind")
        } else {
            "Status"
        };
        assert_eq!(deleted.at("/kind"), kind);
        self.t.get(&self.path).await.fails(404, "NotFound");
        self.t.delete(&self.path).await.fails(404, "NotFound");
    }

    /// Deletes the object and the finalizers that it was made with.
    async fn remove(&self) -> windlass_contract::Answer {
        let release = doc!({ "metadata": { "finalizers": null } });
        self.t.merge(&self.path, &release).await.is(200);
        let options = doc!({ "propagationPolicy": "Background" });
        self.t.delete_with(&self.path, &options).await
    }
}

fn cron_job() -> Doc {
    let spec = pod_spec().set("/restartPolicy", "Never");
    doc!({
        "metadata": { "name": "a" },
        "spec": {
            "schedule": "0 0 * * *", "jobTemplate": { "spec": { "template": { "spec": spec } } }
        }
    })
}

fn endpoint_slice() -> Doc {
    doc!({ "metadata": { "name": "a" }, "addressType": "IPv4", "endpoints": [], "ports": [] })
}

fn autoscaler() -> Doc {
    doc!({
        "metadata": { "name": "a" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
            "maxReplicas": 3,
            "metrics": [{
                "type": "Resource",
                "resource": {
                    "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 80 }
                }
            }]
        }
    })
}

fn ingress() -> Doc {
    let service = doc!({ "name": "web", "port": { "number": 80 } });
    doc!({ "metadata": { "name": "a" }, "spec": { "defaultBackend": { "service": service } } })
}

fn claim() -> Doc {
    doc!({
        "metadata": { "name": "a" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } }
        }
    })
}

fn budget() -> Doc {
    let selector = doc!({ "matchLabels": { "app": "web" } });
    doc!({ "metadata": { "name": "a" }, "spec": { "minAvailable": 1, "selector": selector } })
}

fn controller() -> Doc {
    doc!({ "metadata": { "name": "a" }, "spec": { "template": (template()) } })
}

fn resource_claim() -> Doc {
    doc!({ "metadata": { "name": "a" }, "spec": (claim_spec()) })
}

fn resource_claim_template() -> Doc {
    doc!({ "metadata": { "name": "a" }, "spec": { "spec": (claim_spec()) } })
}

fn claim_spec() -> Doc {
    doc!({ "devices": { "requests": [
        { "name": "gpu", "exactly": { "deviceClassName": "gpu.example.com" } }
    ] } })
}

fn volume(name: &str) -> Doc {
    doc!({
        "metadata": { "name": name },
        "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
            "hostPath": { "path": "/tmp" }
        }
    })
}

fn resource_slice(name: &str) -> Doc {
    doc!({
        "metadata": { "name": name },
        "spec": {
            "driver": "gpu.example.com", "nodeName": "n",
            "pool": { "name": "n", "generation": 1, "resourceSliceCount": 1 }
        }
    })
}

fn storage_class(name: &str) -> Doc {
    doc!({ "metadata": { "name": name }, "provisioner": "example.com/disk" })
}

async fn config_maps(t: &Scope) {
    let object = config_map("a");
    live(t, "configmaps", object, &[]).await;
}

async fn controller_revisions(t: &Scope) {
    let object = doc!({ "metadata": { "name": "a" }, "revision": 1, "data": { "spec": {} } });
    live(t, "controllerrevisions", object, &[]).await;
}

async fn cron_jobs(t: &Scope) {
    let object = cron_job();
    live(t, "cronjobs", object, &[Generation]).await;
}

async fn daemon_sets(t: &Scope) {
    let object = daemon_set("a");
    live(t, "daemonsets", object, &[Generation]).await;
}

async fn deployments(t: &Scope) {
    let object = deployment("a");
    live(t, "deployments", object, &[Generation]).await;
}

async fn endpoints(t: &Scope) {
    let object = doc!({ "metadata": { "name": "a" } });
    live(t, "endpoints", object, &[MadeByUpdate]).await;
}

async fn endpoint_slices(t: &Scope) {
    let object = endpoint_slice();
    live(t, "endpointslices", object, &[GenerationOfLabels]).await;
}

async fn events(t: &Scope) {
    let object = event("a", t.namespace());
    live(t, "events", object, &[MadeByUpdate]).await;
}

async fn horizontal_pod_autoscalers(t: &Scope) {
    let object = autoscaler();
    live(t, "horizontalpodautoscalers", object, &[]).await;
}

async fn ingresses(t: &Scope) {
    let object = ingress();
    live(t, "ingresses", object, &[Generation]).await;
}

async fn jobs(t: &Scope) {
    let object = job("a");
    live(t, "jobs", object, &[Generation]).await;
}

async fn leases(t: &Scope) {
    let object = lease("a");
    live(t, "leases", object, &[MadeByUpdate, NeedsRevision]).await;
}

async fn limit_ranges(t: &Scope) {
    let object = doc!({ "metadata": { "name": "a" }, "spec": { "limits": [] } });
    live(t, "limitranges", object, &[MadeByUpdate]).await;
}

async fn network_policies(t: &Scope) {
    let object = doc!({ "metadata": { "name": "a" }, "spec": { "podSelector": {} } });
    live(t, "networkpolicies", object, &[Generation]).await;
}

async fn persistent_volume_claims(t: &Scope) {
    let object = claim();
    live(t, "persistentvolumeclaims", object, &[ReturnedByDelete]).await;
}

async fn pod_disruption_budgets(t: &Scope) {
    let object = budget();
    live(
        t,
        "poddisruptionbudgets",
        object,
        &[Generation, NeedsRevision],
    )
    .await;
}

async fn pods(t: &Scope) {
    let object = pod("a");
    live(t, "pods", object, &[Generation, ReturnedByDelete]).await;
}

async fn pod_templates(t: &Scope) {
    let object = doc!({ "metadata": { "name": "a" }, "template": (template()) });
    live(t, "podtemplates", object, &[Generation, ReturnedByDelete]).await;
}

async fn replica_sets(t: &Scope) {
    let object = replica_set("a");
    live(t, "replicasets", object, &[Generation]).await;
}

async fn replication_controllers(t: &Scope) {
    let object = controller();
    live(t, "replicationcontrollers", object, &[Generation]).await;
}

async fn resource_claims(t: &Scope) {
    let object = resource_claim();
    live(t, "resourceclaims", object, &[ReturnedByDelete]).await;
}

async fn resource_claim_templates(t: &Scope) {
    let object = resource_claim_template();
    live(t, "resourceclaimtemplates", object, &[ReturnedByDelete]).await;
}

async fn resource_quotas(t: &Scope) {
    let object = doc!({ "metadata": { "name": "a" }, "spec": {} });
    live(t, "resourcequotas", object, &[ReturnedByDelete]).await;
}

async fn role_bindings(t: &Scope) {
    let object = role_binding("a", "r", "ann");
    live(t, "rolebindings", object, &[MadeByUpdate]).await;
}

async fn roles(t: &Scope) {
    let object = role("a", &["get"], &["pods"]);
    live(t, "roles", object, &[MadeByUpdate]).await;
}

async fn secrets(t: &Scope) {
    let object = secret("a");
    live(t, "secrets", object, &[]).await;
}

async fn service_accounts(t: &Scope) {
    let object = doc!({ "metadata": { "name": "a" } });
    live(t, "serviceaccounts", object, &[ReturnedByDelete]).await;
}

async fn services(t: &Scope) {
    let object = service("a");
    live(t, "services", object, &[MadeByUpdate, ReturnedByDelete]).await;
}

async fn stateful_sets(t: &Scope) {
    let object = stateful_set("a");
    live(t, "statefulsets", object, &[Generation]).await;
}

async fn cluster_roles(t: &Scope) {
    let object = role(&t.unique("a"), &["get"], &["pods"]).set("/kind", "ClusterRole");
    live(t, "clusterroles", object, &[MadeByUpdate]).await;
}

async fn device_classes(t: &Scope) {
    let object = doc!({ "metadata": { "name": (t.unique("a")) }, "spec": {} });
    live(t, "deviceclasses", object, &[Generation, ReturnedByDelete]).await;
}

async fn nodes(t: &Scope) {
    let object = node(&t.unique("a"));
    live(t, "nodes", object, &[]).await;
}

async fn persistent_volumes(t: &Scope) {
    let object = volume(&t.unique("a"));
    live(t, "persistentvolumes", object, &[ReturnedByDelete]).await;
}

async fn priority_classes(t: &Scope) {
    let object = doc!({ "metadata": { "name": (t.unique("a")) }, "value": 5 });
    live(t, "priorityclasses", object, &[Generation]).await;
}

async fn resource_slices(t: &Scope) {
    let object = resource_slice(&t.unique("a"));
    live(t, "resourceslices", object, &[Generation, ReturnedByDelete]).await;
}

async fn storage_classes(t: &Scope) {
    let object = storage_class(&t.unique("a"));
    live(t, "storageclasses", object, &[ReturnedByDelete]).await;
}
