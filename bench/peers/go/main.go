// Command peer measures client-go the way windlass is measured, and drives the API server that
// both are measured against. Every contestant prints its figures as one line of JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const usage = `usage: peer COMMAND

  informer [--content-type json|protobuf] [--trim]  hold all pods in a shared informer
  list --url URL                                    read a list of pods
  follow [--namespace NAME]                         print what happens to pods
  queue                                             add keys to a work queue and hand them out
  load [--workers N]                                create the pods that standard input lists
  update [--workers N] [--count N]                  change the pods that standard input lists
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	commands := map[string]func(context.Context, []string) error{
		"follow":   follow,
		"informer": informer,
		"list":     list,
		"queue":    queue,
		"load":     load,
		"update":   update,
	}
	command, ok := commands[os.Args[1]]
	if !ok {
		fmt.Fprintf(os.Stderr, "unknown command %q\n%s", os.Args[1], usage)
		os.Exit(2)
	}
	if err := command(context.Background(), os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "peer %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// config reads the file named by KUBECONFIG and switches the client's own rate limit off.
func config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

func printNumbers(numbers map[string]float64) error {
	return json.NewEncoder(os.Stdout).Encode(numbers)
}
