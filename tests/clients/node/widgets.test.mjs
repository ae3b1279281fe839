// @ts-check
// An ordinary suite with the official client. It finds its cluster by KUBECONFIG. Types are checked in
// comments, so that it runs on any Node.
import assert from "node:assert/strict";
import { test } from "node:test";

import { CoreV1Api, CustomObjectsApi, KubeConfig } from "@kubernetes/client-node";

const config = new KubeConfig();
config.loadFromDefault();
const widgets = config.makeApiClient(CustomObjectsApi);
const core = config.makeApiClient(CoreV1Api);
const place = { group: "example.com", version: "v1", namespace: "default", plural: "widgets" };

/** @param {string} name @param {number} size */
function widget(name, size) {
  return { apiVersion: "example.com/v1", kind: "Widget", metadata: { name }, spec: { size } };
}

test("a widget is kept, and found in a list", async () => {
  await widgets.createNamespacedCustomObject({ ...place, body: widget("three", 3) });
  const list = await widgets.listNamespacedCustomObject(place);
  assert.deepEqual(list.items.map((item) => item.metadata.name), ["three"]);
});

test("the schema is enforced", async () => {
  const made = widgets.createNamespacedCustomObject({ ...place, body: widget("none", 0) });
  await assert.rejects(made, (error) => error.code === 422);
});

test("namespaces are there", async () => {
  const list = await core.listNamespace();
  assert.ok(list.items.some((namespace) => namespace.metadata?.name === "default"));
});
