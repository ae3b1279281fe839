// Prints the facts about the built-in types of Kubernetes that windlass works by.
//
// It reads the Go sources of the pinned modules: struct tags, markers in comments, and the lists
// of registered kinds. The format of the output is described in crates/atlas/src/table/parse.rs.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

// The packages whose kinds are served or read, in the order they are printed.
var groups = []struct{ module, dir string }{
	{"k8s.io/apimachinery", "pkg/apis/meta/v1"},
	{"k8s.io/api", "core/v1"},
	{"k8s.io/api", "admission/v1"},
	{"k8s.io/api", "admissionregistration/v1"},
	{"k8s.io/apiextensions-apiserver", "pkg/apis/apiextensions/v1"},
	{"k8s.io/kube-aggregator", "pkg/apis/apiregistration/v1"},
	{"k8s.io/api", "apidiscovery/v2"},
	{"k8s.io/api", "apps/v1"},
	{"k8s.io/api", "authentication/v1"},
	{"k8s.io/api", "authorization/v1"},
	{"k8s.io/api", "autoscaling/v1"},
	{"k8s.io/api", "autoscaling/v2"},
	{"k8s.io/api", "batch/v1"},
	{"k8s.io/api", "certificates/v1"},
	{"k8s.io/api", "coordination/v1"},
	{"k8s.io/api", "discovery/v1"},
	{"k8s.io/api", "events/v1"},
	{"k8s.io/api", "flowcontrol/v1"},
	{"k8s.io/api", "networking/v1"},
	{"k8s.io/api", "node/v1"},
	{"k8s.io/api", "policy/v1"},
	{"k8s.io/api", "rbac/v1"},
	{"k8s.io/api", "resource/v1"},
	{"k8s.io/api", "scheduling/v1"},
	{"k8s.io/api", "storage/v1"},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "facts:", err)
		os.Exit(1)
	}
}

func run() error {
	world := newWorld(moduleDir)
	var packages []*pkg
	for _, group := range groups {
		found, err := world.load(group.module + "/" + group.dir)
		if err != nil {
			return err
		}
		packages = append(packages, found)
	}
	for _, each := range packages {
		for name := range each.kinds {
			if err := world.reach(each, name); err != nil {
				return err
			}
		}
	}
	dir, err := moduleDir("k8s.io/api")
	if err != nil {
		return err
	}
	_, version, _ := strings.Cut(filepath.Base(dir), "@v0.")
	out := bufio.NewWriter(os.Stdout)
	fmt.Fprintf(out, "; Facts about the built-in types of Kubernetes 1.%s. Made by `cargo xtask atlas`; do not edit.\n",
		version)
	for _, each := range packages {
		printPackage(out, each)
	}
	return out.Flush()
}

func printPackage(out *bufio.Writer, from *pkg) {
	group := from.group
	if group == "" {
		group = "-"
	}
	fmt.Fprintf(out, "@ %s %s\n", from.name, group)
	names := make([]string, 0, len(from.found))
	for name := range from.found {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		out.WriteString(from.found[name])
	}
}

// moduleDir is where a module of this build stands on the disk.
func moduleDir(module string) (string, error) {
	text, err := exec.Command("go", "list", "-m", "-json", module).Output()
	if err != nil {
		return "", fmt.Errorf("go list -m %s: %w", module, err)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(text, &found); err != nil {
		return "", err
	}
	if found.Dir == "" {
		return "", fmt.Errorf("module %s is not downloaded", module)
	}
	return found.Dir, nil
}
