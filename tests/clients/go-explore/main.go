// A small controller with a planted bug, for `windlass test --explore`.
//
// It wants one child for one parent. The child has a generated name, and its owner is the only way
// to find it again. With the argument "careful" the program lists before every attempt; without it,
// an attempt whose answer was lost is simply repeated, and there are two children.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	isCareful := len(os.Args) > 1 && os.Args[1] == "careful"
	if err := run(isCareful); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(isCareful bool) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
	parent, err := retry(func(ctx context.Context) (*corev1.ConfigMap, error) {
		// A fixed name makes a second attempt harmless.
		if found, err := maps.Get(ctx, "parent", metav1.GetOptions{}); err == nil {
			return found, nil
		}
		parent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "parent"}}
		return maps.Create(ctx, parent, metav1.CreateOptions{})
	})
	if err != nil {
		return err
	}
	owner := *metav1.NewControllerRef(parent, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	_, err = retry(func(ctx context.Context) (*corev1.ConfigMap, error) {
		if isCareful {
			list, err := maps.List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			for _, found := range list.Items {
				if metav1.IsControlledBy(&found, parent) {
					return &found, nil
				}
			}
		}
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			GenerateName: "child-", OwnerReferences: []metav1.OwnerReference{owner},
		}}
		return maps.Create(ctx, child, metav1.CreateOptions{})
	})
	return err
}

// Tries until it succeeds, for a while.
func retry(attempt func(context.Context) (*corev1.ConfigMap, error)) (*corev1.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		done, err := attempt(ctx)
		if err == nil {
			return done, nil
		}
		fmt.Fprintln(os.Stderr, "again after:", err)
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}
