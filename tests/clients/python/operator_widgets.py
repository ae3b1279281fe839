"""An ordinary kopf operator: a ConfigMap for each widget."""

import kopf
import kubernetes


@kopf.on.login()
def login(**kwargs):
    return kopf.login_with_kubeconfig(**kwargs)


@kopf.on.create("example.com", "v1", "widgets")
def create(name, namespace, spec, **_):
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"size": str(spec["size"])},
    }
    kopf.adopt(body)
    kubernetes.config.load_kube_config()
    kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, body)
    return {"configMap": name}
