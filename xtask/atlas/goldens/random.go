package main

import (
	"math/rand"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

type object = map[string]any

// maker makes random objects and patches.
type maker struct{ *rand.Rand }

func (m maker) one(of ...string) string { return of[m.Intn(len(of))] }

func (m maker) often() bool { return m.Intn(3) > 0 }

func (m maker) seldom() bool { return m.Intn(8) == 0 }

// some is a random selection in random order.
func (m maker) some(of ...string) []string {
	m.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	return of[:m.Intn(len(of)+1)]
}

func (m maker) list(names []string, item func(string) any) []any {
	items := []any{}
	for _, name := range names {
		items = append(items, item(name))
	}
	return items
}

func (m maker) object(kind schema.GroupVersionKind) object {
	whole := object{"metadata": m.metadata()}
	if kind == deployment {
		whole["spec"] = object{"template": object{"spec": m.podSpec()}}
		if m.often() {
			whole["spec"].(object)["strategy"] = m.strategy()
		}
		return whole
	}
	whole["spec"] = m.podSpec()
	return whole
}

func (m maker) metadata() object {
	made := object{"name": "web"}
	if m.often() {
		labels := object{}
		for _, key := range m.some("a", "b", "c") {
			labels[key] = m.one("1", "2")
		}
		made["labels"] = labels
	}
	if m.often() {
		made["finalizers"] = m.list(m.some("f/a", "f/b", "f/c", "f/d"), func(name string) any { return name })
	}
	return made
}

func (m maker) strategy() object {
	if m.Intn(2) == 0 {
		return object{"type": "Recreate"}
	}
	return object{"type": "RollingUpdate", "rollingUpdate": object{"maxSurge": m.Intn(3)}}
}

func (m maker) podSpec() object {
	made := object{"containers": m.list(m.some("a", "b", "c", "d"), m.container)}
	if m.often() {
		made["volumes"] = m.list(m.some("v", "w", "x"), m.volume)
	}
	if m.seldom() {
		made["tolerations"] = m.list(m.some("k", "l"), func(key string) any { return object{"key": key} })
	}
	if m.seldom() {
		made["hostNetwork"] = m.Intn(2) == 0
	}
	return made
}

func (m maker) container(name string) any {
	made := object{"name": name, "image": m.one("i:1", "i:2")}
	if m.Intn(2) == 0 {
		made["env"] = m.list(m.some("X", "Y", "Z"), func(name string) any {
			return object{"name": name, "value": m.one("1", "2")}
		})
	}
	if m.seldom() {
		made["args"] = m.list(m.some("-a", "-b"), func(name string) any { return name })
	}
	if m.seldom() {
		made["ports"] = []any{object{"containerPort": 80 + m.Intn(3)}, object{"containerPort": 443}}
	}
	if m.seldom() {
		made["resources"] = object{"limits": object{"cpu": m.one("1", "2")}}
	}
	return made
}

func (m maker) volume(name string) any {
	switch m.Intn(3) {
	case 0:
		return object{"name": name, "emptyDir": object{}}
	case 1:
		return object{"name": name, "hostPath": object{"path": m.one("/a", "/b")}}
	}
	return object{"name": name, "configMap": object{"name": m.one("c", "d")}}
}

// patch is an object of the kind with nulls, directives and faults strewn in.
func (m maker) patch(kind schema.GroupVersionKind) object {
	made := m.object(kind)
	m.spoil(made)
	return made
}

func (m maker) spoil(made object) {
	for _, key := range sortedKeys(made) {
		switch value := made[key].(type) {
		case object:
			m.spoil(value)
		case []any:
			m.spoilList(made, key, value)
		}
		if m.Intn(12) == 0 && key != "name" {
			made[key] = nil
		}
	}
	if m.Intn(25) == 0 {
		made["$patch"] = m.one("replace", "delete", "merge", "bogus")
	}
	if m.Intn(12) == 0 {
		made["$retainKeys"] = m.keys(made)
	}
}

func (m maker) spoilList(made object, key string, items []any) {
	for _, item := range items {
		inner, ok := item.(object)
		if !ok {
			continue
		}
		m.spoil(inner)
		if m.seldom() {
			inner["$patch"] = m.one("delete", "delete", "delete", "replace")
		}
		if m.Intn(60) == 0 {
			delete(inner, "name")
		}
	}
	if key == "finalizers" && m.Intn(2) == 0 {
		made["$deleteFromPrimitiveList/finalizers"] = m.list(m.some("f/x", "f/y"), func(name string) any { return name })
		delete(made, key)
	}
	if key == "finalizers" && m.Intn(3) == 0 && len(items) > 0 {
		order := m.list(m.some("f/a", "f/b", "f/c", "f/d"), func(name string) any { return name })
		made["$setElementOrder/finalizers"] = append(order, "f/e")
	}
	if (key == "containers" || key == "volumes") && m.Intn(3) == 0 && len(items) > 0 {
		order := []any{}
		for _, item := range items {
			if name, ok := item.(object)["name"]; ok {
				order = append(order, object{"name": name})
			}
			if m.seldom() {
				order = append(order, object{"name": m.one("a", "b", "v")})
			}
		}
		made["$setElementOrder/"+key] = order
		if m.seldom() {
			delete(made, key)
		}
	}
}

func (m maker) keys(made object) []any {
	keys := []any{}
	for _, key := range sortedKeys(made) {
		if !m.seldom() {
			keys = append(keys, key)
		}
	}
	return keys
}
