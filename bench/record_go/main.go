// What Go's own tracer costs: the peer of bench/record.c. Argument: a name for the rows.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/trace"
	"syscall"
)

const n, runs = 1000000, 7

type counter struct{ bytes int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}

func cpu() float64 {
	var u syscall.Rusage
	syscall.Getrusage(0, &u)
	return float64(u.Utime.Nano() + u.Stime.Nano())
}

func measure(name string, events float64, body func()) {
	on, off, size := 1e18, 1e18, 0.0
	for i := 0; i < runs; i++ {
		begun := cpu()
		body()
		off = min(off, (cpu()-begun)/n)
		var c counter
		trace.Start(&c)
		begun = cpu()
		body()
		on = min(on, (cpu()-begun)/n)
		trace.Stop()
		size = float64(c.bytes) / n / events
	}
	fmt.Printf("| %s: %s | %.1f | %.2f | %.1f |\n", os.Args[1], name, on, off, size)
}

//go:noinline
func deep(depth int, body func()) {
	if depth <= 0 {
		body()
	} else {
		deep(depth-1, body)
	}
}

func main() {
	runtime.GOMAXPROCS(1)
	ctx := context.Background()
	logs := func() {
		for i := 0; i < n; i++ {
			trace.Log(ctx, "key", "m")
		}
	}
	measure("log (Go always takes the stack: 4 frames)", 1, logs)
	measure("region, begin and end", 2, func() {
		for i := 0; i < n; i++ {
			trace.StartRegion(ctx, "region").End()
		}
	})
	measure("log, stack of 30 frames", 1, func() { deep(25, logs) })
}
