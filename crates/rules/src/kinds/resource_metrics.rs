//! Resource metrics of pretend nodes and pods: the group `metrics.k8s.io`.
//!
//! No container runs, so nothing can be measured. A pod says in annotations what its containers
//! use; without them a container uses a tenth of the CPU and half of the memory that it requests.

use windlass_core::{Doc, Object, Quantity, QuantityFormat, Str, Time, doc};

use crate::hooks::{Hooks, MadeFrom};

/// The CPU that each container of a pod uses: a quantity such as `250m`, or a share of its request
/// such as `80%`. With `.NAME` behind it, that of one container.
pub const CPU_USAGE: &str = "windlass.dev/cpu-usage";
/// The same for memory.
pub const MEMORY_USAGE: &str = "windlass.dev/memory-usage";

/// The time over which usage would have been measured, as metrics-server reports it.
const WINDOW: &str = "15s";

/// A resource of containers, and the assumptions about its usage.
struct Measured {
    resource: &'static str,
    annotation: &'static str,
    format: QuantityFormat,
    /// The share of the request that is used where no annotation says otherwise.
    percent: i64,
    /// The usage without a request, in thousandths.
    least_milli: i64,
}

const MEASURED: [Measured; 2] = [
    Measured {
        resource: "cpu",
        annotation: CPU_USAGE,
        format: QuantityFormat::DecimalSi,
        percent: 10,
        least_milli: 1,
    },
    Measured {
        resource: "memory",
        annotation: MEMORY_USAGE,
        format: QuantityFormat::BinarySi,
        percent: 50,
        least_milli: (1 << 20) * 1000,
    },
];

/// Hooks of pod metrics.
#[derive(Debug)]
pub struct PodMetrics;

impl Hooks for PodMetrics {
    fn made(&self, from: &MadeFrom<'_>) -> Option<Vec<Doc>> {
        let pods = from.list("", "pods", from.namespace);
        let running = pods.iter().filter(|pod| is_running(pod));
        Some(running.map(|pod| pod_metrics(pod, from.now)).collect())
    }
}

/// Hooks of node metrics.
#[derive(Debug)]
pub struct NodeMetrics;

impl Hooks for NodeMetrics {
    fn made(&self, from: &MadeFrom<'_>) -> Option<Vec<Doc>> {
        let (nodes, pods) = (from.list("", "nodes", ""), from.list("", "pods", ""));
        let metrics = |node: &Doc| {
            let name = node.meta().name();
            let on_node = |pod: &&Doc| pod.str_at("/spec/nodeName") == name && is_running(pod);
            let here: Vec<&Doc> = pods.iter().filter(on_node).collect();
            let usage = usage_of(|one| here.iter().map(|pod| pod_milli(pod, one)).sum());
            described("usage", usage, node, from.now)
        };
        Some(nodes.iter().map(metrics).collect())
    }
}

fn is_running(pod: &Doc) -> bool {
    pod.str_at("/status/phase") == "Running"
}

fn pod_metrics(pod: &Doc, now: Time) -> Doc {
    let container = |one: &Doc| {
        let usage = usage_of(|measured| container_milli(pod, one, measured));
        doc!({ "name": (one.at("/name").clone()), "usage": usage })
    };
    let containers: Vec<Doc> = pod
        .at("/spec/containers")
        .items()
        .iter()
        .map(container)
        .collect();
    described("containers", containers.into(), pod, now)
}

/// Metrics with the name and labels of the object that they are about.
fn described(field: &str, metrics: Doc, object: &Doc, now: Time) -> Doc {
    let meta = object.meta();
    let now = Doc::from(now.to_string());
    let mut metadata: Vec<(Str, Doc)> = vec![
        ("name".into(), meta.name().into()),
        ("creationTimestamp".into(), now.clone()),
    ];
    if !meta.namespace().is_empty() {
        metadata.push(("namespace".into(), meta.namespace().into()));
    }
    let labels = object.at("/metadata/labels");
    if !labels.is_null() {
        metadata.push(("labels".into(), labels.clone()));
    }
    let fields = vec![
        ("metadata".into(), Object::new(metadata).into()),
        ("timestamp".into(), now),
        ("window".into(), WINDOW.into()),
        (field.into(), metrics),
    ];
    Object::new(fields).into()
}

fn usage_of(milli: impl Fn(&Measured) -> i64) -> Doc {
    let amount = |one: &Measured| {
        let quantity = Quantity::from_milli(milli(one), one.format);
        (one.resource.into(), Doc::from(quantity.to_string()))
    };
    Object::new(MEASURED.iter().map(amount).collect()).into()
}

fn pod_milli(pod: &Doc, measured: &Measured) -> i64 {
    let containers = pod.at("/spec/containers").items().iter();
    let used = containers.map(|one| container_milli(pod, one, measured));
    used.fold(0, i64::saturating_add)
}

/// The usage of a container in thousandths.
fn container_milli(pod: &Doc, container: &Doc, measured: &Measured) -> i64 {
    let requests = container.at("/resources/requests");
    let request = requests.get(measured.resource).and_then(Doc::as_str);
    let request = request.and_then(|text| text.parse::<Quantity>().ok());
    let request = request.map(|quantity| quantity.milli_value());
    let share =
        |percent: i64| request.map(|milli| milli / 100 * percent + milli % 100 * percent / 100);
    let annotations = pod.meta().annotations();
    let own = format!("{}.{}", measured.annotation, container.str_at("/name"));
    let given = annotations
        .value(&own)
        .or(annotations.value(measured.annotation));
    let said = given.and_then(|text| match text.strip_suffix('%') {
        Some(percent) => percent.parse::<u16>().ok().and_then(|it| share(it.into())),
        None => text.parse::<Quantity>().ok().map(|it| it.milli_value()),
    });
    said.or_else(|| share(measured.percent))
        .unwrap_or(measured.least_milli)
        .max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(hooks: &dyn Hooks, pods: &[Doc], nodes: &[Doc]) -> Vec<Doc> {
        let list = |_: &str, resource: &str, _: &str| match resource {
            "pods" => pods.to_vec(),
            _ => nodes.to_vec(),
        };
        let from = MadeFrom::new(Time::from_unix(0), "default", &list);
        hooks.made(&from).unwrap()
    }

    fn pod(annotations: Doc, phase: &str) -> Doc {
        let requests = doc!({ "cpu": "200m", "memory": "64Mi" });
        doc!({
            "metadata": { "name": "a", "namespace": "default", "annotations": annotations },
            "spec": {
                "nodeName": "n",
                "containers": [
                    { "name": "app", "resources": { "requests": requests } }, { "name": "plain" },
                ],
            },
            "status": { "phase": phase },
        })
    }

    fn usage(annotations: Doc) -> [[String; 2]; 2] {
        let found = made(&PodMetrics, &[pod(annotations, "Running")], &[]);
        [0, 1].map(|at| {
            let containers = found[0].get("containers").unwrap().items();
            let usage = containers[at].get("usage").unwrap();
            ["cpu", "memory"].map(|it| usage.get(it).unwrap().as_str().unwrap().to_owned())
        })
    }

    #[test]
    fn usage_follows_requests_and_annotations() {
        assert_eq!(
            usage(doc!({})),
            [["20m", "32Mi"], ["1m", "1Mi"]].map(|one| one.map(str::to_owned))
        );
        let said = doc!({
            CPU_USAGE: "80%", (format!("{CPU_USAGE}.plain")): "1", MEMORY_USAGE: "3Mi"
        });
        assert_eq!(
            usage(said),
            [["160m", "3Mi"], ["1", "3Mi"]].map(|one| one.map(str::to_owned))
        );
        let wrong = doc!({ CPU_USAGE: "much", MEMORY_USAGE: "-5%" });
        assert_eq!(usage(wrong)[0], ["20m", "32Mi"].map(str::to_owned));
    }

    #[test]
    fn only_running_pods_use_anything() {
        let pods = [pod(doc!({}), "Running"), pod(doc!({}), "Pending")];
        assert_eq!(made(&PodMetrics, &pods, &[]).len(), 1);
        let node = doc!({ "metadata": { "name": "n", "labels": { "zone": "a" } } });
        let nodes = made(&NodeMetrics, &pods, &[node]);
        let usage = doc!({ "cpu": "21m", "memory": "33Mi" });
        assert_eq!(nodes[0].get("usage"), Some(&usage));
        assert_eq!(nodes[0].meta().labels().value("zone"), Some("a"));
    }
}
