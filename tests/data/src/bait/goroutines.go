// Goroutines that wait in every way, and some that run.
package main

import (
	"context"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

type goRow struct {
	name  string
	count int
}

var (
	gorows  [40]goRow
	ngorows int
)

func launch(name string, n int, f func()) {
	gorows[ngorows] = goRow{name, n}
	ngorows++
	started += int64(n)
	for i := 0; i < n; i++ {
		go f()
	}
}

func goReceive()     { entered.Add(1); <-chanSync }
func goSend()        { entered.Add(1); chanWait <- &ChanWait{id: 1} }
func goSelect()      { entered.Add(1); selectTwo(make(chan int), make(chan string, 1)) }
func goSelectNone()  { entered.Add(1); select {} }
func goNilChan()     { entered.Add(1); <-chanNil }
func goNilChanSend() { entered.Add(1); chanNil <- 1 }
func goMutex()       { entered.Add(1); mutex.Lock() }
func goRLock()       { entered.Add(1); rwmutex.RLock() }
func goWLock()       { entered.Add(1); rwmutex.Lock() }
func goWaitGroup()   { entered.Add(1); waitGroup.Wait() }
func goCond()        { condMutex.Lock(); entered.Add(1); cond.Wait() }
func goSleep()       { entered.Add(1); time.Sleep(time.Hour) }
func goTicker()      { entered.Add(1); <-ticker.C }

//go:noinline
func selectTwo(a chan int, b chan string) {
	select {
	case n := <-a:
		sink += int64(n)
	case b <- "x":
		selectTwo(a, b)
	}
}

func goReadFile() {
	b := make([]byte, 16)
	entered.Add(1)
	pipeRead.Read(b)
}

func goReadRaw() {
	b := make([]byte, 16)
	entered.Add(1)
	syscall.Read(rawPipe[0], b)
}

// A tight loop: only a signal preempts it.
func goSpin() {
	entered.Add(1)
	for n := 0; !stop.Load(); n++ {
	}
}

func goSpinYield() {
	entered.Add(1)
	for !stop.Load() {
		runtime.Gosched()
	}
}

func goLocked() {
	runtime.LockOSThread()
	entered.Add(1)
	<-chanSync
}

func goLabels() {
	pprof.Do(context.Background(), pprof.Labels("request", "r-17", "tenant", "blue"), func(context.Context) {
		entered.Add(1)
		<-chanSync
	})
}

func goInlined() { entered.Add(1); inlinedOuter(40) }

func inlinedOuter(n int64) { inlinedMiddle(n + 1) }
func inlinedMiddle(n int64) {
	sink += n
	inlinedInner(n + 1)
}
func inlinedInner(n int64) {
	sink += n
	<-chanSync
}

func goDeep() { deep(200, newStackOnly()) }

//go:noinline
func newStackOnly() *StackOnly { return &StackOnly{7, &StackOnlyLeaf{8, 9}} }

//go:noinline
func deep(level int, only *StackOnly) int64 {
	var local [16]int64
	local[level%16] = int64(level)
	if level == 0 {
		entered.Add(1)
		<-chanSync
		return only.id + only.p.a
	}
	return deep(level-1, only) + local[level%16]
}

func goPanicking() {
	defer func() {
		recover()
	}()
	defer func() {
		entered.Add(1)
		<-chanSync
	}()
	panic("blocked while it panics")
}

type Server struct {
	requests chan *Point
	served   int64
}

func (s *Server) Serve(id int) { entered.Add(1); s.handle(id) }

//go:noinline
func (s *Server) handle(id int) {
	p := <-s.requests
	s.served += p.x + int64(id)
}

func launchAll(spinners int) {
	pipeRead, pipeWrite, _ = os.Pipe()
	syscall.Pipe(rawPipe[:])
	mutex.Lock()
	rwmutex.Lock()
	waitGroup.Add(1)

	launch("main.goReceive", 5, goReceive)
	launch("main.goSend", 2, goSend)
	count("main.ChanWait", unsafe.Sizeof(ChanWait{}), 2)
	launch("main.goSelect", 2, goSelect)
	launch("main.goSelectNone", 1, goSelectNone)
	launch("main.goNilChan", 1, goNilChan)
	launch("main.goNilChanSend", 1, goNilChanSend)
	launch("main.goMutex", 3, goMutex)
	launch("main.goRLock", 2, goRLock)
	launch("main.goWLock", 1, goWLock)
	launch("main.goWaitGroup", 2, goWaitGroup)
	launch("main.goCond", 2, goCond)
	launch("main.goSleep", 3, goSleep)
	launch("main.goTicker", 1, goTicker)
	launch("main.goReadFile", 1, goReadFile)
	launch("main.goReadRaw", 1, goReadRaw)
	launch("main.goLocked", 1, goLocked)
	launch("main.goLabels", 1, goLabels)
	launch("main.goInlined", 1, goInlined)
	launch("main.goDeep", 1, goDeep)
	count("main.StackOnly", unsafe.Sizeof(StackOnly{}), 1)
	count("main.StackOnlyLeaf", unsafe.Sizeof(StackOnlyLeaf{}), 1)
	launch("main.goPanicking", 1, goPanicking)
	launch("main.goDefers", 2, goDefers)
	launch("main.goPanicValue", 1, goPanicValue)
	count("main.PanicValue", unsafe.Sizeof(PanicValue{}), 1)
	count("main.PanicLeaf", unsafe.Sizeof(PanicLeaf{}), 1)
	server := &Server{requests: make(chan *Point)}
	gorows[ngorows] = goRow{"main.(*Server).Serve", 2}
	ngorows++
	started += 2
	go server.Serve(1)
	go server.Serve(2)
	count("main.Server", unsafe.Sizeof(Server{}), 1)
	launch("main.goSpin", spinners, goSpin)
	launch("main.goSpinYield", 1, goSpinYield)
	for entered.Load() != started {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond) // from there into their waits
}

// Leaves idle threads behind: the runtime makes none, and allocates nothing for one, after the figures.
func launchThreads() {
	var ready, done sync.WaitGroup
	gate := make(chan struct{})
	for i := 0; i < 8; i++ {
		ready.Add(1)
		done.Add(1)
		go func() {
			runtime.LockOSThread()
			ready.Done()
			<-gate
			runtime.UnlockOSThread()
			done.Done()
		}()
	}
	ready.Wait()
	close(gate)
	done.Wait()
}

func goCollect() {
	for !stop.Load() {
		runtime.GC()
	}
}
