// The oracle of run_trace.sh, built with Go 1.27 as cmd/sondeoracle:
//
//	sondeoracle dump FILE    every event, as `sonde trace events --stacks` writes it
//	sondeoracle count FILE   "type count" a line, sorted by type
//	sondeoracle time FILE    reads all; prints events and CPU seconds
package main

import (
	"bufio"
	"fmt"
	"internal/trace"
	"io"
	"os"
	"sort"
	"syscall"
)

func main() {
	f, err := os.Open(os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer out.Flush()
	counts := map[string]int{}
	n := 0
	r, err := trace.NewReader(bufio.NewReaderSize(f, 1<<20))
	for err == nil {
		var e trace.Event
		e, err = r.ReadEvent()
		if err != nil {
			break
		}
		n++
		switch os.Args[1] {
		case "dump":
			e.SondeDump(out)
		case "count":
			counts[e.SondeName()]++
		}
	}
	if err != io.EOF {
		fmt.Fprintf(out, "error: %v\n", err)
	}
	if os.Args[1] == "count" {
		var names []string
		for name := range counts {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			fmt.Fprintln(out, name, counts[name])
		}
	}
	if os.Args[1] == "time" {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		cpu := float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
		fmt.Fprintf(out, "events %d cpu_s %.3f maxrss_kb %d\n", n, cpu, u.Maxrss)
	}
}
