package main

import (
	"context"
	"errors"
	"flag"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// list reads a list of all pods as JSON, keeps it and prints what that cost.
func list(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("list", flag.ContinueOnError)
	url := flags.String("url", "", "address of the server")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	config := &rest.Config{Host: *url, QPS: -1}
	config.ContentType = "application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	cpuBefore, err := cpuTime()
	if err != nil {
		return err
	}
	wallBefore := time.Now()
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	wall := time.Since(wallBefore)
	cpu, err := cpuTime()
	if err != nil {
		return err
	}
	if pods.ResourceVersion == "" {
		return errors.New("a list without a resource version")
	}
	peak, err := peakBytes()
	if err != nil {
		return err
	}
	return printNumbers(map[string]float64{
		"pods":        float64(len(pods.Items)),
		"list_cpu_s":  (cpu - cpuBefore).Seconds(),
		"list_wall_s": wall.Seconds(),
		"peak_mb":     peak / 1e6,
	})
}
