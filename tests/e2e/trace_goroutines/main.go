// The oracle of `sonde trace goroutines`: what Go's own summarizer (internal/trace.Summarizer, Go 1.27) says of every
// goroutine. Built into Go's tree by an overlay, as cmd/sondegoroutines:
//
//	sondegoroutines FILE    a line a goroutine: id, name, nanoseconds; then "block id reason ns"
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
	for err == nil {
		var e trace.Event
		if e, err = r.ReadEvent(); err == nil {
			s.Event(&e)
		}
	}
	if err != io.EOF {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
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
