//! The built-in kinds, one row each.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use windlass_core::Gvk;
use windlass_core::ResourceName;

use crate::actors;
use crate::needs::{
    AdmissionConfiguration, AfterWrite, Allocation, Charge, Creation, GrantSort, Limited, Needs,
    NodeRule, Plugin, Review,
};
use crate::resource::{
    GarbagePolicy, Generation, NameRule, Resource, Scope, SelectableField, Sub, Subresource, Verb,
};
use windlass_rules::hooks::{Conversion, Hooks, NoHooks};
use windlass_rules::kinds;
use windlass_rules::table::{self, Column};

const STORED: &[Verb] = &[
    Verb::Create,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Update,
    Verb::Watch,
];
const CREATE: &[Verb] = &[Verb::Create];
/// The fields that the approval of a request for a certificate may change.
const APPROVAL: &[&str] = &[
    "/status/conditions",
    "/metadata/annotations",
    "/metadata/finalizers",
    "/metadata/labels",
    "/metadata/ownerReferences",
];
/// Upstream keeps events for an hour.
const EVENT_TTL: Duration = Duration::from_secs(60 * 60);
const READ_WRITE: &[Verb] = &[Verb::Get, Verb::Patch, Verb::Update];

/// The groups in upstream's order: where several have a resource of one name, clients take the
/// first.
const GROUPS: &[&str] = &[
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
];

/// Every built-in row, in the order of discovery.
#[must_use]
pub fn all() -> Vec<Resource> {
    let parts = [
        core(),
        apps(),
        batch_and_scaling(),
        policies(),
        cluster_services(),
        devices(),
        extensions(),
        reviews(),
    ];
    let mut rows: Vec<Resource> = parts.into_iter().flatten().collect();
    rows.sort_by_key(|row| GROUPS.iter().position(|group| *group == row.gvk.group()));
    rows
}

/// The rows of the resource metrics API, which clusters get with metrics-server.
#[must_use]
pub fn resource_metrics() -> Vec<Resource> {
    let metrics = |kind, plural| {
        let row = row("metrics.k8s.io", "v1beta1", kind, plural);
        row.only(&[Verb::Get, Verb::List])
    };
    vec![
        metrics("NodeMetrics", "nodes")
            .cluster()
            .hooks(kinds::NodeMetrics),
        metrics("PodMetrics", "pods").hooks(kinds::PodMetrics),
    ]
}

fn core() -> Vec<Resource> {
    let v1 = |kind, plural| row("", "v1", kind, plural);
    vec![
        v1("Namespace", "namespaces")
            .cluster()
            .short(&["ns"])
            .without(Verb::DeleteCollection)
            .status()
            .sub("finalize", Sub::Finalize, &[Verb::Update])
            .names(NameRule::Label)
            .fields(&[("status.phase", "/status/phase")])
            .returns_deleted()
            .columns(table::NAMESPACE)
            .contains_others()
            .hooks(kinds::Namespaces),
        v1("Pod", "pods")
            .short(&["po"])
            .category("all")
            .status()
            .sub("binding", Sub::Binding, CREATE)
            .sub_kind("binding", &Gvk::constant("", "v1", "Binding"))
            .sub("eviction", Sub::Eviction, CREATE)
            .sub_kind("eviction", &Gvk::constant("policy", "v1", "Eviction"))
            .sub(
                "ephemeralcontainers",
                Sub::Part(&["/spec/ephemeralContainers"]),
                READ_WRITE,
            )
            .sub("log", Sub::Log, &[Verb::Get])
            .sub(
                "resize",
                Sub::Resize(&["/spec/containers", "/spec/initContainers"]),
                READ_WRITE,
            )
            .generation(Generation::Spec)
            .fields(kinds::POD_FIELDS)
            .field_or("spec.hostNetwork", "/spec/hostNetwork", "false")
            .returns_deleted()
            .columns(table::POD)
            .admission(&[
                Plugin::LimitRanger(Limited::Pod),
                Plugin::ServiceAccount,
                Plugin::Priority,
                Plugin::DefaultTolerationSeconds,
                Plugin::RuntimeClass,
                Plugin::PodResizeValidator,
                Plugin::ResourceQuota(Charge::Pod),
            ])
            .node_rule(NodeRule::Pod)
            .connections(&["attach", "exec", "portforward", "proxy"])
            .hooks(kinds::Pods),
        v1("Binding", "bindings").answered(Creation::Binding),
        v1("ComponentStatus", "componentstatuses")
            .cluster()
            .short(&["cs"])
            .only(&[Verb::Get, Verb::List])
            .columns(table::COMPONENT)
            .hooks(kinds::Components),
        v1("ConfigMap", "configmaps")
            .short(&["cm"])
            .columns(table::CONFIG_MAP)
            .hooks(kinds::ConfigMaps),
        v1("Secret", "secrets")
            .fields(&[("type", "/type")])
            .columns(table::SECRET)
            .hooks(kinds::Secrets),
        v1("ServiceAccount", "serviceaccounts")
            .short(&["sa"])
            .sub("token", Sub::Token, CREATE)
            .sub_kind(
                "token",
                &Gvk::constant("authentication.k8s.io", "v1", "TokenRequest"),
            )
            .returns_deleted(),
        v1("Service", "services")
            .connections(&["proxy"])
            .short(&["svc"])
            .category("all")
            .status()
            .names(NameRule::Label)
            .fields(&[
                ("spec.clusterIP", "/spec/clusterIP"),
                ("spec.type", "/spec/type"),
            ])
            .create_on_update()
            .returns_deleted()
            .columns(table::SERVICE)
            .admission(&[Plugin::ResourceQuota(Charge::MainPath)])
            .allocation(Allocation::ServiceAddresses)
            .hooks(kinds::Services),
        v1("Endpoints", "endpoints")
            .short(&["ep"])
            .create_on_update()
            .columns(table::ENDPOINTS)
            .hooks(kinds::Endpoints),
        v1("Event", "events")
            .short(&["ev"])
            .create_on_update()
            .garbage(GarbagePolicy::Unsupported)
            .ttl(EVENT_TTL)
            .fields(kinds::EVENT_FIELDS)
            .field_in("source", "/source/component", "/reportingComponent")
            .columns(table::EVENT)
            .hooks(kinds::Events),
        v1("Node", "nodes")
            .cluster()
            .short(&["no"])
            .status()
            .field_or("spec.unschedulable", "/spec/unschedulable", "false")
            .columns(table::NODE)
            .connections(&["proxy"])
            .admission(&[Plugin::TaintNodesByCondition])
            .node_rule(NodeRule::Node)
            .hooks(kinds::Nodes),
        v1("LimitRange", "limitranges")
            .short(&["limits"])
            .create_on_update()
            .columns(table::CREATED_AT)
            .hooks(kinds::LimitRanges),
        v1("ResourceQuota", "resourcequotas")
            .short(&["quota"])
            .status()
            .returns_deleted()
            .columns(table::RESOURCE_QUOTA)
            .hooks(kinds::ResourceQuotas),
        v1("PersistentVolume", "persistentvolumes")
            .cluster()
            .short(&["pv"])
            .status()
            .returns_deleted()
            .columns(table::PERSISTENT_VOLUME)
            .admission(&[Plugin::StorageObjectInUseProtection(
                "kubernetes.io/pv-protection",
            )])
            .hooks(kinds::Volumes),
        v1("PersistentVolumeClaim", "persistentvolumeclaims")
            .short(&["pvc"])
            .status()
            .returns_deleted()
            .columns(table::PERSISTENT_VOLUME_CLAIM)
            .admission(&[
                Plugin::LimitRanger(Limited::Claim),
                Plugin::StorageObjectInUseProtection("kubernetes.io/pvc-protection"),
                Plugin::ResourceQuota(Charge::MainPath),
            ])
            .node_rule(NodeRule::Claim)
            .hooks(kinds::Claims),
        v1("PodTemplate", "podtemplates")
            .generation(Generation::AllButStatus)
            .returns_deleted()
            .columns(table::POD_TEMPLATE)
            .hooks(kinds::PodTemplates),
        v1("ReplicationController", "replicationcontrollers")
            .short(&["rc"])
            .category("all")
            .scale()
            .status()
            .generation(Generation::Spec)
            .garbage(GarbagePolicy::Orphan)
            .field_or("status.replicas", "/status/replicas", "0")
            .columns(table::REPLICA_SET)
            .hooks(kinds::ReplicationControllers),
    ]
}

fn apps() -> Vec<Resource> {
    let v1 = |kind, plural| row("apps", "v1", kind, plural);
    vec![
        v1("Deployment", "deployments")
            .short(&["deploy"])
            .category("all")
            .scale()
            .status()
            .generation(Generation::SpecOrAnnotations)
            .columns(table::DEPLOYMENT)
            .hooks(kinds::Deployments),
        v1("ReplicaSet", "replicasets")
            .short(&["rs"])
            .category("all")
            .scale()
            .status()
            .generation(Generation::Spec)
            .field_or("status.replicas", "/status/replicas", "0")
            .columns(table::REPLICA_SET)
            .hooks(kinds::ReplicaSets),
        v1("StatefulSet", "statefulsets")
            .short(&["sts"])
            .category("all")
            .scale()
            .status()
            .names(NameRule::Label)
            .generation(Generation::Spec)
            .columns(table::STATEFUL_SET)
            .hooks(kinds::StatefulSets),
        v1("DaemonSet", "daemonsets")
            .short(&["ds"])
            .category("all")
            .status()
            .generation(Generation::Spec)
            .columns(table::DAEMON_SET)
            .hooks(kinds::DaemonSets),
        v1("ControllerRevision", "controllerrevisions").columns(table::CONTROLLER_REVISION),
    ]
}

fn batch_and_scaling() -> Vec<Resource> {
    let (kind, plural) = ("HorizontalPodAutoscaler", "horizontalpodautoscalers");
    let scaler = |version| {
        row("autoscaling", version, kind, plural)
            .short(&["hpa"])
            .category("all")
            .status()
            .columns(table::AUTOSCALER)
    };
    vec![
        scaler("v2").hooks(kinds::Autoscalers),
        scaler("v1")
            .stored_as("autoscaling", plural, kinds::AUTOSCALER_CONVERSION)
            .hooks(kinds::OldAutoscalers),
        row("batch", "v1", "Job", "jobs")
            .category("all")
            .status()
            .generation(Generation::Spec)
            .garbage(GarbagePolicy::Orphan)
            .field_or("status.successful", "/status/succeeded", "0")
            .columns(table::JOB)
            .hooks(kinds::Jobs),
        row("batch", "v1", "CronJob", "cronjobs")
            .short(&["cj"])
            .category("all")
            .status()
            .generation(Generation::Spec)
            .columns(table::CRON_JOB)
            .hooks(kinds::CronJobs),
    ]
}

fn policies() -> Vec<Resource> {
    let network = |kind, plural| row("networking.k8s.io", "v1", kind, plural);
    let rbac = |kind, plural| {
        row("rbac.authorization.k8s.io", "v1", kind, plural)
            .names(NameRule::PathSegment)
            .create_on_update()
    };
    vec![
        network("Ingress", "ingresses")
            .short(&["ing"])
            .status()
            .generation(Generation::Spec)
            .columns(table::INGRESS)
            .hooks(kinds::Ingresses),
        network("IngressClass", "ingressclasses")
            .cluster()
            .generation(Generation::Spec)
            .columns(table::INGRESS_CLASS),
        network("NetworkPolicy", "networkpolicies")
            .short(&["netpol"])
            .generation(Generation::Spec)
            .columns(table::NETWORK_POLICY)
            .hooks(kinds::NetworkPolicies),
        network("IPAddress", "ipaddresses")
            .cluster()
            .short(&["ip"])
            .names(NameRule::IpAddress)
            .columns(table::IP_ADDRESS)
            .hooks(kinds::IpAddresses),
        network("ServiceCIDR", "servicecidrs")
            .cluster()
            .status()
            .columns(table::SERVICE_CIDR)
            .hooks(kinds::ServiceCidrs),
        row(
            "policy",
            "v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
        )
        .short(&["pdb"])
        .status()
        .generation(Generation::Spec)
        .conditional_update()
        .columns(table::DISRUPTION_BUDGET)
        .hooks(kinds::DisruptionBudgets),
        rbac("Role", "roles")
            .grants(GrantSort::Role)
            .columns(table::CREATED_AT)
            .hooks(kinds::Roles),
        rbac("RoleBinding", "rolebindings")
            .grants(GrantSort::Binding)
            .columns(table::ROLE_BINDING)
            .hooks(kinds::RoleBindings),
        rbac("ClusterRole", "clusterroles")
            .grants(GrantSort::Role)
            .cluster()
            .columns(table::CREATED_AT)
            .hooks(kinds::Roles),
        rbac("ClusterRoleBinding", "clusterrolebindings")
            .grants(GrantSort::Binding)
            .cluster()
            .columns(table::ROLE_BINDING)
            .hooks(kinds::RoleBindings),
    ]
}

fn cluster_services() -> Vec<Resource> {
    let storage = |kind, plural| row("storage.k8s.io", "v1", kind, plural);
    vec![
        row("coordination.k8s.io", "v1", "Lease", "leases")
            .conditional_update()
            .create_on_update()
            .columns(table::LEASE)
            .node_rule(NodeRule::Lease)
            .hooks(kinds::Leases),
        row("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
            .generation(Generation::ContentOrLabels)
            .columns(table::ENDPOINT_SLICE)
            .hooks(kinds::EndpointSlices),
        row("events.k8s.io", "v1", "Event", "events")
            .short(&["ev"])
            .create_on_update()
            .garbage(GarbagePolicy::Unsupported)
            .ttl(EVENT_TTL)
            .fields(kinds::NEW_EVENT_FIELDS)
            .stored_as("", "events", kinds::EVENT_CONVERSION)
            .columns(table::EVENT)
            .hooks(kinds::Events),
        storage("StorageClass", "storageclasses")
            .cluster()
            .short(&["sc"])
            .returns_deleted()
            .columns(table::STORAGE_CLASS)
            .hooks(kinds::StorageClasses),
        storage("CSIDriver", "csidrivers")
            .cluster()
            .conditional_update()
            .returns_deleted()
            .columns(table::CSI_DRIVER)
            .hooks(kinds::CsiDrivers),
        storage("CSINode", "csinodes")
            .cluster()
            .conditional_update()
            .returns_deleted()
            .columns(table::CSI_NODE)
            .node_rule(NodeRule::StorageNode),
        storage("VolumeAttachment", "volumeattachments")
            .cluster()
            .status()
            .conditional_update()
            .returns_deleted()
            .columns(table::VOLUME_ATTACHMENT)
            .hooks(kinds::Attachments),
        storage("VolumeAttributesClass", "volumeattributesclasses")
            .cluster()
            .short(&["vac"])
            .returns_deleted(),
        storage("CSIStorageCapacity", "csistoragecapacities").conditional_update(),
        row(
            "scheduling.k8s.io",
            "v1",
            "PriorityClass",
            "priorityclasses",
        )
        .cluster()
        .short(&["pc"])
        .generation(Generation::AllButStatus)
        .columns(table::PRIORITY_CLASS)
        .admission(&[Plugin::PriorityClassDefault])
        .hooks(kinds::PriorityClasses),
        row("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses")
            .cluster()
            .conditional_update()
            .create_on_update()
            .columns(table::RUNTIME_CLASS)
            .hooks(kinds::RuntimeClasses),
    ]
}

fn devices() -> Vec<Resource> {
    let v1 = |kind, plural| row("resource.k8s.io", "v1", kind, plural).returns_deleted();
    vec![
        v1("ResourceClaim", "resourceclaims")
            .status()
            .columns(table::RESOURCE_CLAIM)
            .admission(&[Plugin::DeviceAdminAccess])
            .hooks(kinds::ResourceClaims),
        v1("ResourceClaimTemplate", "resourceclaimtemplates").hooks(kinds::ResourceClaimTemplates),
        v1("DeviceClass", "deviceclasses")
            .cluster()
            .generation(Generation::Spec)
            .hooks(kinds::DeviceClasses),
        v1("ResourceSlice", "resourceslices")
            .cluster()
            .generation(Generation::Spec)
            .fields(&[
                ("spec.nodeName", "/spec/nodeName"),
                ("spec.driver", "/spec/driver"),
            ])
            .columns(table::RESOURCE_SLICE)
            .node_rule(NodeRule::Slice)
            .hooks(kinds::ResourceSlices),
    ]
}

fn extensions() -> Vec<Resource> {
    let admission = |kind, plural| {
        row("admissionregistration.k8s.io", "v1", kind, plural)
            .cluster()
            .category("api-extensions")
            .generation(Generation::AllButStatus)
            .conditional_update()
            .configures(AdmissionConfiguration::Policies)
    };
    let flow = |kind, plural| {
        row("flowcontrol.apiserver.k8s.io", "v1", kind, plural)
            .cluster()
            .status()
            .generation(Generation::Spec)
            .after_write(AfterWrite::TellFlowSchemas)
    };
    vec![
        row(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
        )
        .cluster()
        .short(&["crd", "crds"])
        .category("api-extensions")
        .status()
        .generation(Generation::Spec)
        .conditional_update()
        .columns(table::CREATED_AT)
        .after_write(AfterWrite::SyncDefinitions)
        .hooks(crate::definition::DefinitionHooks),
        row("apiregistration.k8s.io", "v1", "APIService", "apiservices")
            .cluster()
            .category("api-extensions")
            .status()
            .names(NameRule::PathSegment)
            .conditional_update()
            .columns(table::API_SERVICE)
            .hooks(kinds::ApiServices),
        admission(
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
        )
        .hooks(kinds::MutatingWebhooks)
        .configures(AdmissionConfiguration::Webhooks)
        .columns(table::WEBHOOKS),
        admission(
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
        )
        .hooks(kinds::ValidatingWebhooks)
        .configures(AdmissionConfiguration::Webhooks)
        .columns(table::WEBHOOKS),
        admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
            .status()
            .grants(GrantSort::PolicyParams)
            .hooks(kinds::ValidatingPolicies),
        admission(
            "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings",
        )
        .grants(GrantSort::PolicyParamRef("validatingadmissionpolicies"))
        .hooks(kinds::ValidatingPolicyBindings),
        admission("MutatingAdmissionPolicy", "mutatingadmissionpolicies")
            .grants(GrantSort::PolicyParams)
            .hooks(kinds::MutatingPolicies),
        admission(
            "MutatingAdmissionPolicyBinding",
            "mutatingadmissionpolicybindings",
        )
        .grants(GrantSort::PolicyParamRef("mutatingadmissionpolicies"))
        .hooks(kinds::MutatingPolicyBindings),
        flow("FlowSchema", "flowschemas")
            .columns(table::FLOW_SCHEMA)
            .hooks(kinds::FlowSchemas),
        flow("PriorityLevelConfiguration", "prioritylevelconfigurations")
            .columns(table::PRIORITY_LEVEL)
            .hooks(kinds::PriorityLevels),
        row(
            "certificates.k8s.io",
            "v1",
            "CertificateSigningRequest",
            "certificatesigningrequests",
        )
        .cluster()
        .short(&["csr"])
        .status()
        .sub("approval", Sub::Part(APPROVAL), READ_WRITE)
        .fields(&[("spec.signerName", "/spec/signerName")])
        .columns(table::SIGNING_REQUEST)
        .admission(&[Plugin::CertificateSigning])
        .node_rule(NodeRule::SigningRequest)
        .hooks(kinds::SigningRequests),
    ]
}

fn reviews() -> Vec<Resource> {
    let authentication = |kind, plural| row("authentication.k8s.io", "v1", kind, plural);
    let authorization = |kind, plural| row("authorization.k8s.io", "v1", kind, plural);
    vec![
        authentication("TokenReview", "tokenreviews")
            .cluster()
            .review(Review::Token),
        authentication("SelfSubjectReview", "selfsubjectreviews")
            .cluster()
            .review(Review::SelfSubject),
        authorization("SubjectAccessReview", "subjectaccessreviews")
            .cluster()
            .review(Review::SubjectAccess),
        authorization("SelfSubjectAccessReview", "selfsubjectaccessreviews")
            .cluster()
            .review(Review::SelfSubjectAccess),
        authorization("SelfSubjectRulesReview", "selfsubjectrulesreviews")
            .cluster()
            .review(Review::SelfSubjectRules),
        authorization("LocalSubjectAccessReview", "localsubjectaccessreviews")
            .review(Review::LocalSubjectAccess),
    ]
}

/// A namespaced, stored kind with the most common rules.
fn row(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
) -> Resource {
    Resource {
        gvk: Gvk::constant(group, version, kind),
        plural: Cow::Borrowed(plural),
        singular: Cow::Owned(kind.to_ascii_lowercase()),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope: Scope::Namespaced,
        verbs: STORED.to_vec(),
        subresources: Vec::new(),
        columns: Cow::Borrowed(table::AGE),
        fields: Vec::new(),
        names: NameRule::Subdomain,
        generation: Generation::Absent,
        unconditional_update: true,
        create_on_update: false,
        returns_deleted: false,
        garbage: GarbagePolicy::Background,
        is_custom: false,
        shelf: ResourceName::new(group, plural),
        conversion: None,
        ttl: None,
        needs: Needs {
            actor: actors::actor(group, plural),
            ..Needs::default()
        },
        hooks: Arc::new(NoHooks),
        custom: None,
    }
}

impl Resource {
    fn cluster(mut self) -> Self {
        self.scope = Scope::Cluster;
        self
    }

    fn short(mut self, names: &[&'static str]) -> Self {
        self.short_names = names.iter().copied().map(Cow::Borrowed).collect();
        self
    }

    fn category(mut self, category: &'static str) -> Self {
        self.categories.push(Cow::Borrowed(category));
        self
    }

    fn only(mut self, verbs: &[Verb]) -> Self {
        self.verbs = verbs.to_vec();
        self
    }

    fn without(mut self, verb: Verb) -> Self {
        self.verbs.retain(|known| *known != verb);
        self
    }

    fn status(self) -> Self {
        self.sub("status", Sub::Status, READ_WRITE)
    }

    fn scale(self) -> Self {
        self.sub("scale", Sub::Scale, READ_WRITE)
            .sub_kind("scale", &Gvk::constant("autoscaling", "v1", "Scale"))
    }

    fn sub(mut self, name: &'static str, sort: Sub, verbs: &'static [Verb]) -> Self {
        let gvk = self.gvk.clone();
        self.subresources.push(Subresource {
            name,
            gvk,
            verbs,
            sort,
        });
        self.subresources.sort_by_key(|sub| sub.name);
        self
    }

    /// Says that a subresource reads and writes another kind than the main one.
    fn sub_kind(mut self, name: &str, gvk: &Gvk) -> Self {
        for sub in self.subresources.iter_mut().filter(|sub| sub.name == name) {
            sub.gvk = gvk.clone();
        }
        self
    }

    fn columns(mut self, columns: &'static [Column]) -> Self {
        self.columns = Cow::Borrowed(columns);
        self
    }

    fn fields(mut self, fields: &[(&'static str, &'static str)]) -> Self {
        let field = |(label, pointer): &(&'static str, &'static str)| SelectableField {
            label: Cow::Borrowed(*label),
            pointer: Cow::Borrowed(*pointer),
            fallback: "",
            absent: "",
        };
        self.fields.extend(fields.iter().map(field));
        self
    }

    /// A field whose absence means a value.
    fn field_or(
        mut self,
        label: &'static str,
        pointer: &'static str,
        absent: &'static str,
    ) -> Self {
        let (label, pointer) = (Cow::Borrowed(label), Cow::Borrowed(pointer));
        self.fields.push(SelectableField {
            label,
            pointer,
            fallback: "",
            absent,
        });
        self
    }

    /// A field that stands in one of two places.
    fn field_in(
        mut self,
        label: &'static str,
        pointer: &'static str,
        fallback: &'static str,
    ) -> Self {
        let (label, pointer) = (Cow::Borrowed(label), Cow::Borrowed(pointer));
        self.fields.push(SelectableField {
            label,
            pointer,
            fallback,
            absent: "",
        });
        self
    }

    fn names(mut self, names: NameRule) -> Self {
        self.names = names;
        self
    }

    fn generation(mut self, generation: Generation) -> Self {
        self.generation = generation;
        self
    }

    fn conditional_update(mut self) -> Self {
        self.unconditional_update = false;
        self
    }

    fn create_on_update(mut self) -> Self {
        self.create_on_update = true;
        self
    }

    fn returns_deleted(mut self) -> Self {
        self.returns_deleted = true;
        self
    }

    fn garbage(mut self, garbage: GarbagePolicy) -> Self {
        self.garbage = garbage;
        self
    }

    fn stored_as(mut self, group: &str, plural: &str, conversion: Conversion) -> Self {
        self.shelf = ResourceName::new(group, plural);
        self.conversion = Some(conversion);
        self
    }

    fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    fn admission(mut self, plugins: &'static [Plugin]) -> Self {
        self.needs.admission = plugins;
        self
    }

    fn node_rule(mut self, rule: NodeRule) -> Self {
        self.needs.node_rule = rule;
        self
    }

    fn grants(mut self, grant: GrantSort) -> Self {
        self.needs.grant = Some(grant);
        self
    }

    /// A kind whose objects are answered, not stored.
    fn answered(mut self, creation: Creation) -> Self {
        self.needs.creation = creation;
        self.only(CREATE)
    }

    fn contains_others(mut self) -> Self {
        self.needs.is_namespace = true;
        self
    }

    fn connections(mut self, connections: &'static [&'static str]) -> Self {
        self.needs.connections = connections;
        self
    }

    fn allocation(mut self, allocation: Allocation) -> Self {
        self.needs.allocation = allocation;
        self
    }

    fn review(self, review: Review) -> Self {
        self.answered(Creation::Review(review))
    }

    fn configures(mut self, admission: AdmissionConfiguration) -> Self {
        self.needs.admission_configuration = Some(admission);
        self
    }

    fn after_write(mut self, work: AfterWrite) -> Self {
        self.needs.after_write = work;
        self
    }

    fn hooks(mut self, hooks: impl Hooks + 'static) -> Self {
        self.hooks = Arc::new(hooks);
        self
    }
}
