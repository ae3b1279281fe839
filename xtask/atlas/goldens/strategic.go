package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// Upstream walks maps in random order. What differs between this many runs is not a fact.
const runs = 12

func writeStrategic(out *bufio.Writer, known *runtime.Scheme, random int) error {
	for _, chosen := range chosenPatches {
		kind, original := chosen.kind, chosen.original
		if err := writePatch(out, known, kind, []byte(original), []byte(chosen.patch)); err != nil {
			return err
		}
	}
	kinds := []schema.GroupVersionKind{pod, deployment}
	for seed := range random {
		made := maker{rand.New(rand.NewSource(int64(seed)))}
		kind := kinds[seed%len(kinds)]
		live := toJSON(made.object(kind))
		patch := toJSON(made.patch(kind))
		if seed%4 < 2 {
			// What a client computes from two versions, applied to a third.
			object, err := known.New(kind)
			if err != nil {
				return err
			}
			before, after := toJSON(made.object(kind)), toJSON(made.object(kind))
			computed, err := strategicpatch.CreateTwoWayMergePatch(before, after, object)
			if err != nil {
				continue
			}
			patch = computed
		}
		if err := writePatch(out, known, kind, live, patch); err != nil {
			return err
		}
	}
	return nil
}

func writePatch(out *bufio.Writer, known *runtime.Scheme, kind schema.GroupVersionKind, original, patch []byte) error {
	object, err := known.New(kind)
	if err != nil {
		return err
	}
	first, ok := applyPatch(object, original, patch)
	for range runs {
		again, okAgain := applyPatch(object, original, patch)
		if !ok || !okAgain || again != first {
			return nil
		}
	}
	apiVersion, name := kind.ToAPIVersionAndKind()
	_, err = fmt.Fprintf(out, "%s %s\t%s\t%s\t%s\n", apiVersion, name, original, patch, first)
	return err
}

// applyPatch is the result, or the error behind an exclamation mark; not ok if upstream panics.
func applyPatch(object runtime.Object, original, patch []byte) (result string, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	merged, err := strategicpatch.StrategicMergePatch(original, patch, object)
	if err != nil {
		return "!" + strings.ReplaceAll(err.Error(), "\n", "\\n"), true
	}
	return string(merged), true
}

func toJSON(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}
