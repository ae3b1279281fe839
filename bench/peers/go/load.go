package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// lineLimit is more than any line of input is long.
const lineLimit = 1 << 20

// pod is one line of input: the key, and for the command load also the body of the create and, if
// the pod has one, the status; separated by tabs.
type pod struct {
	namespace, name string
	create, status  []byte
}

// load creates the pods that standard input lists, in parallel.
func load(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	workers := flags.Int("workers", 32, "requests in flight")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	client, err := restClient()
	if err != nil {
		return err
	}
	var namespaces sync.Map
	start := time.Now()
	count, err := parallel(*workers, readPods(os.Stdin), func(p pod) error {
		ensure, _ := namespaces.LoadOrStore(p.namespace, sync.OnceValue(func() error {
			return createNamespace(ctx, client, p.namespace)
		}))
		if err := ensure.(func() error)(); err != nil {
			return err
		}
		return createPod(ctx, client, p)
	})
	if err != nil {
		return err
	}
	return printNumbers(map[string]float64{"pods": count, "wall_s": time.Since(start).Seconds()})
}

// update changes the pods that standard input lists, over and over, as fast as the server can.
func update(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("update", flag.ContinueOnError)
	workers := flags.Int("workers", 32, "requests in flight")
	limit := flags.Int("count", 50000, "how many updates")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	client, err := restClient()
	if err != nil {
		return err
	}
	var pods []pod
	for p, err := range readPods(os.Stdin) {
		if err != nil {
			return err
		}
		pods = append(pods, p)
	}
	if len(pods) == 0 {
		return errors.New("no pods to update")
	}
	updates := func(yield func(pod, error) bool) {
		for i := range *limit {
			p := pods[i%len(pods)]
			p.status = fmt.Appendf(nil, `{"phase":"Running","message":"update %d"}`, i)
			if !yield(p, nil) {
				return
			}
		}
	}
	start := time.Now()
	count, err := parallel(*workers, updates, func(p pod) error { return patchStatus(ctx, client, p) })
	if err != nil {
		return err
	}
	seconds := time.Since(start).Seconds()
	return printNumbers(map[string]float64{"updates": count, "wall_s": seconds, "updates_per_s": count / seconds})
}

func restClient() (rest.Interface, error) {
	config, err := config()
	if err != nil {
		return nil, err
	}
	config.ContentType = "application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.CoreV1().RESTClient(), nil
}

// readPods yields the lines of the input until its end or the first error.
func readPods(input io.Reader) func(yield func(pod, error) bool) {
	return func(yield func(pod, error) bool) {
		lines := bufio.NewScanner(input)
		lines.Buffer(nil, lineLimit)
		for lines.Scan() {
			fields := bytes.Split(bytes.Clone(lines.Bytes()), []byte{'\t'})
			namespace, name, ok := strings.Cut(string(fields[0]), "/")
			if !ok {
				yield(pod{}, fmt.Errorf("no key at the start of %.80q", lines.Text()))
				return
			}
			p := pod{namespace: namespace, name: name}
			if len(fields) > 1 {
				p.create = fields[1]
			}
			if len(fields) > 2 {
				p.status = fields[2]
			}
			if !yield(p, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(pod{}, err)
		}
	}
}

// parallel calls do for each pod from several goroutines, and returns how many calls succeeded.
// It stops at the first error.
func parallel(workers int, pods func(yield func(pod, error) bool), do func(pod) error) (float64, error) {
	work := make(chan pod, workers)
	failed := make(chan error, workers)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for p := range work {
				if err := do(p); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	count := 0.0
	err := feed(pods, work, failed, &count)
	close(work)
	group.Wait()
	if err == nil && len(failed) > 0 {
		err = <-failed
	}
	return count, err
}

func feed(pods func(yield func(pod, error) bool), work chan<- pod, failed <-chan error, count *float64) error {
	for p, err := range pods {
		if err != nil {
			return err
		}
		select {
		case work <- p:
			*count++
		case err := <-failed:
			return err
		}
	}
	return nil
}

func createNamespace(ctx context.Context, client rest.Interface, name string) error {
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)
	err := client.Post().Resource("namespaces").Body([]byte(body)).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// createPod creates a pod in the name of the controller manager, and then reports its status in
// the name of the kubelet, so that the managed fields are those of a real cluster.
func createPod(ctx context.Context, client rest.Interface, p pod) error {
	request := client.Post().Namespace(p.namespace).Resource("pods")
	request.Param("fieldManager", "kube-controller-manager")
	if err := request.Body(p.create).Do(ctx).Error(); err != nil {
		return fmt.Errorf("creating %s/%s: %w", p.namespace, p.name, err)
	}
	if len(p.status) == 0 {
		return nil
	}
	return patchStatus(ctx, client, p)
}

func patchStatus(ctx context.Context, client rest.Interface, p pod) error {
	request := client.Patch(types.MergePatchType).Namespace(p.namespace).Resource("pods")
	request.Name(p.name).SubResource("status").Param("fieldManager", "kubelet")
	body := fmt.Appendf(nil, `{"status":%s}`, p.status)
	if err := request.Body(body).Do(ctx).Error(); err != nil {
		return fmt.Errorf("updating %s/%s: %w", p.namespace, p.name, err)
	}
	return nil
}
