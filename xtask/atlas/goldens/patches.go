package main

import (
	"sort"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	pod        = gvk("", "v1", "Pod")
	deployment = gvk("apps", "v1", "Deployment")
	service    = gvk("", "v1", "Service")
	node       = gvk("", "v1", "Node")
	budget     = gvk("policy", "v1", "PodDisruptionBudget")
	revision   = gvk("apps", "v1", "ControllerRevision")
	definition = gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
)

func sortedKeys(of map[string]any) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

type chosenPatch struct {
	kind            schema.GroupVersionKind
	original, patch string
}

const two = `{"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"}]}}`

// chosenPatches are one of each rule and each fault.
var chosenPatches = []chosenPatch{
	// Objects.
	{pod, `{}`, `{}`},
	{pod, `{"metadata":{"labels":{"a":"1","b":"2"}}}`, `{"metadata":{"labels":{"a":null,"c":"3"}}}`},
	{pod, `{"metadata":{"labels":{"a":"1"}}}`, `{"metadata":{"labels":{"$patch":"replace","b":"2","c":null}}}`},
	{pod, `{"metadata":{"labels":{"a":"1"}}}`, `{"metadata":{"labels":{"$patch":"delete","b":"2"}}}`},
	{pod, `{"metadata":{"labels":{"a":"1"}}}`, `{"metadata":{"labels":{"$patch":"merge","b":"2"}}}`},
	{pod, `{"metadata":{"labels":{"a":"1"}}}`, `{"metadata":{"labels":{"$patch":7}}}`},
	{pod, `{"metadata":{"name":"a"}}`, `{"$patch":"replace","kind":"Pod"}`},
	{pod, `{"metadata":{"name":"a"}}`, `{"metadata":{"labels":{"a":null,"b":"1"}}}`},
	{pod, `{"metadata":{"name":"a"}}`, `{"metadata":{"labels":{"$patch":"delete"}}}`},
	{pod, `{"metadata":{"name":"a"}}`, `{"metadata":{"annotations":null}}`},
	{pod, `{"metadata":{"annotations":null}}`, `{"metadata":{"annotations":{"a":"b"}}}`},
	{pod, `{"spec":{"nodeName":"n"}}`, `{"spec":"text"}`},
	{pod, `{"spec":{"foo":{"a":1}}}`, `{"spec":{"foo":{"a":2}}}`},
	{pod, `{"spec":{"foo":[1]}}`, `{"spec":{"foo":[2]}}`},
	{pod, `{"spec":{"foo":1}}`, `{"spec":{"foo":2,"bar":{"a":null,"b":[{"c":null}]}}}`},
	{pod, `{"metadata":{"labels":{"a":{"b":"c"}}}}`, `{"metadata":{"labels":{"a":{"d":"e"}}}}`},
	{budget, `{"spec":{"selector":{"matchLabels":{"a":"1"}}}}`, `{"spec":{"selector":{"matchLabels":{"b":"1"},"matchExpressions":null}}}`},
	{revision, `{"data":{"a":{"b":1}}}`, `{"data":{"a":{"c":1}}}`},
	{revision, `{"data":{"a":1,"b":2}}`, `{"data":{"a":{"c":1},"b":null}}`},
	{definition, `{"spec":{"names":{"shortNames":["a"]}}}`, `{"spec":{"names":{"shortNames":["b"]}}}`},
	// Lists by key.
	{pod, two, `{"spec":{"containers":[{"name":"b","image":"2"}]}}`},
	{pod, two, `{"spec":{"containers":[{"name":"c","image":"1"}]}}`},
	{pod, two, `{"spec":{"containers":[{"name":"c","image":null,"$retainKeys":["name"]}]}}`},
	{pod, two, `{"spec":{"containers":[{"name":"a","$patch":"delete"}]}}`},
	{pod, two, `{"spec":{"containers":[{"name":"z","$patch":"delete"}]}}`},
	{pod, two, `{"spec":{"containers":[{"$patch":"delete"}]}}`},
	{pod, two, `{"spec":{"containers":[{"$patch":"replace"},{"name":"c"}]}}`},
	{pod, two, `{"spec":{"containers":[{"$patch":"replace"}]}}`},
	{pod, two, `{"spec":{"containers":[{"$patch":"merge"}]}}`},
	{pod, two, `{"spec":{"containers":[{"$patch":"bogus","name":"a"}]}}`},
	{pod, two, `{"spec":{"containers":[{"image":"2"}]}}`},
	{pod, two, `{"spec":{"containers":["a"]}}`},
	{pod, two, `{"spec":{"containers":[]}}`},
	{pod, two, `{"spec":{"containers":null}}`},
	{pod, two, `{"spec":{"containers":{"a":1}}}`},
	{pod, `{"spec":{"containers":[]}}`, `{"spec":{"containers":[]}}`},
	{pod, `{"spec":{"containers":[[]]}}`, `{"spec":{"containers":[]}}`},
	{pod, `{"spec":{"containers":[{"image":"1"}]}}`, `{"spec":{"containers":[{"name":"a"}]}}`},
	{pod, `{"spec":{"containers":[{"name":"a","image":"1"},{"name":"a","image":"2"}]}}`, `{"spec":{"containers":[{"name":"a","image":"3"}]}}`},
	{pod, `{"spec":{"nodeName":"n"}}`, `{"spec":{"containers":[{"name":"a","$patch":"delete"},{"name":"b","image":null}]}}`},
	{service, `{"spec":{"ports":[{"port":80,"protocol":"TCP"},{"port":80,"protocol":"UDP"}]}}`, `{"spec":{"ports":[{"port":80,"name":"x"},{"port":443}]}}`},
	{service, `{"spec":{"ports":[{"port":80}]}}`, `{"spec":{"ports":[{"port":"80"}]}}`},
	{pod, `{"metadata":{"ownerReferences":[{"uid":"1","name":"a"}]}}`, `{"metadata":{"ownerReferences":[{"uid":"1","$patch":"delete"},{"uid":"2"}]}}`},
	{node, `{"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Disk","status":"False"}]}}`, `{"$setElementOrder/conditions":[{"type":"Ready"}],"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}`},
	{node, `{"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Disk","status":"False"}]}}`, `{"status":{"$setElementOrder/conditions":[{"type":"Disk"},{"type":"Ready"}],"conditions":[{"type":"Ready","status":"Unknown"}]}}`},
	// Atomic lists.
	{pod, `{"spec":{"tolerations":[{"key":"a"}]}}`, `{"spec":{"tolerations":[{"key":"b","value":null}]}}`},
	{pod, `{"spec":{"containers":[{"name":"a","args":["1","2"]}]}}`, `{"spec":{"containers":[{"name":"a","args":["3"]}]}}`},
	// Lists of plain values.
	{pod, `{"metadata":{"finalizers":["a","b"]}}`, `{"metadata":{"finalizers":["c","b"]}}`},
	{pod, `{"metadata":{"finalizers":["a","b","a"]}}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a","z"]}}`},
	{pod, `{"metadata":{"finalizers":["a","b"]}}`, `{"metadata":{"$deleteFromPrimitiveList":["a"]}}`},
	{pod, `{"metadata":{"finalizers":["a","b"]}}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"$setElementOrder/finalizers":["c","b"],"finalizers":["c"]}}`},
	{pod, `{"metadata":{"finalizers":["a","b"]}}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":null}}`},
	{pod, `{"metadata":{"name":"a"}}`, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}}`},
	{pod, `{"metadata":{"finalizers":["a",1]}}`, `{"metadata":{"finalizers":["b"]}}`},
	{pod, `{"metadata":{"finalizers":["a","b"]}}`, `{"metadata":{"finalizers":null}}`},
	// The order of elements.
	{pod, two, `{"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]}}`},
	{pod, two, `{"spec":{"$setElementOrder/containers":[{"name":"c"},{"name":"b"},{"name":"a"}],"containers":[{"name":"c"}]}}`},
	{pod, two, `{"spec":{"$setElementOrder/containers":[{"name":"c"},{"name":"b"}],"containers":[{"name":"c"}]}}`},
	{pod, two, `{"spec":{"$setElementOrder/containers":[{"name":"b"}],"containers":[{"name":"c"}]}}`},
	{pod, two, `{"spec":{"$setElementOrder/containers":[{"name":"a"},{"name":"b"}],"containers":[{"name":"b"},{"name":"a"}]}}`},
	{pod, two, `{"spec":{"$setElementOrder/containers":[{"name":"b"}],"containers":[{"name":"a","$patch":"delete"}]}}`},
	{pod, two, `{"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"name":"a"},{"$patch":"replace"}]}}`},
	{pod, two, `{"spec":{"$setElementOrder/containers":[{"name":"a"},{"name":"b"}],"containers":[{"$patch":"replace"},{"name":"a"}]}}`},
	{pod, two, `{"spec":{"$setElementOrder/containers":[{"image":"b"}],"containers":[{"name":"c"}]}}`},
	{pod, two, `{"spec":{"$setElementOrder/containers":["a"]}}`},
	{pod, two, `{"spec":{"$setElementOrder/containers":"a"}}`},
	{pod, two, `{"spec":{"$setElementOrder":[]}}`},
	{pod, two, `{"spec":{"$setElementOrder/foo":[]}}`},
	{pod, two, `{"spec":{"$setElementOrder/securityContext":[]}}`},
	{pod, two, `{"spec":{"$setElementOrder/containers":[],"containers":null}}`},
	{pod, two, `{"spec":{"$setElementOrder/initContainers":[{"name":"b"}]}}`},
	{pod, two, `{"spec":{"$setElementOrder/initContainers":[{"name":"b"},{"name":"a"}],"initContainers":[{"name":"b","image":null},{"name":"a","env":[{"name":"x","$patch":"delete"}]}]}}`},
	{pod, two, `{"spec":{"$setElementOrder/initContainers":[],"initContainers":[]}}`},
	// Retained keys.
	{deployment, `{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}}}`, `{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}`},
	{deployment, `{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}}}`, `{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate","rollingUpdate":null}}}`},
	{deployment, `{"spec":{"strategy":{"type":"RollingUpdate"}}}`, `{"spec":{"strategy":{"$retainKeys":["rollingUpdate"],"type":"Recreate"}}}`},
	{deployment, `{"spec":{"strategy":{"type":"RollingUpdate"}}}`, `{"spec":{"strategy":{"$retainKeys":"type"}}}`},
	{deployment, `{"spec":{"replicas":1}}`, `{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}`},
	{pod, `{"spec":{"volumes":[{"name":"v","emptyDir":{}},{"name":"w","emptyDir":{}}]}}`, `{"spec":{"volumes":[{"name":"v","$retainKeys":["name","hostPath"],"hostPath":{"path":"/"}}]}}`},
	{pod, `{"metadata":{"finalizers":["a"]}}`, `{"metadata":{"$retainKeys":["finalizers"],"$setElementOrder/finalizers":["b","a"],"finalizers":["b"]}}`},
	// Not objects.
	{pod, `[]`, `{}`},
	{pod, `{}`, `[]`},
}
