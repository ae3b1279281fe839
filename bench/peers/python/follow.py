"""Lists and watches the pods of one namespace with the client `kubernetes`, and prints a line for
each object and event. Ends with the pod "last"."""

import sys
import time

import urllib3
from kubernetes import client, config, watch

# How long to wait before a watch that broke is opened again.
PAUSE_S = 0.1


def show(word, pod):
    print(word, pod.metadata.name, pod.metadata.resource_version, flush=True)


def follow(api, namespace, revision):
    """Prints events after a revision until the watch breaks. Returns where it stopped, and whether
    that was at the last pod."""
    stream = watch.Watch()
    try:
        for event in stream.stream(
            api.list_namespaced_pod, namespace, resource_version=revision
        ):
            pod = event["object"]
            revision = pod.metadata.resource_version
            show(event["type"], pod)
            if pod.metadata.name == "last":
                return revision, True
    except urllib3.exceptions.HTTPError:
        time.sleep(PAUSE_S)
    return revision, False


def main():
    namespace = sys.argv[1]
    config.load_kube_config()
    api = client.CoreV1Api()
    pods = api.list_namespaced_pod(namespace)
    for pod in pods.items:
        show("ADDED", pod)
    revision, is_over = pods.metadata.resource_version, False
    while not is_over:
        revision, is_over = follow(api, namespace, revision)


main()
