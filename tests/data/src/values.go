// Values keeps known values of every kind in package variables, closures, channels and frames, prints them in words of its
// own (encoding/json, fmt), and dies or waits.
//
//	values MODE
//
// MODE: crash (nil dereference) or wait (print READY, sleep). What it prints:
//
//	global NAME JSON    the value of a package variable
//	text NAME TEXT      the same for one that has a spelling of its own
//	map NAME growing=B  whether its buckets are being moved (Go 1.23 and before)
//	local FUNCTION NAME JSON    variables of a frame that waits
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

type Inner struct {
	A int8
	B uint16
	C float32
}

type Wide struct { // stored behind a pointer in maps
	ID  int64
	Pad [20]int64
}

type Scalars struct {
	T, F       bool
	I8         int8
	I16        int16
	I32        int32
	I64        int64
	I          int
	U8         uint8
	U16        uint16
	U32        uint32
	U64        uint64
	U          uint
	F32        float32
	F64, Small float64
	S, Empty   string
	Quoted     string
	Utf8       string
	In         Inner
	Array      [5]int16
	Slice      []Inner
	NilSlice   []int
	Pointer    *Inner
	NilPointer *Inner
	Any        any
	NilAny     any
	Err        error
}

type Ring struct {
	ID   int
	Next *Ring
}

type pair[K comparable, V any] struct {
	Key K
	Val V
}

var (
	scalars = Scalars{T: true, I8: -128, I16: -32768, I32: -1 << 31, I64: -1 << 63, I: -7, U8: 255, U16: 65535, U32: 1<<32 - 1,
		U64: 1<<64 - 1, U: 7, F32: 0.1, F64: math.Pi, Small: 5e-324, S: "plain", Quoted: "tab\tquote\" back\\ nl\n nul\x00",
		Utf8: "grün 世界 🙂", In: Inner{-1, 2, 3.5}, Array: [5]int16{1, -2, 3, -4, 5}, Slice: []Inner{{1, 2, 0.25}, {3, 4, 1e20}},
		Pointer: &Inner{9, 8, 7}, Any: Inner{4, 5, 6}}
	mapEmpty   = map[string]int{}
	mapOne     = map[string]int{"one": 1}
	mapEight   = map[int]string{}
	mapBig     = map[int32]int64{}
	mapGrowing = map[int]int{}
	mapWide    = map[string]Wide{}
	mapStruct  = map[[2]int8]Inner{}
	mapDeleted = map[uint16]bool{}
	mapOfMaps  = map[string]map[string]int{"a": {"x": 1}, "b": {"y": 2, "z": 3}}
	generic    = pair[string, []int]{"k", []int{3, 2, 1}}
	manyInts   [300]int32
	longString string
	chanOpen   = make(chan int, 5)
	chanClosed = make(chan string, 3)
	ring       = &Ring{ID: 1}

	duration  = 90*time.Minute + 1500*time.Millisecond
	durations = []time.Duration{0, 1, 1500, 2500000, -time.Second, math.MaxInt64}
	wall      = time.Date(2024, 2, 29, 23, 59, 58, 123456789, time.UTC)
	monotonic time.Time
	ancient   = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	ip4       = net.IPv4(192, 0, 2, 17)
	ip6       = net.ParseIP("2001:db8::7")
	counter   atomic.Int64
	flag      atomic.Bool
	pointed   atomic.Pointer[Inner]
	locked    sync.Mutex
	unlocked  sync.Mutex
	failure   = errors.New("it failed")
	cplx      = complex(1.5, -2)
	infinite  = math.Inf(-1)
	function  = strings.ToUpper
	closure   func() int
	block     = make(chan struct{})
	ready     sync.WaitGroup
)

//go:noinline
func makeClosure(base int, label string) func() int {
	calls := 0
	return func() int { calls++; return base + len(label) + calls }
}

func global(name string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	fmt.Printf("global %s %s\n", name, b)
}

func local(function, name string, v any) {
	b, _ := json.Marshal(v)
	fmt.Printf("local %s %s %s\n", function, name, b)
}

//go:noinline
func use(v ...any) { ready.Done() }

//go:noinline
func holder(number int, text string, inner *Inner, list []int16) (result int) {
	array := [4]int32{number2(number), 20, 30, 40}
	sum := float64(number) / 4
	table := map[string]int{"in": number, "frame": 2}
	use(&array, &sum, &table)
	<-block
	fmt.Println(number, text, inner, list, array, sum, table)
	return number
}

//go:noinline
func number2(n int) int32 { return int32(n) * 2 }

func fill() {
	for i := 0; i < 8; i++ {
		mapEight[i] = fmt.Sprint("value-", i)
		mapWide[fmt.Sprint("wide-", i*3)] = Wide{int64(i), [20]int64{19: int64(-i)}}
		mapStruct[[2]int8{int8(i), int8(-i)}] = Inner{int8(i), uint16(i) * 1000, float32(i) / 3}
	}
	for i := int32(0); i < 3000; i++ {
		mapBig[i*7919] = int64(i) * int64(i)
	}
	// An old map moves its buckets by two at each write once it has more than 6.5 for each of its buckets.
	for i := 0; i < 6657; i++ {
		mapGrowing[i] = -i
	}
	for i := uint16(0); i < 1000; i++ {
		mapDeleted[i] = i%3 == 0
	}
	for i := uint16(0); i < 1000; i++ {
		if i%10 != 0 {
			delete(mapDeleted, i)
		}
	}
	for i := range manyInts {
		manyInts[i] = int32(i * i)
	}
	longString = strings.Repeat("0123456789", 1000)
	for i := 0; i < 5; i++ { // the buffer wraps
		chanOpen <- i
	}
	<-chanOpen
	<-chanOpen
	chanOpen <- 5
	chanClosed <- "last"
	close(chanClosed)
	ring.Next = &Ring{2, &Ring{3, ring}}
	counter.Store(-42)
	flag.Store(true)
	pointed.Store(&Inner{1, 1, 1})
	locked.Lock()
	unlocked.Lock()
	unlocked.Unlock()
	if len(os.Args) > 5 {
		function = strings.ToLower
	}
	monotonic = time.Now()
	closure = makeClosure(100, "lbl")
	closure()
}

func main() {
	fill()
	global("main.scalars", scalars)
	global("main.mapEmpty", mapEmpty)
	global("main.mapOne", mapOne)
	global("main.mapEight", mapEight)
	global("main.mapBig", mapBig)
	global("main.mapGrowing", mapGrowing)
	global("main.mapWide", mapWide)
	global("main.mapDeleted", mapDeleted)
	global("main.mapOfMaps", mapOfMaps)
	keyed := map[string]Inner{}
	for k, v := range mapStruct {
		keyed[fmt.Sprint(k[0], ",", k[1])] = v
	}
	global("main.mapStruct", keyed)
	global("main.generic", generic)
	global("main.manyInts", manyInts)
	global("main.longString", longString)
	global("main.chanOpen", []int{2, 3, 4, 5})
	global("main.chanClosed", []string{"last"})
	global("main.counter", counter.Load())
	global("main.pointed", pointed.Load())
	if reflect.TypeOf(mapGrowing).Size() == 8 { // runtime.hmap up to Go 1.23
		type hmap struct {
			count                  int
			flags, b               uint8
			overflow               uint16
			hash                   uint32
			buckets, old, evacuate unsafe.Pointer
		}
		h := *(**hmap)(unsafe.Pointer(&mapGrowing))
		fmt.Printf("map main.mapGrowing growing=%v\n", h.old != nil)
	}
	fmt.Println("text main.duration", duration)
	for i, d := range durations {
		fmt.Printf("text main.durations.%d %v\n", i, d)
	}
	const form = "2006-01-02 15:04:05.000000000 UTC"
	fmt.Println("text main.wall", wall.Format(form))
	fmt.Println("text main.monotonic", monotonic.UTC().Format(form))
	fmt.Println("text main.ancient", ancient.Format(form))
	fmt.Println("text main.ip4", ip4)
	fmt.Println("text main.ip6", ip6)
	fmt.Println("text main.flag", flag.Load())
	fmt.Println("text main.locked locked")
	fmt.Println("text main.unlocked unlocked")
	fmt.Println("text main.cplx", cplx)
	fmt.Println("text main.infinite", infinite)
	fmt.Println("text main.function strings.ToUpper")
	fmt.Println("text main.closure main.makeClosure.func1")
	fmt.Printf("text main.failure %q\n", failure)

	local("main.holder", "number", 41)
	local("main.holder", "text", "an argument")
	local("main.holder", "inner", Inner{5, 6, 7})
	local("main.holder", "list", []int16{-1, 0, 1})
	local("main.holder", "&array", [4]int32{82, 20, 30, 40})
	local("main.holder", "&sum", 41.0/4)
	local("main.holder", "&table", map[string]int{"in": 41, "frame": 2})
	ready.Add(1)
	go holder(41, "an argument", &Inner{5, 6, 7}, []int16{-1, 0, 1})
	ready.Wait()
	time.Sleep(50 * time.Millisecond) // from there into its wait
	if len(os.Args) > 1 && os.Args[1] == "wait" {
		fmt.Println("READY")
		time.Sleep(time.Hour)
	}
	var none *Scalars
	none.I = int(unsafe.Sizeof(scalars))
}
