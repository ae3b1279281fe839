//! Resource quota usage.

use windlass_core::{Doc, GroupResource, Time, doc};
use windlass_quota::{counted_by, is_in_scope, missing_amounts, usage};

const NOW: i64 = 1_000;

fn used(group: &'static str, resource: &'static str, object: &Doc) -> Vec<(String, String)> {
    let resource = GroupResource::new(group, resource);
    let used = usage(&resource, object, Time::from_unix(NOW));
    let used = used.into_iter().filter(|(_, amount)| !amount.is_zero());
    used.map(|(name, amount)| (name, amount.to_string()))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, amount): &(&str, &str)| ((*name).to_owned(), (*amount).to_owned());
    expected.iter().map(owned).collect()
}

fn pod() -> Doc {
    doc!({
        "spec": {
            "containers": [{
                "name": "web",
                "resources": {
                    "requests": { "cpu": "100m", "memory": "1Gi", "example.com/gpu": "2" },
                    "limits": { "cpu": "1" },
                },
            }],
            "overhead": { "cpu": "50m", "memory": "1Mi" },
        },
    })
}

#[test]
fn a_pod_counts_what_it_asks_for_and_what_running_it_costs() {
    let expected = [
        ("count/pods", "1"),
        ("cpu", "150m"),
        ("limits.cpu", "1050m"),
        ("memory", "1025Mi"),
        ("pods", "1"),
        ("requests.cpu", "150m"),
        ("requests.example.com/gpu", "2"),
        ("requests.memory", "1025Mi"),
    ];
    assert_eq!(used("", "pods", &pod()), pairs(&expected));
}

#[test]
fn a_pod_that_has_ended_or_should_have_is_an_object_only() {
    let only = pairs(&[("count/pods", "1")]);
    let ended = pod().with("/status/phase", "Succeeded").unwrap();
    assert_eq!(used("", "pods", &ended), only);
    let deleted = |seconds: i64| {
        let at = Time::from_unix(NOW - seconds).to_string();
        let metadata = doc!({ "deletionTimestamp": at, "deletionGracePeriodSeconds": 30 });
        pod().with("/metadata", metadata).unwrap()
    };
    assert_eq!(used("", "pods", &deleted(31)), only);
    assert_ne!(used("", "pods", &deleted(30)), only);
}

#[test]
fn a_claim_counts_the_worst_that_it_can_be_given() {
    let request = |class: &str, mode: &str, count: i64| doc!({ "deviceClassName": class, "allocationMode": mode, "count": count });
    let claim = doc!({ "spec": { "devices": { "requests": [
        { "exactly": (request("gpu", "ExactCount", 2)) },
        { "exactly": (request("nic", "All", 0)) },
        { "firstAvailable": [
            (request("gpu", "ExactCount", 3)),
            (request("gpu", "ExactCount", 1)),
            (request("nic", "ExactCount", 1)),
        ] },
    ] } } });
    let expected = [
        ("count/resourceclaims.resource.k8s.io", "1"),
        ("gpu.deviceclass.resource.k8s.io/devices", "5"),
        ("nic.deviceclass.resource.k8s.io/devices", "33"),
    ];
    let found = used("resource.k8s.io", "resourceclaims", &claim);
    assert_eq!(found, pairs(&expected));
}

#[test]
fn a_service_counts_the_ports_that_it_will_have() {
    let service = |sort: &str, allocates: bool| {
        doc!({ "spec": {
            "type": sort, "allocateLoadBalancerNodePorts": allocates,
            "ports": [{ "port": 1 }, { "port": 2, "nodePort": 30001 }],
        } })
    };
    let counts = |sort, allocates| {
        let found = used("", "services", &service(sort, allocates));
        let of = |name: &str| found.iter().find(|it| it.0 == name).map(|it| it.1.clone());
        (of("services.loadbalancers"), of("services.nodeports"))
    };
    let number = |count: &str| Some(count.to_owned());
    assert_eq!(counts("ClusterIP", true), (None, None));
    assert_eq!(counts("NodePort", true), (None, number("2")));
    assert_eq!(counts("LoadBalancer", true), (number("1"), number("2")));
    assert_eq!(counts("LoadBalancer", false), (number("1"), number("1")));
}

#[test]
fn a_volume_claim_counts_whole_bytes_for_its_class_too() {
    let claim = doc!({ "spec": {
        "storageClassName": "gold", "resources": { "requests": { "storage": "1500m" } },
    } });
    let expected = [
        ("count/persistentvolumeclaims", "1"),
        (
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims",
            "1",
        ),
        ("gold.storageclass.storage.k8s.io/requests.storage", "2"),
        ("persistentvolumeclaims", "1"),
        ("requests.storage", "2"),
    ];
    let found = used("", "persistentvolumeclaims", &claim);
    assert_eq!(found, pairs(&expected));
}

#[test]
fn every_name_that_is_used_is_counted_by_that_resource() {
    let everything = [
        ("", "pods"),
        ("", "services"),
        ("", "persistentvolumeclaims"),
        ("", "configmaps"),
        ("apps", "deployments"),
        ("resource.k8s.io", "resourceclaims"),
    ];
    for (group, name) in everything {
        let resource = GroupResource::new(group, name);
        for used in usage(&resource, &pod(), Time::from_unix(NOW)).keys() {
            assert_eq!(counted_by(used).as_ref(), Some(&resource), "{used}");
        }
    }
    for unknown in [
        "",
        "nodes",
        "count/events",
        "example.com/gpu",
        "limits.storage",
    ] {
        assert_eq!(counted_by(unknown), None, "{unknown}");
    }
}

#[test]
fn containers_without_amounts_are_named() {
    let containers = doc!([{ "name": "web" }, { "name": "side" }]);
    let pod = doc!({ "spec": { "containers": containers } });
    let said = missing_amounts(["pods", "requests.cpu", "limits.memory"], &pod);
    let expected = "must specify limits.memory for: side,web; requests.cpu for: side,web";
    assert_eq!(said.as_deref(), Some(expected));
    assert_eq!(
        missing_amounts(["pods", "limits.ephemeral-storage"], &pod),
        None
    );
}

#[test]
fn scopes_choose_among_pods() {
    let quota = |scopes: Doc| doc!({ "spec": { "scopes": scopes } });
    let pods = GroupResource::new("", "pods");
    let job = doc!({ "spec": { "activeDeadlineSeconds": 5 } });
    assert!(is_in_scope(&quota(doc!(["Terminating"])), &pods, &job));
    assert!(!is_in_scope(&quota(doc!(["NotTerminating"])), &pods, &job));
    let both = quota(doc!(["Terminating", "BestEffort"]));
    assert!(!is_in_scope(&both, &pods, &job));
    assert!(!is_in_scope(
        &both,
        &GroupResource::new("", "secrets"),
        &job
    ));
    let choice = |operator: &str, values: Doc| {
        doc!({ "spec": { "scopeSelector": { "matchExpressions": [
            { "scopeName": "PriorityClass", "operator": operator, "values": values },
        ] } } })
    };
    let high = doc!({ "spec": { "priorityClassName": "high" } });
    assert!(is_in_scope(&choice("In", doc!(["high"])), &pods, &high));
    assert!(!is_in_scope(&choice("In", doc!(["low"])), &pods, &high));
    assert!(is_in_scope(&choice("NotIn", doc!(["high"])), &pods, &job));
    assert!(is_in_scope(&choice("DoesNotExist", doc!([])), &pods, &job));
}
