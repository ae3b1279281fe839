package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand"
	"sort"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

func writeProtobuf(out *bufio.Writer, known *runtime.Scheme, random int) error {
	for _, chosen := range chosenObjects {
		object, err := known.New(chosen.kind)
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(chosen.json), object); err != nil {
			return fmt.Errorf("%s: %w", chosen.json, err)
		}
		if err := writePair(out, known, chosen.kind, object); err != nil {
			return err
		}
	}
	for _, kind := range randomKinds(known) {
		for seed := range random {
			object, err := known.New(kind)
			if err != nil {
				return err
			}
			filler(int64(seed)).Fill(object)
			if err := writePair(out, known, kind, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// writePair writes an object as protobuf, and as the JSON of what that protobuf is read as.
func writePair(out *bufio.Writer, known *runtime.Scheme, kind schema.GroupVersionKind, object runtime.Object) error {
	serializer := protobuf.NewSerializer(known, known)
	object.GetObjectKind().SetGroupVersionKind(kind)
	var wire bytes.Buffer
	if err := serializer.Encode(object, &wire); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	read, _, err := serializer.Decode(wire.Bytes(), nil, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	text, err := json.Marshal(read)
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	apiVersion, name := kind.ToAPIVersionAndKind()
	_, err = fmt.Fprintf(out, "%s %s\t%s\t%s\n", apiVersion, name, hex.EncodeToString(wire.Bytes()), text)
	return err
}

func randomKinds(known *runtime.Scheme) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for kind := range known.AllKnownTypes() {
		if kind.Version == runtime.APIVersionInternal || strings.HasSuffix(kind.Kind, "List") || kind.Kind == "WatchEvent" {
			continue
		}
		kinds = append(kinds, kind)
	}
	sort.Slice(kinds, func(i, j int) bool { return kinds[i].String() < kinds[j].String() })
	return kinds
}

// filler fills objects at random, with values that both encodings can hold.
func filler(seed int64) *randfill.Filler {
	return randfill.New().NilChance(0.5).NumElements(0, 2).MaxDepth(14).RandSource(rand.NewSource(seed)).Funcs(
		func(value *metav1.Time, c randfill.Continue) {
			*value = metav1.Time{}
			if c.Bool() {
				value.Time = time.Unix(c.Int63n(4_000_000_000), c.Int63n(1_000_000_000))
			}
		},
		func(value *metav1.MicroTime, c randfill.Continue) {
			*value = metav1.MicroTime{}
			if c.Bool() {
				value.Time = time.Unix(c.Int63n(4_000_000_000), c.Int63n(1_000_000_000))
			}
		},
		func(value *resource.Quantity, c randfill.Continue) {
			formats := []resource.Format{resource.DecimalSI, resource.BinarySI, resource.DecimalExponent}
			*value = *resource.NewMilliQuantity(c.Int63n(1<<50), formats[c.Intn(3)])
		},
		func(value *intstr.IntOrString, c randfill.Continue) {
			*value = intstr.FromInt32(c.Int31())
			if c.Bool() {
				*value = intstr.FromString(c.String(10))
			}
		},
		func(value *runtime.RawExtension, c randfill.Continue) {
			*value = runtime.RawExtension{}
			if c.Bool() {
				value.Raw = []byte(`{"a":[1,"b",null]}`)
			}
		},
		func(value *metav1.FieldsV1, c randfill.Continue) {
			value.SetRawBytes([]byte(`{"f:metadata":{"f:labels":{".":{}}}}`))
		},
		func(value *apiextensionsv1.JSON, c randfill.Continue) {
			*value = apiextensionsv1.JSON{}
			if c.Bool() {
				value.Raw = []byte(`[1.5,true]`)
			}
		},
		func(value *runtime.Object, c randfill.Continue) {},
		func(value *string, c randfill.Continue) {
			*value = []string{"", "a", "web", "ünïcode <&> \u2028", "a \"quoted\"\n line"}[c.Intn(5)]
		},
		func(value *float64, c randfill.Continue) {
			*value = []float64{0, 1, -2.5, 1e21, 1e300, 0.1, 123456789}[c.Intn(7)]
		},
	)
}
