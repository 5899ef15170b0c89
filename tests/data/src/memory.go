// A program that knows where its memory went: what `sonde core breakdown` is compared with. It makes pages that are free
// and given back, pages that are free and kept, garbage of a known size, stacks; then it prints what the runtime counts
// and dies. Nothing allocates after the last count.
package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
)

const (
	nGarbage     = 3000
	garbageBytes = 4096
	nDeep        = 20
)

var (
	keep    [][]byte
	sink    [][]byte
	stats   runtime.MemStats
	line    [4096]byte
	blocked = make(chan int)
)

//go:noinline
func deep(n int, started chan bool) byte {
	var room [512]byte
	room[n%len(room)] = byte(n)
	if n == 0 {
		started <- true
		<-blocked
		return 0
	}
	return deep(n-1, started) + room[(n+1)%len(room)]
}

//go:noinline
func garbage() {
	for i := range sink {
		sink[i] = make([]byte, garbageBytes)
	}
	for i := range sink {
		sink[i] = nil
	}
}

// Counting itself starts threads, which takes memory: count until nothing changes.
func settle() {
	for same := 0; same < 5; {
		last := stats
		time.Sleep(5 * time.Millisecond)
		runtime.ReadMemStats(&stats)
		if same++; stats.HeapAlloc != last.HeapAlloc || stats.HeapInuse != last.HeapInuse ||
			stats.HeapReleased != last.HeapReleased || stats.StackInuse != last.StackInuse {
			same = 0
		}
	}
}

func put(b []byte, key string, value uint64) []byte {
	b = append(b, "memory name="...)
	b = append(b, key...)
	b = append(b, " bytes="...)
	b = strconv.AppendUint(b, value, 10)
	return append(b, '\n')
}

func main() {
	debug.SetGCPercent(-1) // no collection by itself, and so no release by itself
	runtime.LockOSThread()
	sink = make([][]byte, nGarbage)
	started := make(chan bool)
	for i := 0; i < nDeep; i++ {
		go deep(100, started)
		<-started
	}
	for i := 0; i < 64; i++ {
		keep = append(keep, make([]byte, 1<<20))
	}
	for i := 0; i < 64; i += 2 {
		keep[i] = nil
	}
	debug.FreeOSMemory() // the 32 MB are free and released
	for i := 1; i < 16; i += 2 {
		keep[i] = nil
	}
	runtime.GC() // 8 MB more are free and kept
	runtime.GC()
	runtime.ReadMemStats(&stats)
	before := stats.HeapAlloc
	garbage()
	settle()
	b := line[:0]
	b = put(b, "live", before)
	b = put(b, "alloc", stats.HeapAlloc)
	b = put(b, "in_use", stats.HeapInuse)
	b = put(b, "idle", stats.HeapIdle)
	b = put(b, "released", stats.HeapReleased)
	b = put(b, "stacks", stats.StackInuse)
	b = put(b, "made", nGarbage*garbageBytes)
	os.Stdout.Write(b)
	syscall.Kill(os.Getpid(), syscall.SIGABRT) // a panic would allocate
	select {}
}
