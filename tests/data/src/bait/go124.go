//go:build go1.24

package main

import (
	"runtime"
	"unique"
	"unsafe"
	"weak"
)

type Cleaned struct{ a, b, c int64 }
type CleanupArg struct{ a, b int64 }
type WeakTarget struct{ a, b, c, d int64 }

var (
	cleaned     []*Cleaned
	weakTargets []*WeakTarget
	weakOnes    []weak.Pointer[WeakTarget]
	handles     []unique.Handle[string]
)

func buildVersioned(collecting bool) {
	cleaned = made[Cleaned]("main.Cleaned", 9)
	for _, c := range cleaned {
		runtime.AddCleanup(c, func(arg *CleanupArg) { arg.a++ }, new(CleanupArg))
	}
	count("main.CleanupArg", unsafe.Sizeof(CleanupArg{}), 9)
	weakTargets = made[WeakTarget]("main.WeakTarget", 4)
	for _, t := range weakTargets {
		weakOnes = append(weakOnes, weak.Make(t))
	}
	if collecting {
		return // each collection makes garbage: see below
	}
	// In 1.24 a goroutine of package unique looks through these after each collection and leaves two closures of 24 bytes
	// behind (unique/handle.go, addUniqueMap); later versions leave nothing.
	for i := 0; i < 6; i++ {
		handles = append(handles, unique.Make(numbered("unique-string-", i, 6)))
	}
}
