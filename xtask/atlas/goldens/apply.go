package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
)

// step is one write to the object of a case.
type step struct {
	Manager string          `json:"manager"`
	Apply   bool            `json:"apply,omitempty"`
	Force   bool            `json:"force,omitempty"`
	Object  json.RawMessage `json:"object"`
}

func writeApply(out *bufio.Writer, known *runtime.Scheme, random int) error {
	for _, chosen := range chosenApplies {
		var steps []step
		if err := json.Unmarshal([]byte(chosen.steps), &steps); err != nil {
			return fmt.Errorf("%s: %w", chosen.steps, err)
		}
		if err := writeSteps(out, known, chosen.kind, steps); err != nil {
			return err
		}
	}
	kinds := []schema.GroupVersionKind{pod, deployment}
	for seed := range random {
		made := maker{rand.New(rand.NewSource(int64(seed)))}
		kind := kinds[seed%len(kinds)]
		var steps []step
		for range 2 + made.Intn(4) {
			steps = append(steps, step{
				Manager: made.one("a", "b", "c"), Apply: made.often(), Force: made.Intn(2) == 0,
				Object: toJSON(made.object(kind)),
			})
		}
		if err := writeSteps(out, known, kind, steps); err != nil {
			return err
		}
	}
	return nil
}

// writeSteps writes a case: kind, steps, and after each step the object or the error.
func writeSteps(out *bufio.Writer, known *runtime.Scheme, kind schema.GroupVersionKind, steps []step) error {
	manager, err := managedfields.NewDefaultFieldManager(
		applyconfigurations.NewTypeConverter(known), known, known, known, kind, kind.GroupVersion(), "", nil)
	if err != nil {
		return err
	}
	var live runtime.Object
	results := []any{}
	for _, step := range steps {
		next, err := takeStep(manager, known, kind, live, step)
		if err != nil {
			results = append(results, errorText(err))
			continue
		}
		live = next
		results = append(results, withoutTimes(live))
	}
	apiVersion, name := kind.ToAPIVersionAndKind()
	_, err = fmt.Fprintf(out, "%s %s\t%s\t%s\n", apiVersion, name, toJSON(steps), toJSON(results))
	return err
}

func takeStep(manager *managedfields.FieldManager, known *runtime.Scheme, kind schema.GroupVersionKind, live runtime.Object, step step) (runtime.Object, error) {
	var err error
	isNew := live == nil
	if isNew {
		if live, err = known.New(kind); err != nil {
			return nil, err
		}
		live.GetObjectKind().SetGroupVersionKind(kind)
	}
	var next runtime.Object
	if step.Apply {
		config := &unstructured.Unstructured{}
		if err := json.Unmarshal(step.Object, &config.Object); err != nil {
			return nil, err
		}
		config.SetGroupVersionKind(kind)
		next, err = manager.Apply(live.DeepCopyObject(), config, step.Manager, step.Force)
	} else {
		if next, err = known.New(kind); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(step.Object, next); err != nil {
			return nil, err
		}
		next.GetObjectKind().SetGroupVersionKind(kind)
		if !isNew {
			next.(metav1.Object).SetUID("uid")
		}
		next, err = manager.Update(live.DeepCopyObject(), next, step.Manager)
	}
	if err != nil {
		return nil, err
	}
	next.GetObjectKind().SetGroupVersionKind(kind)
	next.(metav1.Object).SetUID("uid")
	return next, nil
}

// withoutTimes is an object whose entries of managed fields are in an order that does not depend
// on the clock.
func withoutTimes(from runtime.Object) runtime.Object {
	copied := from.DeepCopyObject()
	accessor := copied.(metav1.Object)
	entries := accessor.GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	sort.Slice(entries, func(i, j int) bool {
		return fmt.Sprint(entries[i].Operation, entries[i].Manager) < fmt.Sprint(entries[j].Operation, entries[j].Manager)
	})
	accessor.SetManagedFields(entries)
	return copied
}

// errorText leaves out how upstream names the object.
func errorText(err error) string {
	text := err.Error()
	if at := strings.Index(text, "): "); strings.HasPrefix(text, "failed to create typed patch object") && at >= 0 {
		return text[at+3:]
	}
	return text
}

type chosenApply struct {
	kind  schema.GroupVersionKind
	steps string
}

var chosenApplies = []chosenApply{
	{deployment, `[{"manager":"a","apply":true,"object":{"metadata":{"name":"web","labels":{"a":"1"}},"spec":{"replicas":3,"selector":{"matchLabels":{"a":"1"}},"template":{"metadata":{"labels":{"a":"1"}},"spec":{"containers":[{"name":"web","image":"web:1","ports":[{"containerPort":80}],"resources":{"limits":{"cpu":"1"}}}]}}}}},{"manager":"b","object":{"metadata":{"name":"web","labels":{"a":"1"}},"spec":{"replicas":5,"selector":{"matchLabels":{"a":"1"}},"template":{"metadata":{"labels":{"a":"1"}},"spec":{"containers":[{"name":"web","image":"web:1","ports":[{"containerPort":80}],"resources":{"limits":{"cpu":"1"}}}]}}}}},{"manager":"a","apply":true,"object":{"metadata":{"name":"web"},"spec":{"replicas":3}}},{"manager":"a","apply":true,"force":true,"object":{"metadata":{"name":"web"},"spec":{"replicas":3}}}]`},
	{pod, `[{"manager":"k","object":{"metadata":{"name":"p","finalizers":["f/a","f/b"],"annotations":{"x":"y"}},"spec":{"containers":[{"name":"a","image":"1"}],"volumes":[{"name":"v","emptyDir":{}}],"affinity":{},"nodeSelector":{"d":"e"}}}},{"manager":"m","apply":true,"object":{"metadata":{"name":"p","finalizers":["f/c"]},"spec":{"containers":[{"name":"b","image":"1"},{"name":"a"}]}}},{"manager":"m","apply":true,"object":{"metadata":{"name":"p"},"spec":{"containers":[{"name":"a"}]}}},{"manager":"m","apply":true,"object":{"metadata":{"name":"p"}}}]`},
	{service, `[{"manager":"m","apply":true,"object":{"metadata":{"name":"s"},"spec":{"ports":[{"port":80},{"port":80,"protocol":"UDP","targetPort":"dns"}],"selector":{"a":"b"}}}},{"manager":"n","apply":true,"object":{"metadata":{"name":"s"},"spec":{"ports":[{"port":443,"protocol":"TCP"}],"selector":{"c":"d"}}}},{"manager":"n","apply":true,"force":true,"object":{"metadata":{"name":"s"},"spec":{"ports":[{"port":443,"protocol":"TCP","name":"<&>"}],"selector":{"c":"d"}}}}]`},
	{pod, `[{"manager":"m","apply":true,"object":{"metadata":{"name":"p"},"spec":{"foo":1}}},{"manager":"m","apply":true,"object":{"metadata":{"name":"p"},"spec":{"containers":[{"name":"a"},{"name":"a"}]}}},{"manager":"m","apply":true,"object":{"metadata":{"name":"p","managedFields":[{}]}}}]`},
	{node, `[{"manager":"kubelet","object":{"metadata":{"name":"n"},"status":{"conditions":[{"type":"Ready","status":"True"}],"addresses":[{"type":"Hostname","address":"n"}],"capacity":{"cpu":"4"}}}},{"manager":"m","apply":true,"object":{"metadata":{"name":"n"},"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]},"status":{"conditions":[{"type":"Disk","status":"False"}]}}},{"manager":"","object":{"metadata":{"name":"n"},"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}}}]`},
	{pod, `[{"manager":"kubectl-client-side-apply","object":{"metadata":{"name":"p","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"n\",\"hostname\":\"h\"}}"}},"spec":{"nodeName":"n","hostname":"h","subdomain":"s","containers":[]}}},{"manager":"kubectl","apply":true,"object":{"metadata":{"name":"p"},"spec":{"nodeName":"m","subdomain":"<x>"}}},{"manager":"kubectl","apply":true,"object":{"metadata":{"name":"p"},"spec":{"nodeName":"m","hostname":"<h>"}}},{"manager":"other","apply":true,"object":{"metadata":{"name":"p"},"spec":{"hostname":"i"}}}]`},
	{pod, `[{"manager":"m1","object":{"metadata":{"name":"p","labels":{"a":"1"}}}},{"manager":"m2","object":{"metadata":{"name":"p","labels":{"a":"1","b":"1"}}}},{"manager":"m3","object":{"metadata":{"name":"p","labels":{"a":"1","b":"2"}}}},{"manager":"m4","object":{"metadata":{"name":"p","managedFields":[]}}},{"manager":"m5","object":{"metadata":{"name":"p","labels":{"c":"1"}}}},{"manager":"m6","apply":true,"object":{"metadata":{"name":"p","labels":{"d":"1"}}}}]`},
}
