package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// queueRun is how long the producers of each configuration add.
const queueRun = 3 * time.Second

// keyDigits is the width of the number at the end of each key.
const keyDigits = 5

// queueLoad is one configuration of the queue benchmark.
type queueLoad struct {
	producers, workers, keys int
	// isPaired makes producers wait until a key has been finished before they add it again, so
	// that each add leads to one hand-out. Otherwise producers add without regard for the
	// workers, and most adds find their key in the queue already.
	isPaired bool
}

var queueLoads = []queueLoad{
	{producers: 1, workers: 1, keys: 10_000, isPaired: true},
	{producers: 4, workers: 16, keys: 100, isPaired: true},
	{producers: 4, workers: 16, keys: 10_000, isPaired: true},
	{producers: 1, workers: 1, keys: 10_000},
	{producers: 4, workers: 16, keys: 100},
	{producers: 4, workers: 16, keys: 10_000},
}

func (l queueLoad) name() string {
	mode := "flood"
	if l.isPaired {
		mode = "paired"
	}
	return fmt.Sprintf("%s_%dp_%dw_%dkeys", mode, l.producers, l.workers, l.keys)
}

// queue measures the rate-limiting work queue that controllers use. One operation is one call of
// Add, or one hand-out: a Get with its Done.
func queue(_ context.Context, _ []string) error {
	numbers := map[string]float64{}
	for _, load := range queueLoads {
		adds, handouts, seconds := load.run()
		numbers[load.name()+"_handouts_per_s"] = handouts / seconds
		numbers[load.name()+"_ops_per_s"] = (adds + handouts) / seconds
	}
	return printNumbers(numbers)
}

// queueBench is the state that the goroutines of one run share.
type queueBench struct {
	queueLoad
	queue  workqueue.TypedRateLimitingInterface[string]
	names  []string
	isOver atomic.Bool
	// pending says which keys have been added and not finished; it is used in paired runs only.
	pending []atomic.Bool
}

// run lets the producers add their keys in turn, as fast as they can, while the workers take and
// finish them. It ends when the workers have emptied the queue.
func (l queueLoad) run() (adds, handouts, seconds float64) {
	bench := queueBench{
		queueLoad: l,
		queue:     workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		pending:   make([]atomic.Bool, l.keys),
	}
	for i := range l.keys {
		bench.names = append(bench.names, fmt.Sprintf("namespace-%d/name-%0*d", i%10, keyDigits, i))
	}
	var producers, workers sync.WaitGroup
	var added, handedOut atomic.Int64
	start := time.Now()
	for p := range l.producers {
		producers.Go(func() { added.Add(bench.produce(p * l.keys / l.producers)) })
	}
	for range l.workers {
		workers.Go(func() { handedOut.Add(bench.work()) })
	}
	time.Sleep(queueRun)
	bench.isOver.Store(true)
	producers.Wait()
	bench.queue.ShutDown()
	workers.Wait()
	return float64(added.Load()), float64(handedOut.Load()), time.Since(start).Seconds()
}

// produce adds keys in turn until the run is over, and returns how many calls of Add it made.
func (b *queueBench) produce(first int) (adds int64) {
	for key, skipped := first, 0; !b.isOver.Load(); key = (key + 1) % b.keys {
		if b.isPaired && !b.pending[key].CompareAndSwap(false, true) {
			if skipped++; skipped%b.keys == 0 {
				runtime.Gosched()
			}
			continue
		}
		b.queue.Add(b.names[key])
		adds++
	}
	return adds
}

// work takes and finishes keys until the queue is shut down and empty, and returns how many.
func (b *queueBench) work() (handouts int64) {
	for {
		key, isShutDown := b.queue.Get()
		if isShutDown {
			return handouts
		}
		b.queue.Done(key)
		b.pending[number(key)].Store(false)
		handouts++
	}
}

// number reads the number at the end of a key.
func number(key string) (number int) {
	for _, digit := range []byte(key[len(key)-keyDigits:]) {
		number = number*10 + int(digit-'0')
	}
	return number
}
