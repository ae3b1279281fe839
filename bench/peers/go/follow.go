package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// follow runs an informer over the pods of one namespace, with the settings client-go has by
// default, and prints a line for everything its handler is told. It ends with the pod "last".
func follow(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("follow", flag.ContinueOnError)
	namespace := flags.String("namespace", "default", "whose pods")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	config, err := config()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(
		client, 0, informers.WithNamespace(*namespace))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(newPrinter(cancel))
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%v has not synced", kind)
		}
	}
	<-ctx.Done()
	return nil
}

// newPrinter prints what happens, and ends the program with the last pod. An informer calls its
// handler from one goroutine, so lines do not mix.
func newPrinter(cancel context.CancelFunc) cache.ResourceEventHandler {
	out := bufio.NewWriter(os.Stdout)
	line := func(word string, object any) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			word, object = "UNKNOWN", unknown.Obj
		}
		pod, ok := object.(*corev1.Pod)
		if !ok {
			fmt.Fprintf(out, "ERROR %T\n", object)
		} else {
			fmt.Fprintf(out, "%s %s %s\n", word, pod.Name, pod.ResourceVersion)
		}
		out.Flush()
		if ok && pod.Name == "last" {
			cancel()
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { line("ADDED", object) },
		UpdateFunc: func(_, object any) { line("MODIFIED", object) },
		DeleteFunc: func(object any) { line("DELETED", object) },
	}
}
