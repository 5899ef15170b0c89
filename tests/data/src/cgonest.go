// Cgonest calls C from Go from C, some levels deep, and waits or dies in the innermost C function.
//
//	cgonest MODE
//
// MODE: segv (C writes to address 16 in the main goroutine's innermost call), wait (print READY).
//
// It prints what each stack holds of its own functions, innermost first: `stack NAME function...`. NAME is that of a
// function that no other stack has. A thread that C made calls Go as well.
package main

/*
#cgo LDFLAGS: -lpthread
#include <pthread.h>
#include <unistd.h>

extern int goNest(int depth, int crash);
extern int goFromThread(int depth);

__attribute__((noinline)) static int c_wait(int crash)
{
	if (crash)
		*(volatile int *)16 = 1;
	for (;;)
		pause();
	return 0;
}

static inline __attribute__((always_inline)) int c_inlined(int depth, int crash)
{
	return goNest(depth, crash) + 1;
}

__attribute__((noinline)) static int c_nest(int depth, int crash)
{
	return c_inlined(depth, crash) + 2;
}

__attribute__((noinline)) static void *c_thread(void *arg)
{
	return (void *)(long)(goFromThread(*(int *)arg) + 1);
}

static int thread_depth = 2;

static void c_start(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, c_thread, &thread_depth);
}
*/
import "C"

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

var (
	sink    int
	waiting atomic.Int64
)

//export goNest
func goNest(depth, crash C.int) C.int { return C.int(nested(int(depth), int(crash))) }

//export goFromThread
func goFromThread(depth C.int) C.int { return C.int(fromThread(int(depth))) }

//go:noinline
func nested(depth, crash int) int {
	if depth > 0 {
		return int(C.c_nest(C.int(depth-1), C.int(crash))) + 1
	}
	waiting.Add(1)
	return int(C.c_wait(C.int(crash))) + 1
}

//go:noinline
func fromThread(depth int) int { return nested(depth, 0) + 1 }

//go:noinline
func enterNest(depth, crash int) int { return nested(depth, crash) + 1 }

//go:noinline
func enterMain(depth, crash int) int { return nested(depth, crash) + 1 }

func expect(name string, depth int, bottom ...string) {
	functions := []string{"c_wait", "main.nested"}
	for ; depth > 0; depth-- {
		functions = append(functions, "main.goNest", "c_inlined", "c_nest", "main.nested")
	}
	fmt.Println("stack", name, strings.Join(append(functions, bottom...), " "))
}

func main() {
	mode := "segv"
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	expect("main.enterNest", 3, "main.enterNest")
	expect("main.fromThread", 2, "main.fromThread", "main.goFromThread", "c_thread")
	go func() { sink += enterNest(3, 0) }()
	C.c_start()
	for waiting.Load() != 2 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	if mode == "segv" {
		expect("main.enterMain", 1, "main.enterMain", "main.main")
		sink += enterMain(1, 1)
	}
	fmt.Println("READY")
	time.Sleep(time.Hour)
}
