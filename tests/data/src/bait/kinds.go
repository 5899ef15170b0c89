// What only the runtime, the libraries' untyped words, or code says the type of.
package main

import (
	"context"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Held by atomic pointers alone.
type AtomicHeld struct {
	id   int64
	next atomic.Pointer[AtomicHeld]
}

// Receivers of method values.
type MethodReceiver struct{ a, b, c int64 }
type MethodCopied struct {
	id   int64
	leaf *MethodLeaf
}
type MethodLeaf struct{ a, b, c, d int64 }
type MethodShape struct{ side, pad, more int64 }
type MethodGeneric[T any] struct {
	value T
	leaf  *MethodLeaf
}

func (m *MethodReceiver) Add() int64   { m.a++; return m.a }
func (m MethodCopied) Add() int64      { return m.id + m.leaf.a }
func (m *MethodShape) Area() int64     { return m.side }
func (m *MethodGeneric[T]) Add() int64 { return m.leaf.a }

// In a sync.Map: keys and values boxed, or pointers.
type SyncMapKey struct{ a, b, c int64 }
type SyncMapValue struct {
	id int64
	p  *SyncMapValue
}

// In a second sync.Pool, from before the last collection.
type VictimItem struct {
	id int64
	p  *VictimItem
}

// In memory that reflect made types for.
type ReflectLeaf struct{ a, b, c int64 }
type ReflectHeld struct {
	id int64
	p  *ReflectLeaf
}
type ReflectArg struct{ a, b, c, d int64 }

// Behind unsafe.Pointer: nothing tells.
type UnsafeHeld struct{ a, b, c, d, e, f int64 }

// In channels' buffers.
type ChanElem struct {
	id int64
	p  *ChanElemLeaf
}
type ChanElemLeaf struct{ a, b, c int64 }

// What deferred calls, a panic's value and a context hold.
type DeferArg struct{ a, b, c int64 }
type PanicValue struct {
	text string
	leaf *PanicLeaf
}
type PanicLeaf struct{ a, b, c int64 }
type ContextKey struct{ a, b int64 }
type ContextValue struct{ a, b, c int64 }

// In a map that is growing.
type GrowingValue struct {
	id int64
	p  *GrowingValue
}

// Three values of different types in the tiny allocator's blocks.
type TinyByte struct{ a byte }
type TinyWord struct{ a uint16 }
type TinyLong struct{ a uint32 }

var (
	atomicHeld    atomic.Pointer[AtomicHeld]
	methods       []func() int64
	syncMap       sync.Map
	victims       = sync.Pool{New: func() any { return nil }}
	reflected     []any
	reflectValue  reflect.Value
	reflectFunc   func(int) int
	reflectMethod any
	unsafeHeld    unsafe.Pointer
	chanElems     chan ChanElem
	contextHeld   context.Context
	growing       map[int64]*GrowingValue
	tinyBytes     [6]*TinyByte
	tinyWords     [6]*TinyWord
	tinyLongs     [6]*TinyLong
)

func one[T any](name string) *T {
	count(name, unsafe.Sizeof(*new(T)), 1)
	return new(T)
}

func buildKinds() {
	for i := int64(0); i < 9; i++ {
		held := one[AtomicHeld]("main.AtomicHeld")
		held.next.Store(atomicHeld.Load())
		atomicHeld.Store(held)
	}

	for i := 0; i < 5; i++ {
		methods = append(methods, one[MethodReceiver]("main.MethodReceiver").Add,
			MethodCopied{1, one[MethodLeaf]("main.MethodLeaf")}.Add)
		generic := one[MethodGeneric[string]]("main.MethodGeneric[string]")
		generic.leaf = one[MethodLeaf]("main.MethodLeaf")
		methods = append(methods, generic.Add)
		var shape Shape = one[MethodShape]("main.MethodShape")
		methods = append(methods, shape.Area)
	}

	for i := int64(0); i < 90; i++ {
		value := one[SyncMapValue]("main.SyncMapValue")
		value.id = i
		if i%3 == 0 {
			syncMap.Store(one[SyncMapKey]("main.SyncMapKey"), value)
		} else {
			syncMap.Store(1000+i, value)
		}
	}

	leaf := one[ReflectLeaf]("main.ReflectLeaf")
	structType := reflect.StructOf([]reflect.StructField{
		{Name: "Leaf", Type: reflect.TypeOf(leaf)}, {Name: "Number", Type: reflect.TypeOf(int64(0))}})
	made := reflect.New(structType)
	made.Elem().Field(0).Set(reflect.ValueOf(leaf))
	m := reflect.MakeMap(reflect.MapOf(reflect.TypeOf(int16(0)), reflect.TypeOf(leaf)))
	for i := int16(0); i < 20; i++ {
		m.SetMapIndex(reflect.ValueOf(i), reflect.ValueOf(one[ReflectLeaf]("main.ReflectLeaf")))
	}
	slice := reflect.MakeSlice(reflect.SliceOf(structType), 4, 4)
	for i := 0; i < 4; i++ {
		slice.Index(i).Field(0).Set(reflect.ValueOf(one[ReflectLeaf]("main.ReflectLeaf")))
	}
	array := reflect.New(reflect.ArrayOf(7, reflect.TypeOf(leaf)))
	for i := 0; i < 7; i++ {
		array.Elem().Index(i).Set(reflect.ValueOf(one[ReflectLeaf]("main.ReflectLeaf")))
	}
	channel := reflect.MakeChan(reflect.ChanOf(reflect.BothDir, structType), 3)
	channel.Send(slice.Index(0))
	reflected = append(reflected, made.Interface(), m.Interface(), slice.Interface(), array.Interface(), channel.Interface())
	held := one[ReflectHeld]("main.ReflectHeld")
	held.p = one[ReflectLeaf]("main.ReflectLeaf")
	reflectValue = reflect.ValueOf(held).Elem() // addressable: the Value holds a plain pointer
	arg := one[ReflectArg]("main.ReflectArg")
	function := reflect.MakeFunc(reflect.TypeOf(reflectFunc), func(in []reflect.Value) []reflect.Value {
		arg.a++
		return in
	})
	reflectFunc = function.Interface().(func(int) int)
	receiver := one[MethodReceiver]("main.MethodReceiver")
	reflectMethod = reflect.ValueOf(receiver).Method(0).Interface()

	unsafeHeld = unsafe.Pointer(new(UnsafeHeld))

	chanElems = make(chan ChanElem, 6)
	for i := int64(0); i < 4; i++ {
		chanElems <- ChanElem{i, one[ChanElemLeaf]("main.ChanElemLeaf")}
	}

	contextHeld = context.WithValue(context.Background(), one[ContextKey]("main.ContextKey"), one[ContextValue]("main.ContextValue"))
	contextHeld, _ = context.WithCancel(contextHeld)

	// 13 entries a bucket of 8 fill 2 of 2 to 6.5; one more begins to move them, one bucket at a time.
	growing = make(map[int64]*GrowingValue)
	for i := int64(0); i < 13*1024+1; i++ {
		growing[i] = one[GrowingValue]("main.GrowingValue")
	}

	for i := range tinyBytes {
		tinyBytes[i], tinyWords[i], tinyLongs[i] = new(TinyByte), new(TinyWord), new(TinyLong)
	}
	runtime.KeepAlive(function)
}

//go:noinline
func fillVictims() {
	for i := int64(0); i < 4; i++ {
		victims.Put(one[VictimItem]("main.VictimItem"))
	}
}

func goDefers() {
	for i := 0; i < 5; i++ {
		arg := one[DeferArg]("main.DeferArg")
		defer func() { sink += arg.a }()
	}
	entered.Add(1)
	<-chanSync
}

func goPanicValue() {
	defer func() {
		recover()
	}()
	defer func() {
		entered.Add(1)
		<-chanSync
	}()
	panic(&PanicValue{"blocked while it panics", new(PanicLeaf)})
}
