//! What people see of quotas: kubectl makes one, and is told when it is used up.

use crate::kubectl::Kubectl;
use crate::process::Process;

const CLAIMS: &str = "count/resourceclaims.resource.k8s.io";

const CLAIM: &str = "
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: { name: first }
spec: { devices: { requests: [{ name: gpu, exactly: { deviceClassName: gpu.example.com } }] } }
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_makes_a_quota_and_is_told_when_it_is_used_up() {
    let data = tempfile::tempdir().unwrap();
    let server = Process::up(data.path(), &["--nodes", "1"]).await;
    let Some(kubectl) = Kubectl::of(&server, data.path()) else {
        return;
    };
    let hard = format!("--hard=pods=2,requests.cpu=1,{CLAIMS}=1");
    kubectl.run(&["create", "quota", "small", &hard]).await;
    let quota = "resourcequota/small";
    kubectl.wait("jsonpath={.status.used.pods}=0", quota).await;
    kubectl.apply(CLAIM).await;
    let second = data.path().join("second.yaml");
    std::fs::write(&second, CLAIM.replace("first", "second")).unwrap();
    let said = kubectl
        .fail(&["create", "-f", &second.display().to_string()])
        .await;
    let expected = format!(
        "resourceclaims.resource.k8s.io \"second\" is forbidden: exceeded quota: small, \
         requested: {CLAIMS}=1, used: {CLAIMS}=1, limited: {CLAIMS}=1"
    );
    assert!(said.contains(&expected), "{said}");

    let said = kubectl.fail(&["run", "web", "--image=web:1"]).await;
    let expected = "pods \"web\" is forbidden: failed quota: small: must specify requests.cpu for: \
                    web";
    assert!(said.contains(expected), "{said}");

    // A Deployment that may have two of its three pods says so.
    kubectl
        .run(&[
            "create",
            "deployment",
            "web",
            "--image=web:1",
            "--replicas=0",
        ])
        .await;
    let words = ["set", "resources", "deployment/web", "--requests=cpu=100m"];
    kubectl.run(&words).await;
    kubectl
        .run(&["scale", "deployment/web", "--replicas=3"])
        .await;
    kubectl
        .wait("condition=ReplicaFailure", "deployment/web")
        .await;
    kubectl
        .wait("jsonpath={.status.readyReplicas}=2", "deployment/web")
        .await;
    kubectl
        .describes(quota, &["pods", "requests.cpu", "200m", CLAIMS])
        .await;
    let table = kubectl.run(&["get", "quota"]).await;
    assert!(table.contains("pods: 2/2"), "{table}");
    kubectl
        .run(&["scale", "deployment/web", "--replicas=1"])
        .await;
    kubectl.wait("jsonpath={.status.used.pods}=1", quota).await;
}
