// Cgocrash dies inside C that Go called, or inside Go that C called.
//
//	cgocrash MODE
//
// MODE: segv (C writes to address 16), abort (C calls abort), callback (a Go function called back by C dereferences
// nil), wait (print READY; one goroutine sleeps in C, one in Go called back by C).
package main

/*
#include <stdlib.h>
#include <unistd.h>

extern int goCallback(int depth, int mode);

__attribute__((noinline)) static int c_leaf(int mode)
{
	if (mode == 0)
		*(volatile int *)16 = 1;
	if (mode == 1)
		abort();
	if (mode == 3)
		for (;;)
			pause();
	return mode;
}

__attribute__((noinline)) static int c_middle(int depth, int mode)
{
	int result = depth > 0 ? c_middle(depth - 1, mode) : c_leaf(mode);
	return result + 1;
}

__attribute__((noinline)) static int c_call_back(int depth, int mode)
{
	return goCallback(depth, mode) + 1;
}
*/
import "C"

import (
	"fmt"
	"os"
	"time"
)

type Order struct{ ID, Amount int }

var sink int

//export goCallback
func goCallback(depth, mode C.int) C.int { return C.int(called(int(depth), int(mode), nil)) }

//go:noinline
func called(depth, mode int, order *Order) int {
	if depth > 0 {
		return called(depth-1, mode, order) + 1
	}
	if mode == 4 {
		time.Sleep(time.Hour)
	}
	return order.Amount
}

//go:noinline
func enterC(depth, mode int) int { return int(C.c_middle(C.int(depth), C.int(mode))) }

//go:noinline
func enterCallback(depth, mode int) int { return int(C.c_call_back(C.int(depth), C.int(mode))) }

func main() {
	mode := "segv"
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	go func() { sink += enterC(2, 3) }()
	go func() { sink += enterCallback(2, 4) }()
	time.Sleep(50 * time.Millisecond)
	switch mode {
	case "segv":
		sink += enterC(3, 0)
	case "abort":
		sink += enterC(3, 1)
	case "callback":
		sink += enterCallback(3, 2)
	default:
		fmt.Println("READY")
		time.Sleep(time.Hour)
	}
}
