package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Limits of the phases, so that a contestant that is stuck ends.
const (
	syncLimit  = 5 * time.Minute
	drainLimit = time.Minute
	drainQuiet = time.Second
)

// informer holds all pods in a shared informer. It prints the cost of that when it has synced,
// then counts events between the lines "start" and "stop" on standard input.
func informer(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("informer", flag.ContinueOnError)
	contentType := flags.String("content-type", "protobuf", "json or protobuf")
	trim := flags.Bool("trim", false, "drop the managed fields of each object")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	config, err := config()
	if err != nil {
		return err
	}
	switch *contentType {
	case "json":
		config.ContentType = "application/json"
	case "protobuf":
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = config.ContentType + ",application/json"
	default:
		return fmt.Errorf("unknown content type %q", *contentType)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	if *trim {
		if err := pods.SetTransform(dropManagedFields); err != nil {
			return err
		}
	}
	return measureInformer(ctx, factory, pods)
}

func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

func measureInformer(
	ctx context.Context, factory informers.SharedInformerFactory, pods cache.SharedIndexInformer,
) error {
	var events atomic.Int64
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { events.Add(1) },
		UpdateFunc: func(any, any) { events.Add(1) },
		DeleteFunc: func(any) { events.Add(1) },
	}
	registration, err := pods.AddEventHandler(handler)
	if err != nil {
		return err
	}
	rssBefore, heapBefore, err := settledMemory()
	if err != nil {
		return err
	}
	cpuBefore, err := cpuTime()
	if err != nil {
		return err
	}
	wallBefore := time.Now()
	factory.Start(ctx.Done())
	synced, cancel := context.WithTimeout(ctx, syncLimit)
	defer cancel()
	if !cache.WaitForCacheSync(synced.Done(), registration.HasSynced) {
		return errors.New("not synced in time")
	}
	wall := time.Since(wallBefore)
	cpu, err := cpuTime()
	if err != nil {
		return err
	}
	rss, heap, err := settledMemory()
	if err != nil {
		return err
	}
	count := float64(len(pods.GetStore().ListKeys()))
	err = printNumbers(map[string]float64{
		"pods":               count,
		"rss_bytes_per_pod":  (rss - rssBefore) / count,
		"heap_bytes_per_pod": (heap - heapBefore) / count,
		"sync_cpu_s":         (cpu - cpuBefore).Seconds(),
		"sync_wall_s":        wall.Seconds(),
	})
	if err != nil {
		return err
	}
	return countEvents(&events)
}

// countEvents measures from the line "start" to the line "stop", plus the time that events still
// take to arrive.
func countEvents(events *atomic.Int64) error {
	input := bufio.NewScanner(os.Stdin)
	if !input.Scan() || input.Text() != "start" {
		return input.Err()
	}
	countBefore := events.Load()
	cpuBefore, err := cpuTime()
	if err != nil {
		return err
	}
	if !input.Scan() {
		return errors.New("standard input ended before the line \"stop\"")
	}
	drain(events)
	cpu, err := cpuTime()
	if err != nil {
		return err
	}
	count := float64(events.Load() - countBefore)
	return printNumbers(map[string]float64{
		"events":           count,
		"events_cpu_s":     (cpu - cpuBefore).Seconds(),
		"events_per_cpu_s": count / (cpu - cpuBefore).Seconds(),
	})
}

// drain returns when no event has come for a while.
func drain(events *atomic.Int64) {
	for deadline := time.Now().Add(drainLimit); time.Now().Before(deadline); {
		before := events.Load()
		time.Sleep(drainQuiet)
		if events.Load() == before {
			return
		}
	}
}
