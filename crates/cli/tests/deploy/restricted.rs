//! The pods of `deploy` under the Pod Security Standard "restricted".
//!
//! The rules are those of <https://kubernetes.io/docs/concepts/security/pod-security-standards/>,
//! written out, and some that the standard leaves open: a read-only root, requests and limits, and a
//! decision about the token.

use std::path::Path;

use windlass_core::{Doc, doc};
use windlass_envtest::real_server;

/// The sorts of volumes that the profile allows.
const VOLUMES: &[&str] = &[
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
/// The kernel parameters that do not reach out of a pod.
const SYSCTLS: &[&str] = &[
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];
const SELINUX_TYPES: &[&str] = &[
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
];

/// Pod specs of all manifests, with the names of the objects that hold them.
fn pods() -> Vec<(String, Doc)> {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let files = std::fs::read_dir(deploy).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let manifests = paths.filter(|path| path.extension().is_some_and(|it| it == "yaml"));
    let objects = manifests.flat_map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        Doc::parse_yaml(&text).unwrap()
    });
    let found = objects.filter_map(|object| {
        let name = format!("{} {}", object.str_at("/kind"), object.meta().name());
        let places = [
            "/spec/template/spec",
            "/spec/jobTemplate/spec/template/spec",
        ];
        let pod = if object.str_at("/kind") == "Pod" {
            object.pointer("/spec")
        } else {
            places.iter().find_map(|place| object.pointer(place))
        };
        pod.map(|pod| (name, pod.clone()))
    });
    found.collect()
}

fn containers(pod: &Doc) -> Vec<Doc> {
    let fields = ["/initContainers", "/containers", "/ephemeralContainers"];
    let all = fields.iter().flat_map(|field| pod.at(field).items());
    all.cloned().collect()
}

/// The faults of a pod spec, each with its rule.
fn faults(pod: &Doc) -> Vec<String> {
    let mut faults = pod_faults(pod);
    for container in containers(pod) {
        let name = container.str_at("/name").to_owned();
        let found = container_faults(pod, &container).into_iter();
        faults.extend(found.map(|fault| format!("container {name}: {fault}")));
    }
    faults
}

fn check(faults: &mut Vec<String>, is_kept: bool, rule: &str) {
    if !is_kept {
        faults.push(rule.to_owned());
    }
}

fn is_not_true(value: &Doc) -> bool {
    value.as_bool() != Some(true)
}

fn pod_faults(pod: &Doc) -> Vec<String> {
    let mut faults = Vec::new();
    for field in ["hostNetwork", "hostPID", "hostIPC"] {
        check(
            &mut faults,
            is_not_true(pod.at(&format!("/{field}"))),
            field,
        );
    }
    for volume in pod.at("/volumes").items() {
        let sorts = volume.as_object().unwrap().iter().map(|(key, _)| key);
        let mut sorts = sorts.filter(|key| key.as_str() != "name");
        let is_allowed = sorts.all(|sort| VOLUMES.contains(&sort.as_str()));
        check(&mut faults, is_allowed, "restricted volume types");
    }
    let sysctls = pod.at("/securityContext/sysctls").items();
    let are_safe = sysctls
        .iter()
        .all(|it| SYSCTLS.contains(&it.str_at("/name")));
    check(&mut faults, are_safe, "sysctls");
    faults.extend(context_faults(pod.at("/securityContext")));
    let is_decided = pod.at("/automountServiceAccountToken").as_bool().is_some();
    check(
        &mut faults,
        is_decided,
        "automountServiceAccountToken is decided",
    );
    faults
}

/// The rules for the security context of a pod and of a container alike.
fn context_faults(context: &Doc) -> Vec<String> {
    let mut faults = Vec::new();
    let is_host_process = context.at("/windowsOptions/hostProcess");
    check(&mut faults, is_not_true(is_host_process), "hostProcess");
    let armor = context.str_at("/appArmorProfile/type");
    check(
        &mut faults,
        matches!(armor, "" | "RuntimeDefault" | "Localhost"),
        "appArmorProfile",
    );
    let selinux = context.at("/seLinuxOptions");
    let is_plain = SELINUX_TYPES.contains(&selinux.str_at("/type"))
        && selinux.str_at("/user").is_empty()
        && selinux.str_at("/role").is_empty();
    check(&mut faults, is_plain, "seLinuxOptions");
    check(
        &mut faults,
        context.at("/runAsUser").as_i64() != Some(0),
        "runAsUser is not 0",
    );
    let seccomp = context.str_at("/seccompProfile/type");
    check(
        &mut faults,
        matches!(seccomp, "" | "RuntimeDefault" | "Localhost"),
        "seccompProfile",
    );
    check(
        &mut faults,
        context.at("/runAsNonRoot").as_bool() != Some(false),
        "runAsNonRoot",
    );
    faults
}

fn container_faults(pod: &Doc, container: &Doc) -> Vec<String> {
    let context = container.at("/securityContext");
    let mut faults = context_faults(context);
    check(
        &mut faults,
        is_not_true(context.at("/privileged")),
        "privileged",
    );
    let mount = context.str_at("/procMount");
    check(&mut faults, matches!(mount, "" | "Default"), "procMount");
    let may_rise = context.at("/allowPrivilegeEscalation").as_bool();
    check(
        &mut faults,
        may_rise == Some(false),
        "allowPrivilegeEscalation",
    );
    let either = |field: &str| [context.at(field), pod.at("/securityContext").at(field)];
    let is_non_root = either("/runAsNonRoot")
        .iter()
        .any(|it| it.as_bool() == Some(true));
    check(&mut faults, is_non_root, "runAsNonRoot is set");
    let has_seccomp = either("/seccompProfile/type")
        .iter()
        .any(|it| it.as_str().is_some());
    check(&mut faults, has_seccomp, "seccompProfile is set");
    let has = |field: &str| context.at(field).items().to_vec();
    let drops_all = has("/capabilities/drop").contains(&Doc::from("ALL"));
    check(&mut faults, drops_all, "capabilities drop ALL");
    let added = has("/capabilities/add");
    let adds_little = added
        .iter()
        .all(|it| it.as_str() == Some("NET_BIND_SERVICE"));
    check(&mut faults, adds_little, "capabilities add");
    let ports = container.at("/ports").items().iter();
    let mut host_ports = ports.filter_map(|port| port.at("/hostPort").as_i64());
    check(&mut faults, host_ports.all(|port| port == 0), "hostPort");
    faults.extend(probe_faults(container));
    let is_read_only = context.at("/readOnlyRootFilesystem").as_bool();
    check(
        &mut faults,
        is_read_only == Some(true),
        "readOnlyRootFilesystem",
    );
    for amount in [
        "requests/cpu",
        "requests/memory",
        "limits/cpu",
        "limits/memory",
    ] {
        let has_one = !container.at(&format!("/resources/{amount}")).is_null();
        check(&mut faults, has_one, amount);
    }
    faults
}

/// Probes and hooks of a container ask the container, not another host.
fn probe_faults(container: &Doc) -> Vec<String> {
    let holders = [
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle/postStart",
        "lifecycle/preStop",
    ];
    let actions = ["httpGet", "tcpSocket"];
    let places = holders.iter().flat_map(|holder| {
        actions
            .iter()
            .map(move |action| format!("/{holder}/{action}/host"))
    });
    let named = places.filter(|place| !container.str_at(place).is_empty());
    named.map(|place| format!("no host at {place}")).collect()
}

#[test]
fn every_pod_keeps_the_rules_of_the_restricted_profile() {
    let pods = pods();
    assert!(!pods.is_empty(), "there are no pods in deploy/");
    for (name, pod) in pods {
        assert_eq!(faults(&pod), Vec::<String>::new(), "{name}");
    }
}

/// A check that finds nothing is worth as much as what it would have found.
#[test]
fn every_rule_finds_a_pod_that_breaks_it() {
    let (_, sound) = pods().remove(0);
    let (pod, container) = ("/securityContext", "/containers/0/securityContext");
    let broken = [
        ("/hostNetwork".to_owned(), doc!(true)),
        ("/hostPID".to_owned(), doc!(true)),
        ("/hostIPC".to_owned(), doc!(true)),
        (
            "/volumes".to_owned(),
            doc!([{ "name": "v", "hostPath": { "path": "/" } }]),
        ),
        (
            format!("{pod}/sysctls"),
            doc!([{ "name": "kernel.msgmax", "value": "1" }]),
        ),
        (format!("{pod}/runAsUser"), doc!(0)),
        (format!("{pod}/runAsNonRoot"), doc!(false)),
        (
            format!("{pod}/seccompProfile"),
            doc!({ "type": "Unconfined" }),
        ),
        (format!("{pod}/seccompProfile"), Doc::NULL),
        (
            format!("{pod}/appArmorProfile"),
            doc!({ "type": "Unconfined" }),
        ),
        (format!("{pod}/seLinuxOptions"), doc!({ "user": "u" })),
        (
            format!("{pod}/windowsOptions"),
            doc!({ "hostProcess": true }),
        ),
        ("/automountServiceAccountToken".to_owned(), Doc::NULL),
        (format!("{container}/privileged"), doc!(true)),
        (format!("{container}/procMount"), doc!("Unmasked")),
        (format!("{container}/allowPrivilegeEscalation"), Doc::NULL),
        (
            format!("{container}/capabilities"),
            doc!({ "drop": ["KILL"] }),
        ),
        (format!("{container}/capabilities/add"), doc!(["SYS_ADMIN"])),
        (format!("{container}/readOnlyRootFilesystem"), Doc::NULL),
        ("/containers/0/ports/0/hostPort".to_owned(), doc!(80)),
        (
            "/containers/0/livenessProbe/httpGet/host".to_owned(),
            doc!("a.example"),
        ),
        ("/containers/0/resources/limits".to_owned(), Doc::NULL),
    ];
    for (place, value) in broken {
        let pod = sound.with(&place, value.clone()).unwrap();
        assert!(!faults(&pod).is_empty(), "{place} = {value} passes");
    }
}

#[test]
fn the_image_runs_as_a_user_that_is_a_number_and_not_root() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/Containerfile");
    let text = std::fs::read_to_string(path).unwrap();
    let user = text
        .lines()
        .filter_map(|line| line.strip_prefix("USER "))
        .next_back();
    let id = user.unwrap().split(':').next().unwrap();
    assert!(id.parse::<u32>().unwrap() > 0);
}

/// Creates a pod in a namespace that enforces the profile, without keeping it. Returns the refusal.
fn refusal(kubectl: impl Fn() -> std::process::Command, pod: &Doc) -> Option<String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    // The service account is of another namespace.
    let spec = pod.without("/serviceAccountName").unwrap();
    let spec = spec.with("/automountServiceAccountToken", false).unwrap();
    let object = doc!({ "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "restricted", "namespace": "restricted-test" }, "spec": spec });
    std::fs::write(file.path(), object.to_json()).unwrap();
    let output = kubectl()
        .args(["create", "--dry-run=server", "-f"])
        .arg(file.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(said)
}

#[test]
fn the_real_control_plane_admits_the_pods_where_it_enforces_the_profile() {
    let Some(server) = real_server() else { return };
    let file = tempfile::NamedTempFile::new().unwrap();
    let namespace = doc!({ "apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": "restricted-test",
        "labels": { "pod-security.kubernetes.io/enforce": "restricted" } } });
    std::fs::write(file.path(), namespace.to_json()).unwrap();
    let made = server
        .kubectl()
        .args(["apply", "-f"])
        .arg(file.path())
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    // The controller of service accounts does not run here.
    let args = [
        "create",
        "serviceaccount",
        "default",
        "-n",
        "restricted-test",
    ];
    let _ = server.kubectl().args(args).output().unwrap();
    for (name, pod) in pods() {
        assert_eq!(refusal(|| server.kubectl(), &pod), None, "{name}");
        let loose = pod.without("/securityContext/seccompProfile").unwrap();
        let said = refusal(|| server.kubectl(), &loose).expect("the profile is enforced");
        assert!(said.contains("violates PodSecurity"), "{said}");
    }
}
