//! Pods as a busy cluster has them, made up but deterministic.
//!
//! Every pod has two containers with twenty environment variables each, probes, resources,
//! volumes with the projected service account token, an owner, and managed fields; every other
//! one also has the status of a running pod. The text is what kube-apiserver prints, about 11 KB.
//!
//! The pods of one ReplicaSet share their template, as they do in a cluster. What a cluster makes
//! different is different here too: names, UIDs, revisions, nodes, addresses and all timestamps.
//! The name of the token volume belongs to the template; where the admission of service accounts
//! is on, the API server draws one for every pod, and [`Corpus::with_own_tokens`] does the same.
//!
//! The text is built without any Kubernetes types, so that nobody's idea of a pod is built in.

mod env;
mod pod;
mod template;

#[cfg(test)]
mod tests;

use pod::Identity;
use template::{Template, fill, minify};

/// How many pods a ReplicaSet has.
pub const PODS_PER_REPLICASET: usize = 100;

/// How many namespaces the ReplicaSets are spread over.
pub const NAMESPACES: usize = 10;

/// How many nodes the pods are spread over.
pub const NODES: usize = 100;

const APPS: [&str; 10] = [
    "checkout", "catalog", "billing", "search", "identity", "shipping", "pricing", "reviews",
    "gateway", "notify",
];

/// Requests and limits, as (CPU request, CPU limit, memory request, memory limit, Go's limit).
const SIZES: [[&str; 5]; 4] = [
    ["100m", "1", "128Mi", "512Mi", "460MiB"],
    ["250m", "2", "256Mi", "1Gi", "920MiB"],
    ["500m", "2", "512Mi", "1Gi", "920MiB"],
    ["1", "4", "1Gi", "4Gi", "3600MiB"],
];

/// A number of pods, any of which can be written out at any time.
#[derive(Debug)]
pub struct Corpus {
    replicasets: Vec<ReplicaSet>,
    pods: usize,
    /// Whether each pod has a token volume of its own name.
    has_own_tokens: bool,
}

/// The texts that the pods of one ReplicaSet have in common.
#[derive(Debug)]
struct ReplicaSet {
    name: String,
    namespace: String,
    running: Template,
    pending: Template,
    create: Template,
    status: Template,
}

impl Corpus {
    /// A corpus of so many pods.
    #[must_use]
    pub fn new(pods: usize) -> Self {
        let replicasets = (0..pods.div_ceil(PODS_PER_REPLICASET))
            .map(ReplicaSet::new)
            .collect();
        Self {
            replicasets,
            pods,
            has_own_tokens: false,
        }
    }

    /// A corpus of so many pods whose token volumes all have different names.
    #[must_use]
    pub fn with_own_tokens(pods: usize) -> Self {
        Self {
            has_own_tokens: true,
            ..Self::new(pods)
        }
    }

    /// How many pods there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pods
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pods == 0
    }

    /// The names of the namespaces that the pods are in.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.replicasets
            .iter()
            .take(NAMESPACES)
            .map(|owner| owner.namespace.as_str())
    }

    /// Whether this pod has the status of a running pod, which every other one has.
    #[must_use]
    pub fn is_running(index: usize) -> bool {
        index.is_multiple_of(2)
    }

    /// Appends a pod as a `GET` or a watch event shows it.
    ///
    /// # Panics
    ///
    /// If the corpus has no pod of this number. This holds for the other `write_` functions too.
    pub fn write_pod(&self, index: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"kind":"Pod","apiVersion":"v1","#);
        self.write_members(index, out);
    }

    /// Appends a pod as a client creates it: without what the server fills in.
    pub fn write_create(&self, index: usize, out: &mut Vec<u8>) {
        let (owner, pod) = self.find(index);
        out.extend_from_slice(br#"{"kind":"Pod","apiVersion":"v1","#);
        owner.create.write(&pod, out);
    }

    /// Appends the status of a pod, all of it, as if it were running.
    pub fn write_status(&self, index: usize, out: &mut Vec<u8>) {
        let (owner, pod) = self.find(index);
        owner.status.write(&pod, out);
    }

    /// Appends the namespace and the name of a pod, separated by a slash.
    pub fn write_key(&self, index: usize, out: &mut Vec<u8>) {
        let (owner, pod) = self.find(index);
        out.extend_from_slice(owner.namespace.as_bytes());
        out.push(b'/');
        pod.write(pod::Slot::Name, out);
    }

    /// Appends a `PodList` of all pods. Its items carry no kind, as upstream's do not.
    pub fn write_list(&self, out: &mut Vec<u8>) {
        let revision = 1_000_000 + self.pods;
        let head = format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{revision}"}},"items":["#
        );
        out.extend_from_slice(head.as_bytes());
        for index in 0..self.pods {
            if index > 0 {
                out.push(b',');
            }
            out.push(b'{');
            self.write_members(index, out);
        }
        out.extend_from_slice(b"]}\n");
    }

    fn write_members(&self, index: usize, out: &mut Vec<u8>) {
        let (owner, pod) = self.find(index);
        let template = if Self::is_running(index) {
            &owner.running
        } else {
            &owner.pending
        };
        template.write(&pod, out);
    }

    fn find(&self, index: usize) -> (&ReplicaSet, Identity<'_>) {
        assert!(
            index < self.pods,
            "pod {index} of a corpus of {}",
            self.pods
        );
        let template = index / PODS_PER_REPLICASET;
        let owner = &self.replicasets[template];
        let token = if self.has_own_tokens { index } else { template };
        (
            owner,
            Identity {
                index,
                token,
                owner: &owner.name,
            },
        )
    }
}

impl ReplicaSet {
    fn new(index: usize) -> Self {
        let app = format!("{}-{index}", APPS[index % APPS.len()]);
        let hash = format!(
            "{}{}",
            pod::suffix(index, 3_141_592),
            pod::suffix(index, 2_718_281)
        );
        let namespace = format!("team-{:02}", index % NAMESPACES);
        let texts = Texts::new(index, &app, &hash, &namespace);
        Self {
            name: format!("{app}-{hash}"),
            running: texts.pod(Phase::Running),
            pending: texts.pod(Phase::Pending),
            create: texts.pod(Phase::Create),
            status: Template::compile(&texts.status),
            namespace,
        }
    }
}

/// The stages of a pod's life that the corpus knows.
#[derive(Clone, Copy)]
enum Phase {
    Create,
    Pending,
    Running,
}

/// The pieces of a ReplicaSet's pods, with only the holes left that differ from pod to pod.
struct Texts {
    pod: String,
    identity: String,
    controller: String,
    kubelet: String,
    status: String,
}

impl Texts {
    fn new(index: usize, app: &str, hash: &str, namespace: &str) -> Self {
        let [cpu, cpu_limit, memory, memory_limit, gomemlimit] = SIZES[index % SIZES.len()];
        let version = format!("v{}.{}.{}", 1 + index % 3, index % 17, index % 7);
        let prefix = APPS[index % APPS.len()].to_uppercase();
        let checksum = pod::hex64(pod::mix(index as u64));
        let owner_uid = pod::uid(2, index);
        let names = [
            ("app", app),
            ("APP", &prefix),
            ("hash", hash),
            ("namespace", namespace),
            ("version", &version),
            ("checksum", &checksum),
            ("replicaset-uid", &owner_uid),
            ("cpu-request", cpu),
            ("cpu-limit", cpu_limit),
            ("memory-request", memory),
            ("memory-limit", memory_limit),
            ("gomemlimit", gomemlimit),
        ];
        let env = [
            ("env-app", env::APP.items(&names)),
            ("env-proxy", env::PROXY.items(&names)),
            ("env-app-fields", env::APP.fields(&names)),
            ("env-proxy-fields", env::PROXY.fields(&names)),
        ];
        let env = env.each_ref().map(|(name, text)| (*name, text.as_str()));
        let text = |source| fill(&fill(&minify(source), &env), &names);
        Self {
            pod: text(include_str!("corpus/pod.template")),
            identity: text(include_str!("corpus/identity.template")),
            controller: text(include_str!("corpus/managed_controller.template")),
            kubelet: text(include_str!("corpus/managed_kubelet.template")),
            status: text(include_str!("corpus/status.template")),
        }
    }

    fn pod(&self, phase: Phase) -> Template {
        let (controller, kubelet, status) = (&self.controller, &self.kubelet, &self.status);
        let (identity, managed, status) = match phase {
            Phase::Create => ("", String::new(), String::new()),
            Phase::Pending => (
                self.identity.as_str(),
                format!(r#","managedFields":[{controller}]"#),
                r#","status":{"phase":"Pending","qosClass":"Burstable"}"#.to_owned(),
            ),
            Phase::Running => (
                self.identity.as_str(),
                format!(r#","managedFields":[{controller},{kubelet}]"#),
                format!(r#","status":{status}"#),
            ),
        };
        let holes = [
            ("identity", identity),
            ("managed", &managed),
            ("status", &status),
        ];
        Template::compile(&fill(&self.pod, &holes))
    }
}
