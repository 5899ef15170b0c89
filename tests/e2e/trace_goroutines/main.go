// The oracle of `sonde trace goroutines`: what Go's own summarizer (internal/trace.Summarizer, Go 1.27) says of every
// goroutine. Built into Go's tree by an overlay, as cmd/sondegoroutines:
//
//	sondegoroutines FILE    a line a goroutine: id, name, nanoseconds; then "block id reason ns", "bare id ns"; a line a
//	                        region, a task and a change of mutator utilisation
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
	var events []trace.Event
	bareSince := map[trace.GoID]trace.Time{}
	bare := map[trace.GoID]int64{}
	var last trace.Time
	for err == nil {
		var e trace.Event
		if e, err = r.ReadEvent(); err == nil {
			s.Event(&e)
			events = append(events, e)
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
	if util := trace.MutatorUtilizationV2(events, trace.UtilSTW|trace.UtilBackground|trace.UtilAssist); len(util) > 0 {
		for _, u := range util[0] {
			fmt.Fprintf(out, "util\t%d\t%.12f\n", u.Time, u.Util)
		}
	}
	for id, since := range bareSince {
		bare[id] = int64(last - since)
	}
	for id, ns := range bare {
		fmt.Fprintf(out, "bare\t%d\t%d\n", id, ns)
	}
	at := func(e *trace.Event) int64 {
		if e == nil {
			return -1
		}
		return int64(e.Time())
	}
	summary := s.Finalize()
	for id, t := range summary.Tasks {
		if id == trace.NoTask || id == trace.BackgroundTask {
			continue
		}
		var parent trace.TaskID
		if t.Parent != nil {
			parent = t.Parent.ID
		}
		fmt.Fprintf(out, "task\t%d\t%s\t%d\t%d\t%d\t%d\t%d\n", id, t.Name, parent, at(t.Start), at(t.End),
			len(t.Regions), len(t.Logs))
	}
	for id, g := range summary.Goroutines {
		for _, r := range g.Regions {
			// Those that only say which task a goroutine was created for have no name.
			if r.Name == "" {
				continue
			}
			end := int64(-1)
			if r.End != nil && r.End.Kind() == trace.EventRegionEnd {
				end = at(r.End)
			}
			var blocked int64
			for _, ns := range r.BlockTimeByReason {
				blocked += int64(ns)
			}
			fmt.Fprintf(out, "region\t%d\t%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", id, r.TaskID, r.Name, at(r.Start), end,
				r.TotalTime, r.ExecTime, r.SchedWaitTime, blocked, r.SyscallTime+r.SyscallBlockTime)
		}
	}
	for id, g := range summary.Goroutines {
		fmt.Fprintf(out, "goroutine\t%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", id, g.Name, g.TotalTime, g.ExecTime,
			g.SchedWaitTime, g.SyscallTime, g.SyscallBlockTime, g.RangeTime["GC mark assist"],
			g.RangeTime["GC incremental sweep"])
		for reason, ns := range g.BlockTimeByReason {
			fmt.Fprintf(out, "block\t%d\t%s\t%d\n", id, reason, ns)
		}
	}
}
