// A program that traces itself and prints what the trace must hold: "key value" a line.
//
//	tracer FILE [ROUNDS]
//
// The figures are exact: nothing else in the program makes tasks, regions, logs or forced collections while it traces.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"sync"
	"syscall"
	"time"
)

//go:noinline
func worker(in, out chan int) {
	for v := range in {
		out <- v + 1
	}
	close(out)
}

//go:noinline
func spin(d time.Duration) (n uint64) {
	for end := time.Now().Add(d); time.Now().Before(end); n++ {
	}
	return n
}

//go:noinline
func readNothing() {
	var buf [1]byte
	syscall.Read(-1, buf[:])
}

var sink []byte

func main() {
	debug.SetGCPercent(-1) // none but those that are asked for
	rounds := 1
	if len(os.Args) > 2 {
		rounds, _ = strconv.Atoi(os.Args[2])
	}
	f, err := os.Create(os.Args[1])
	if err != nil {
		panic(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	before := make(chan int)
	go func() { <-before }() // waits from before the trace to behind its end
	cpu, err := os.Create(os.DevNull)
	if err != nil {
		panic(err)
	}
	pprof.StartCPUProfile(cpu)
	if err := trace.Start(w); err != nil {
		panic(err)
	}
	const tasks, pairs, pings, syscalls, gcs = 25, 8, 200, 50, 3
	for r := 0; r < rounds; r++ {
		for i := 0; i < tasks; i++ {
			ctx, task := trace.NewTask(context.Background(), "task kind "+strconv.Itoa(i%3))
			trace.WithRegion(ctx, "outer region", func() {
				trace.WithRegion(ctx, "inner region", func() {
					trace.Log(ctx, "key", "message "+strconv.Itoa(i))
				})
			})
			task.End()
		}
		var wg sync.WaitGroup
		for i := 0; i < pairs; i++ {
			wg.Add(1)
			in, out := make(chan int), make(chan int)
			go worker(in, out)
			go func() {
				defer wg.Done()
				for k := 0; k < pings; k++ {
					in <- k
					<-out
				}
				close(in)
			}()
		}
		wg.Wait()
		for i := 0; i < syscalls; i++ {
			readNothing()
		}
		for i := 0; i < gcs; i++ {
			sink = make([]byte, 1<<20)
			runtime.GC()
		}
		spin(30 * time.Millisecond)
		time.Sleep(2 * time.Millisecond)
	}
	trace.Stop()
	pprof.StopCPUProfile()
	w.Flush()
	f.Close()
	close(before)
	fmt.Println("UserTaskBegin", rounds*tasks)
	fmt.Println("UserTaskEnd", rounds*tasks)
	fmt.Println("UserRegionBegin", rounds*tasks*2)
	fmt.Println("UserRegionEnd", rounds*tasks*2)
	fmt.Println("UserLog", rounds*tasks)
	fmt.Println("GCEnd", rounds*gcs)
	fmt.Println("worker", rounds*pairs)
	fmt.Println("read", rounds*syscalls)
}
