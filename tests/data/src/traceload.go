// A program that traces a busy workload (channels, locks, timers, TCP, system calls, tasks) until the trace has about the
// bytes asked for: traceload FILE MEGABYTES. For every Go from 1.15 on.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/trace"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	atomic.AddInt64(&c.n, int64(n))
	return n, err
}

var sink []byte

func main() {
	runtime.GOMAXPROCS(2)
	f, err := os.Create(os.Args[1])
	if err != nil {
		panic(err)
	}
	megabytes, _ := strconv.ParseFloat(os.Args[2], 64)
	out := &counter{w: f}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go io.Copy(c, c)
		}
	}()
	if err := trace.Start(out); err != nil {
		panic(err)
	}
	var stop int32
	var wg sync.WaitGroup
	run := func(n int, f func()) {
		for i := 0; i < n; i++ {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for atomic.LoadInt32(&stop) == 0 {
					f()
				}
			}()
		}
	}
	var mu sync.Mutex
	run(4, func() {
		a, b := make(chan int), make(chan int)
		go func() {
			for v := range a {
				b <- v
			}
			close(b)
		}()
		for i := 0; i < 200; i++ {
			a <- i
			<-b
		}
		close(a)
	})
	run(3, func() { mu.Lock(); runtime.Gosched(); mu.Unlock() })
	run(2, func() {
		select {
		case <-time.After(100 * time.Microsecond):
		case <-make(chan int):
		}
	})
	run(2, func() {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			return
		}
		var buf [64]byte
		for i := 0; i < 100; i++ {
			c.Write(buf[:])
			io.ReadFull(c, buf[:])
		}
		c.Close()
	})
	run(2, func() {
		zero, err := os.Open("/dev/zero")
		if err != nil {
			return
		}
		buf := make([]byte, 1<<16)
		for i := 0; i < 50; i++ {
			zero.Read(buf)
		}
		zero.Close()
	})
	run(2, func() {
		ctx, task := trace.NewTask(context.Background(), "job")
		trace.WithRegion(ctx, "step", func() { trace.Log(ctx, "key", "value") })
		task.End()
		sink = make([]byte, 4096)
		time.Sleep(20 * time.Microsecond)
	})
	for atomic.LoadInt64(&out.n) < int64(megabytes*1e6) {
		time.Sleep(time.Millisecond)
	}
	atomic.StoreInt32(&stop, 1)
	wg.Wait()
	trace.Stop()
	f.Close()
	fmt.Println("bytes", out.n)
}
