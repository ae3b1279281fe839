package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
)

// rssBytes is the resident memory of this process.
func rssBytes() (float64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0, err
	}
	return float64(resident * os.Getpagesize()), nil
}

// peakBytes is the most resident memory that this process has had.
func peakBytes() (float64, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, err
	}
	return float64(usage.Maxrss) * 1024, nil
}

// cpuTime is the user and system time that this process has used.
func cpuTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, err
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// settledMemory collects garbage, gives free memory back, and returns what is still in use, as
// resident memory and as heap.
func settledMemory() (rss, heap float64, err error) {
	runtime.GC()
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	rss, err = rssBytes()
	return rss, float64(stats.HeapAlloc), err
}
