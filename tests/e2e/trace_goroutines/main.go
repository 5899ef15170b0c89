// The oracle of `sonde trace goroutines`: what Go's own summarizer (internal/trace.Summarizer, Go 1.27) says of every
// goroutine. Built into Go's tree by an overlay, as cmd/sondegoroutines:
//
//	sondegoroutines FILE    a line a goroutine: id, name, nanoseconds; then "block id reason ns", "bare id ns"
//
// bare: how long a goroutine that was in a system call without a processor before the trace stayed in it from the first
// event that names it on. The summarizer counts this as time with a processor, though nothing gave it one.
package main

import (
	"bufio"
	"fmt"
	"internal/trace"
	"io"
	"os"
)

func main() {
	f, err := os.Open(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	r, err := trace.NewReader(bufio.NewReaderSize(f, 1<<20))
	s := trace.NewSummarizer()
	bareSince := map[trace.GoID]trace.Time{}
	bare := map[trace.GoID]int64{}
	var last trace.Time
	for err == nil {
		var e trace.Event
		if e, err = r.ReadEvent(); err == nil {
			s.Event(&e)
			last = e.Time()
			if e.Kind() != trace.EventStateTransition || e.StateTransition().Resource.Kind != trace.ResourceGoroutine {
				continue
			}
			st := e.StateTransition()
			id := st.Resource.Goroutine()
			from, to := st.Goroutine()
			if since, ok := bareSince[id]; ok && from == trace.GoSyscall && to != from {
				bare[id] = int64(e.Time() - since)
				delete(bareSince, id)
			}
			if from == trace.GoUndetermined && to == trace.GoSyscall && e.Proc() == trace.NoProc {
				bareSince[id] = e.Time()
			}
		}
	}
	if err != io.EOF {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for id, since := range bareSince {
		bare[id] = int64(last - since)
	}
	for id, ns := range bare {
		fmt.Fprintf(out, "bare\t%d\t%d\n", id, ns)
	}
	for id, g := range s.Finalize().Goroutines {
		fmt.Fprintf(out, "goroutine\t%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", id, g.Name, g.TotalTime, g.ExecTime,
			g.SchedWaitTime, g.SyscallTime, g.SyscallBlockTime, g.RangeTime["GC mark assist"],
			g.RangeTime["GC incremental sweep"])
		for reason, ns := range g.BlockTimeByReason {
			fmt.Fprintf(out, "block\t%d\t%s\t%d\n", id, reason, ns)
		}
	}
}
