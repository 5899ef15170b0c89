// A program with leaks of known kinds and sizes: what `sonde core leaks` is compared with. It says what it leaked, then dies
// of a signal.
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
	nEntries   = 20000
	nSenders   = 40
	nReceivers = 7
	nSelects   = 5
	nReachable = 12
	nChain     = 6
	nRecords   = 30000
	nFinal     = 25
	heldBytes  = 4096
)

type Entry struct {
	key  [4]uint64
	next *Entry
}

type Cache struct{ entries []*Entry }

type Record struct{ data [5]uint64 }

type Held struct{ data [heldBytes]byte }

type Final struct{ data [64]byte }

var (
	cache   *Cache
	left    []*Record
	right   []*Record
	waiters = make(chan int) // reachable: whoever waits for it may be woken
	gate    = make(chan int) // wakes the first of a chain
	sink    byte
)

//go:noinline
func sendLost(started chan bool) {
	held := new(Held)
	c := make(chan *Held)
	started <- true
	c <- held // nobody has c
	sink += held.data[0]
}

//go:noinline
func receiveNil(started chan bool) {
	var c chan int
	started <- true
	<-c
}

//go:noinline
func selectLost(started chan bool) {
	a, b := make(chan int), make(chan int)
	started <- true
	select {
	case <-a:
	case b <- 1:
	}
}

//go:noinline
func waitReachable(started chan bool) {
	started <- true
	<-waiters
}

// Each waits for a channel that only the one before it holds; the first waits for a reachable one.
//
//go:noinline
func chain(n int, in chan int, started chan bool) {
	if n == 0 {
		started <- true
		<-in
		return
	}
	out := make(chan int)
	go chain(n-1, out, started)
	<-in
	out <- 1
}

// As chain, but nobody has the first channel.
//
//go:noinline
func lostChain(n int, in chan int, started chan bool) {
	if n == 0 {
		started <- true
		<-in
		return
	}
	out := make(chan int)
	go lostChain(n-1, out, started)
	<-in
	out <- 1
}

//go:noinline
func timed(started chan bool) {
	started <- true
	select {
	case <-time.After(time.Hour):
	}
}

//go:noinline
func fill() {
	cache = new(Cache)
	for i := 0; i < nEntries; i++ {
		cache.entries = append(cache.entries, &Entry{next: &Entry{}})
	}
	// Kept by two variables each, so that neither retains them.
	for i := 0; i < nRecords; i++ {
		r := new(Record)
		left = append(left, r)
		right = append(right, r)
	}
	for i := 0; i < nFinal; i++ {
		runtime.SetFinalizer(new(Final), func(*Final) {})
	}
}

func put(key string, n int) {
	os.Stdout.WriteString("leak name=" + key + " n=" + strconv.Itoa(n) + "\n")
}

func main() {
	started := make(chan bool)
	wait := func(n int, f func(chan bool)) {
		for i := 0; i < n; i++ {
			go f(started)
			<-started
		}
	}
	wait(nSenders, sendLost)
	wait(nReceivers, receiveNil)
	wait(nSelects, selectLost)
	wait(nReachable, waitReachable)
	wait(1, timed)
	go chain(nChain-1, gate, started)
	<-started
	go lostChain(nChain-1, make(chan int), started)
	<-started
	runtime.GC()
	runtime.GC()
	debug.SetGCPercent(-1) // what fill() leaves behind stays as it is
	fill()
	time.Sleep(50 * time.Millisecond)
	put("senders", nSenders)
	put("stuck", nSenders+nReceivers+nSelects+nChain)
	put("held", nSenders*heldBytes)
	put("finalizers", nFinal)
	put("records", nRecords)
	put("entries", 2*nEntries)
	syscall.Kill(os.Getpid(), syscall.SIGABRT)
	for {
		time.Sleep(time.Hour)
	}
}
