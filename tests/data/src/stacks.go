// Stacks has goroutines with stacks of many shapes and dies in a chosen way, with the runtime's own traceback on stderr.
//
//	stacks MODE
//
// MODE: nil (nil dereference in an inlined function), panic, nested (a panic in a deferred call of a panic), repanic
// (recovered, then again), goexit, unlock (fatal error: unlock of an unlocked mutex), maps (fatal error: concurrent map
// writes), deadlock (fatal error: all goroutines are asleep), overflow (a goroutine's stack exceeds its limit), quit
// (SIGQUIT while tight loops run), abort (SIGABRT while the collector runs), divide, bounds, wait (print READY, sleep).
//
// It prints `func name=... count=...`, the goroutines with this function at the bottom, then `end`.
package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

type Order struct {
	ID    int
	Lines []Line
	Owner *Owner
}
type Line struct{ Quantity, Price int }
type Owner struct{ Name string }

var (
	gate    = make(chan struct{})
	entered atomic.Int64
	started int64
	sink    int
	nobody  *Order
	zero    int
	stop    atomic.Bool
)

func launch(name string, n int, f func()) {
	fmt.Printf("func name=%s count=%d\n", name, n)
	started += int64(n)
	for i := 0; i < n; i++ {
		go f()
	}
}

func block() { entered.Add(1); <-gate }

// Three levels that the compiler inlines, then a call.
func inlined1(n int) int { return inlined2(n+1) + 1 }
func inlined2(n int) int { return inlined3(n+1) + 1 }
func inlined3(n int) int { block(); return n }

//go:noinline
func recurse(n int) int {
	if n == 0 {
		return inlined1(n)
	}
	return recurse(n-1) + 1
}

//go:noinline
func even(n int) int {
	if n == 0 {
		block()
		return 0
	}
	return odd(n-1) + 1
}

//go:noinline
func odd(n int) int { return even(n-1) + 1 }

//go:noinline
func arguments(b byte, i int64, f float64, s string, list []int, o Order, e error, any interface{}, last *Owner) int {
	block()
	return int(b) + int(i) + int(f) + len(s) + len(list) + o.ID
}

type visitor interface{ visit(depth int) int }
type valueVisitor struct{ a, b, c int }
type pointerVisitor struct{ next visitor }

func (v valueVisitor) visit(depth int) int    { block(); return v.a + depth }
func (v *pointerVisitor) visit(depth int) int { return v.next.visit(depth+1) + 1 }

//go:noinline
func generic[K comparable, V any](m map[K]V, key K) V {
	block()
	return m[key]
}

type stack[T any] struct{ items []T }

//go:noinline
func (s *stack[T]) each(f func(T)) {
	for _, item := range s.items {
		f(item)
	}
}

func goShallow() { block() }
func goDeep()    { sink += recurse(300) }
func goDeeper()  { sink += recurse(5000) }
func goMutual()  { sink += even(50) }
func goArguments() {
	sink += arguments(7, -8, 9.5, "a string", []int{1, 2, 3}, Order{ID: 11, Owner: &Owner{"bob"}}, errors.New("no"), 12, nil)
}
func goInterface() {
	sink += (&pointerVisitor{&pointerVisitor{valueVisitor{1, 2, 3}}}).visit(0)
}
func goGeneric() { sink += generic(map[string]int{"a": 1}, "a") }
func goGenericIt() {
	(&stack[string]{[]string{"x", "y"}}).each(func(s string) { block(); sink += len(s) })
}
func goReflect() { reflect.ValueOf(recurse).Call([]reflect.Value{reflect.ValueOf(3)}) }
func goSort() {
	values := []int{3, 1, 2}
	sort.Slice(values, func(i, j int) bool { block(); return values[i] < values[j] })
}
func goOnce() {
	var once sync.Once
	once.Do(func() { block() })
}
func goDefer() {
	defer func() { sink++ }()
	defer block()
	sink++
}
func goRecover() {
	defer func() {
		recovered := recover()
		block()
		fmt.Println(recovered)
	}()
	var o *Order
	sink += o.ID
}
func goMethodValue() {
	f := (&pointerVisitor{valueVisitor{}}).visit
	sink += f(1)
}
func goParent() {
	go func() { block() }()
	block()
}
func goSyscall() {
	var fds [2]int
	syscall.Pipe(fds[:])
	entered.Add(1)
	syscall.Read(fds[0], make([]byte, 1))
}
func goSleep()  { entered.Add(1); time.Sleep(time.Hour) }
func goLocked() { runtime.LockOSThread(); block() }
func goSpin() {
	entered.Add(1)
	spin(1)
}

//go:noinline
func spin(n int) int {
	for i := 0; !stop.Load(); i++ {
		n ^= i
	}
	return n
}

func total(o *Order) int { return o.ID + len(o.Lines) }

//go:noinline
func price(o *Order) int {
	sum := total(o)
	return sum * 2
}

//go:noinline
func deepPrice(n int, o *Order) int {
	if n == 0 {
		return price(o)
	}
	return deepPrice(n-1, o) + 1
}

//go:noinline
func overflow(n int) int {
	var pad [64]int
	pad[n%64] = n
	return overflow(n+1) + pad[(n+1)%64]
}

func nested() {
	defer func() {
		defer func() { panic(fmt.Errorf("third: %w", os.ErrInvalid)) }()
		panic("second")
	}()
	panic("first")
}

func repanic() {
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Sprintf("again: %v", r))
		}
	}()
	deepPrice(3, nobody)
}

func writeMaps() {
	m := map[int]int{}
	for i := 0; i < 4; i++ {
		go func(i int) {
			for n := 0; ; n++ {
				m[n%97] = i
			}
		}(i)
	}
}

func main() {
	mode := "nil"
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	runtime.GOMAXPROCS(2)
	quiet := mode == "deadlock" // anything that may wake up is no deadlock

	launch("main.goShallow", 3, goShallow)
	launch("main.goDeep", 1, goDeep)
	launch("main.goDeeper", 1, goDeeper)
	launch("main.goMutual", 1, goMutual)
	launch("main.goArguments", 1, goArguments)
	launch("main.goInterface", 1, goInterface)
	launch("main.goGeneric", 1, goGeneric)
	launch("main.goGenericIt", 1, goGenericIt)
	launch("main.goReflect", 1, goReflect)
	launch("main.goSort", 1, goSort)
	launch("main.goOnce", 1, goOnce)
	launch("main.goDefer", 1, goDefer)
	launch("main.goRecover", 1, goRecover)
	launch("main.goMethodValue", 1, goMethodValue)
	launch("main.goParent", 1, goParent)
	fmt.Println("func name=main.goParent.func1 count=1")
	started++
	launch("main.goLocked", 1, goLocked)
	if !quiet {
		launch("main.goSyscall", 1, goSyscall)
		launch("main.goSleep", 1, goSleep)
	}
	if mode == "quit" {
		launch("main.goSpin", 2, goSpin)
	}
	for entered.Load() != started {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	fmt.Println("end")

	switch mode {
	case "nil":
		sink += deepPrice(4, nobody)
	case "panic":
		panic(&Order{ID: 4})
	case "nested":
		nested()
	case "repanic":
		repanic()
	case "goexit":
		go func() { time.Sleep(20 * time.Millisecond); panic("after the main goroutine ended") }()
		runtime.Goexit()
	case "unlock":
		new(sync.Mutex).Unlock()
	case "maps":
		writeMaps()
	case "deadlock":
		<-gate
	case "overflow":
		debug.SetMaxStack(1 << 20)
		go func() { sink += overflow(1) }()
	case "quit":
		syscall.Kill(os.Getpid(), syscall.SIGQUIT)
	case "abort":
		go func() {
			for {
				runtime.GC()
			}
		}()
		time.Sleep(20 * time.Millisecond)
		syscall.Kill(os.Getpid(), syscall.SIGABRT)
	case "divide":
		sink = 1 / zero
	case "bounds":
		sink = nobodyLines()[zero]
	default:
		fmt.Println("READY")
	}
	for {
		time.Sleep(time.Hour)
	}
}

//go:noinline
func nobodyLines() []int { return make([]int, zero) }
