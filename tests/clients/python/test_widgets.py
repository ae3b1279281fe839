"""An ordinary pytest suite of a kopf operator. It finds its cluster by KUBECONFIG."""

import pathlib
import time

import kubernetes
import pytest
from kopf.testing import KopfRunner

OPERATOR = pathlib.Path(__file__).with_name("operator_widgets.py")


@pytest.fixture
def api():
    kubernetes.config.load_kube_config()
    return kubernetes.client.ApiClient()


def eventually(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while True:
        try:
            return condition()
        except kubernetes.client.ApiException as error:
            if error.status != 404 or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def test_a_widget_gets_its_config_map(api):
    widgets = kubernetes.client.CustomObjectsApi(api)
    maps = kubernetes.client.CoreV1Api(api)
    body = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "three"},
        "spec": {"size": 3},
    }
    with KopfRunner(["run", "--all-namespaces", str(OPERATOR)], timeout=30) as runner:
        made = widgets.create_namespaced_custom_object("example.com", "v1", "default", "widgets", body)
        found = eventually(lambda: maps.read_namespaced_config_map("three", "default"))
    assert runner.exit_code == 0, runner.output
    assert found.data == {"size": "3"}
    assert found.metadata.owner_references[0].uid == made["metadata"]["uid"]


def test_the_schema_is_enforced(api):
    widgets = kubernetes.client.CustomObjectsApi(api)
    body = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "none"},
        "spec": {"size": 0},
    }
    with pytest.raises(kubernetes.client.ApiException) as refused:
        widgets.create_namespaced_custom_object("example.com", "v1", "default", "widgets", body)
    assert refused.value.status == 422
