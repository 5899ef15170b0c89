// Bait builds a heap and a set of goroutines of known composition, prints what it built, and dies or waits.
//
//	bait MODE [NODES]
//
// MODE: print (exit 0), crash (nil dereference), panic, abort (SIGABRT to itself), wait (print READY, sleep), gcabort
// and gcwait (the same while a garbage collection runs all the time; without PoolItem and Garbage).
//
// What it prints are lines of `kind key=value...`. Each figure is exact for the dump that follows: the last thing that
// allocates comes before the figures are taken.
//
//	type     name, count, size    objects that were allocated one by one with exactly this type
//	         live=0               they are all garbage, allocated after the last collection
//	slice    name, type, len, cap, elemsize    backing arrays, reachable from the global of that name
//	map      name, type, len
//	chan     name, type, len, cap
//	tiny     name, objects, blocks   the blocks of 16 bytes that hold them
//	string   name, count, bytes   strings with a backing array of their own
//	retained name, objects, bytes what a global dominates (objects by their size class)
//	func     name, count          goroutines with this function at the bottom
//	addr     name, addr           an object's address
//	mem      name, value          runtime.MemStats; stable=1: two readings were equal
//	class    size, objects        allocated objects of each size class; the runtime lists those up to about 19 KiB
//	stacks_begin ... stacks_end   runtime.Stack of all goroutines
//	end
package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// ---- small objects

type Node struct { // 48 bytes (sizes in this file: of 64-bit machines)
	next, prev *Node
	name       string
	id         int64
	value      float64
}

type Medium struct { // 808 bytes: a malloc header in front
	id    int64
	kids  [50]*MediumLeaf
	bytes [400]byte
}

type MediumLeaf struct{ a, b int64 }

type Large struct { // 40,000 bytes: an object of its own span
	kids [4000]*LargeLeaf
	pad  [1000]int64
}

type LargeLeaf struct{ a, b int64 }

type Point struct{ x, y, z int64 } // no pointers

type Tiny struct{ a, b uint16 } // in the tiny allocator's blocks

type Empty struct{}

type TreeNode struct { // 32 bytes
	left, right *TreeNode
	depth, id   int64
}

type Diamond struct{ left, right *DiamondSide }
type DiamondSide struct {
	shared *DiamondShared
	own    *DiamondOwn
}
type DiamondShared struct{ a, b, c, d int64 }
type DiamondOwn struct{ a, b int64 }

type Pair[K comparable, V any] struct {
	key   K
	value V
	next  *Pair[K, V]
}

// ---- slices of pointers: each length has a leaf type of its own

type Leaf60 struct{ a, b int64 }
type Leaf100 struct{ a, b int64 }
type Leaf3000 struct{ a, b int64 }
type Leaf4000 struct {
	a int64
	p *Leaf4000
}
type Leaf4095 struct{ a, b int64 }
type Leaf4096 struct {
	p *Leaf4096
	a int64
}
type Leaf9000 struct{ a, b int64 }
type Leaf20000 struct{ a, b int64 }

// ---- request sizes about the borders of the three kinds of pointer maps

type At504 struct{ p [63]*LeafAt504 }
type At512 struct{ p [64]*LeafAt512 }
type At520 struct{ p [65]*LeafAt520 }
type At1016 struct{ p [127]*LeafAt1016 }
type At1024 struct{ p [128]*LeafAt1024 }
type At28664 struct{ p [3583]*LeafAt28664 }
type At28672 struct{ p [3584]*LeafAt28672 } // with its header in the class of 32,768
type At32752 struct{ p [4094]*LeafAt32752 }
type At32760 struct{ p [4095]*LeafAt32760 } // the largest that has a header
type At32768 struct{ p [4096]*LeafAt32768 } // a large object of the same size as the class before
type At32776 struct{ p [4097]*LeafAt32776 }

type LeafAt504 struct{ a, b int64 }
type LeafAt512 struct{ a, b int64 }
type LeafAt520 struct{ a, b int64 }
type LeafAt1016 struct{ a, b int64 }
type LeafAt1024 struct{ a, b int64 }
type LeafAt28664 struct{ a, b int64 }
type LeafAt28672 struct{ a, b int64 }
type LeafAt32752 struct{ a, b int64 }
type LeafAt32760 struct{ a, b int64 }
type LeafAt32768 struct{ a, b int64 }
type LeafAt32776 struct{ a, b int64 }

// ---- pointers stop half-way

type Half48 struct {
	p   [2]*LeafHalf48
	pad [4]int64
}
type Half400 struct {
	p   [20]*LeafHalf400
	pad [30]int64
}
type Half600 struct {
	p   [30]*LeafHalf600
	pad [45]int64
}
type Half40000 struct {
	p   [2500]*LeafHalf40000
	pad [2500]int64
}
type LeafHalf48 struct{ a, b int64 }
type LeafHalf400 struct{ a, b int64 }
type LeafHalf600 struct{ a, b int64 }
type LeafHalf40000 struct{ a, b int64 }

type Row40 struct { // elements of slices
	p   *LeafRow40
	pad [4]int64
}
type LeafRow40 struct{ a, b int64 }

// ---- masks that the runtime does not keep ready

type Huge struct { // 160,000 bytes of pointers
	p   [20000]*LeafHuge
	pad [1000]int64
}
type LeafHuge struct{ a, b int64 }
type Cell struct {
	a, b uintptr
	p    *LeafCell
}
type Cells [1 << 16]Cell
type LeafCell struct{ a, b int64 }

// ---- what maps, channels, interfaces, closures, finalizers, timers hold

type MapValue struct {
	id int64
	p  *MapValue
}
type MapWide struct { // stored behind a pointer
	p   *MapWideLeaf
	pad [20]int64
}
type MapWideLeaf struct{ a, b int64 }
type ChanItem struct {
	id int64
	p  *ChanItem
}
type ChanWait struct{ id, pad int64 }
type Shape interface{ Area() int64 }
type Square struct{ side, pad int64 }
type Circle struct {
	radius int64
	label  *Label
}
type Label struct{ a, b, c int64 }
type Captured struct{ a, b, c int64 }
type Finalized struct {
	id   int64
	self *FinalizedLeaf
}
type FinalizedLeaf struct{ a, b int64 }
type FinalizerArg struct{ a, b, c, d int64 }
type TimerArg struct{ a, b, c int64 }
type PoolItem struct {
	id int64
	p  *PoolItem
}
type StackOnly struct {
	id int64
	p  *StackOnlyLeaf
}
type StackOnlyLeaf struct{ a, b int64 }
type Garbage struct {
	id int64
	p  *Garbage
}

// Held by package variables of interface type, and by nothing else.
type HeldAny struct {
	id int64
	p  *HeldLeaf
}
type HeldNamed struct {
	id int64
	p  *HeldLeaf
}
type HeldLeaf struct{ a, b int64 }

func (h *HeldNamed) Area() int64 { return h.id }
func (s *Square) Area() int64    { return s.side * s.side }
func (c Circle) Area() int64     { return 3 * c.radius * c.radius }

// ---- globals: the roots

var (
	list       *Node
	mediums    []*Medium
	larges     []*Large
	points     []*Point
	tinies     []*Tiny
	tinyBefore *Tiny
	grid       []Point
	matrix     *[16][16]*Point
	tree       *TreeNode
	diamond    *Diamond
	pairs      *Pair[string, *Point]
	heldAny    any
	heldNamed  interface{ Area() int64 }
	interior   *int64 // the middle of a Point that nothing else holds

	l60    []*Leaf60
	l100   []*Leaf100
	l3000  []*Leaf3000
	l4000  []*Leaf4000
	l4095  []*Leaf4095
	l4096  []*Leaf4096
	l9000  []*Leaf9000
	l20000 []*Leaf20000

	at504   [3]*At504
	at512   [3]*At512
	at520   [3]*At520
	at1016  [3]*At1016
	at1024  [3]*At1024
	at28664 [3]*At28664
	at28672 [3]*At28672
	at32752 [3]*At32752
	at32760 [3]*At32760
	at32768 [3]*At32768
	at32776 [3]*At32776

	half48    [5]*Half48
	half400   [5]*Half400
	half600   [5]*Half600
	half40000 [2]*Half40000
	rows5     []Row40
	rows12    []Row40
	rows100   []Row40
	rows800   []Row40
	rows5000  []Row40

	huge  *Huge
	cells *Cells

	names     []string
	longNames []string
	blob      []byte

	mapBytes   map[string][]byte
	mapPtr     map[int]*MapValue
	mapSmall   map[string]*MapValue
	mapWide    map[[2]int32]MapWide
	mapDeleted map[uint64]*MapValue
	mapSet     map[string]struct{}
	mapNil     map[string]int

	chanItems chan *ChanItem
	chanInts  chan int
	chanSync  chan struct{}
	chanNil   chan int
	chanWait  chan *ChanWait

	shapes    []Shape
	anything  []any
	closures  []func() int64
	finalized []*Finalized
	timers    []*time.Timer
	ticker    *time.Ticker
	pool      sync.Pool
	mutex     sync.Mutex
	rwmutex   sync.RWMutex
	waitGroup sync.WaitGroup
	condMutex sync.Mutex
	cond      = sync.NewCond(&condMutex)
	pipeRead  *os.File
	pipeWrite *os.File
	rawPipe   [2]int

	entered atomic.Int64
	started int64
	stop    atomic.Bool
	sink    int64
)

// ---- the ledger of what was built; static storage, so that it is no part of the heap

type typeRow struct {
	name  string
	count int64
	size  uintptr
	dead  bool
}

var (
	types  [160]typeRow
	ntypes int
	out    [1 << 16]byte
	nout   int
	stacks [1 << 18]byte
	stats  [2]runtime.MemStats
)

func row(name string, size uintptr) *typeRow {
	for i := range types[:ntypes] {
		if types[i].name == name {
			return &types[i]
		}
	}
	types[ntypes] = typeRow{name: name, size: size}
	ntypes++
	return &types[ntypes-1]
}

func fill[T any](name string, to []*T) {
	r := row(name, unsafe.Sizeof(*new(T)))
	for i := range to {
		to[i] = new(T)
		r.count++
	}
}

func made[T any](name string, n int) []*T {
	to := make([]*T, n)
	fill(name, to)
	return to
}

func count(name string, size uintptr, n int64) {
	row(name, size).count += n
}

func put(s string) {
	nout += copy(out[nout:], s)
}

func putNumber(n uint64, base uint64) {
	var digits [20]byte
	i := len(digits)
	for {
		i--
		digits[i] = "0123456789abcdef"[n%base]
		n /= base
		if n == 0 {
			break
		}
	}
	nout += copy(out[nout:], digits[i:])
}

func putKey(key string, n uint64) {
	put(" ")
	put(key)
	put("=")
	putNumber(n, 10)
}

func flush() {
	writeAll(out[:nout])
	nout = 0
}

func writeAll(b []byte) {
	for len(b) > 0 {
		n, err := syscall.Write(1, b)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			os.Exit(3)
		}
		b = b[n:]
	}
}

func putType(r *typeRow) {
	put("type name=")
	put(r.name)
	putKey("count", uint64(r.count))
	putKey("size", uint64(r.size))
	if r.dead {
		put(" live=0")
	}
	put("\n")
}

func putSlice(name, typ string, n, c int, elem uintptr) {
	put("slice name=main.")
	put(name)
	put(" type=")
	put(typ)
	putKey("len", uint64(n))
	putKey("cap", uint64(c))
	putKey("elemsize", uint64(elem))
	put("\n")
}

func putSized(kind, name, typ string, n, c int) {
	put(kind)
	put(" name=main.")
	put(name)
	put(" type=")
	put(typ)
	putKey("len", uint64(n))
	if c >= 0 {
		putKey("cap", uint64(c))
	}
	put("\n")
}

func putPair(kind, name, k1 string, v1 int, k2 string, v2 int) {
	put(kind)
	put(" name=main.")
	put(name)
	putKey(k1, uint64(v1))
	putKey(k2, uint64(v2))
	put("\n")
}

func putAddr(name string, p unsafe.Pointer) {
	put("addr name=")
	put(name)
	put(" addr=0x")
	putNumber(uint64(uintptr(p)), 16)
	put("\n")
}

func putMem(name string, n uint64) {
	put("mem name=")
	put(name)
	putKey("value", n)
	put("\n")
}

// ---- the heap

func numbered(prefix string, n, width int) string {
	b := make([]byte, 0, 64)
	b = append(b, prefix...)
	digits := strconv.Itoa(n)
	for i := len(digits); i < width; i++ {
		b = append(b, '0')
	}
	return string(append(b, digits...))
}

func buildList(n int) {
	var last *Node
	for i := 0; i < n; i++ {
		node := &Node{prev: last, name: numbered("node-", i, 6), id: int64(i), value: float64(i) / 2}
		if last == nil {
			list = node
		} else {
			last.next = node
		}
		last = node
	}
	count("main.Node", unsafe.Sizeof(Node{}), int64(n))
}

func buildTree(depth int64) *TreeNode {
	if depth == 0 {
		return nil
	}
	count("main.TreeNode", unsafe.Sizeof(TreeNode{}), 1)
	return &TreeNode{buildTree(depth - 1), buildTree(depth - 1), depth, 7}
}

func buildSmall() {
	mediums = made[Medium]("main.Medium", 56)
	for i, m := range mediums {
		m.id = int64(i)
		fill("main.MediumLeaf", m.kids[:])
	}
	larges = made[Large]("main.Large", 4)
	for _, l := range larges {
		fill("main.LargeLeaf", l.kids[:])
	}
	points = made[Point]("main.Point", 300)
	for i, p := range points {
		p.x, p.y, p.z = int64(i), int64(2*i), int64(3*i)
	}
	for begins := false; !begins; { // a block of the tiny allocator with the next one
		tinyBefore = new(Tiny)
		begins = uintptr(unsafe.Pointer(tinyBefore))%16 == 12
	}
	tinyBefore = nil
	tinies = made[Tiny]("main.Tiny", 64)
	for i, t := range tinies {
		t.a = uint16(i)
	}
	grid = make([]Point, 1000)
	matrix = new([16][16]*Point)
	for i := range matrix {
		fill("main.Point", matrix[i][:])
	}
	count("[16][16]*main.Point", unsafe.Sizeof(*matrix), 1)
	tree = buildTree(10)

	shared := &DiamondShared{1, 2, 3, 4}
	diamond = &Diamond{&DiamondSide{shared, &DiamondOwn{}}, &DiamondSide{shared, &DiamondOwn{}}}
	count("main.Diamond", unsafe.Sizeof(Diamond{}), 1)
	count("main.DiamondSide", unsafe.Sizeof(DiamondSide{}), 2)
	count("main.DiamondShared", unsafe.Sizeof(DiamondShared{}), 1)
	count("main.DiamondOwn", unsafe.Sizeof(DiamondOwn{}), 2)

	for i := 0; i < 25; i++ {
		pairs = &Pair[string, *Point]{"key", &Point{x: int64(i)}, pairs}
	}
	count("main.Point", 0, 25)
	count("main.Pair[string,*main.Point]", unsafe.Sizeof(*pairs), 25)

	p := &Point{1, 2, 3}
	interior = &p.y
	count("main.Point", 0, 1)
}

func buildSlices() {
	l60 = made[Leaf60]("main.Leaf60", 60)
	l100 = made[Leaf100]("main.Leaf100", 100)
	l3000 = made[Leaf3000]("main.Leaf3000", 3000)
	l4000 = made[Leaf4000]("main.Leaf4000", 4000)
	l4095 = made[Leaf4095]("main.Leaf4095", 4095)
	l4096 = made[Leaf4096]("main.Leaf4096", 4096)
	l9000 = made[Leaf9000]("main.Leaf9000", 9000)
	l20000 = made[Leaf20000]("main.Leaf20000", 20000)
}

func buildBorders() {
	fill("main.At504", at504[:])
	fill("main.At512", at512[:])
	fill("main.At520", at520[:])
	fill("main.At1016", at1016[:])
	fill("main.At1024", at1024[:])
	fill("main.At28664", at28664[:])
	fill("main.At28672", at28672[:])
	fill("main.At32752", at32752[:])
	fill("main.At32760", at32760[:])
	fill("main.At32768", at32768[:])
	fill("main.At32776", at32776[:])
	for i := 0; i < 3; i++ {
		fill("main.LeafAt504", at504[i].p[:])
		fill("main.LeafAt512", at512[i].p[:])
		fill("main.LeafAt520", at520[i].p[:])
		fill("main.LeafAt1016", at1016[i].p[:])
		fill("main.LeafAt1024", at1024[i].p[:])
		fill("main.LeafAt28664", at28664[i].p[:])
		fill("main.LeafAt28672", at28672[i].p[:])
		fill("main.LeafAt32752", at32752[i].p[:])
		fill("main.LeafAt32760", at32760[i].p[:])
		fill("main.LeafAt32768", at32768[i].p[:])
		fill("main.LeafAt32776", at32776[i].p[:])
	}
}

func rows(n int) []Row40 {
	s := make([]Row40, n)
	for i := range s {
		s[i].p = new(LeafRow40)
	}
	count("main.LeafRow40", unsafe.Sizeof(LeafRow40{}), int64(n))
	return s
}

func buildHalves() {
	fill("main.Half48", half48[:])
	fill("main.Half400", half400[:])
	fill("main.Half600", half600[:])
	fill("main.Half40000", half40000[:])
	for i := range half48 {
		fill("main.LeafHalf48", half48[i].p[:])
		fill("main.LeafHalf400", half400[i].p[:])
		fill("main.LeafHalf600", half600[i].p[:])
		// An integer that looks like a pointer, behind the last pointer: nothing may follow it.
		half600[i].pad[44] = int64(uintptr(unsafe.Pointer(half48[i])))
	}
	for i := range half40000 {
		fill("main.LeafHalf40000", half40000[i].p[:])
	}
	rows5, rows12, rows100, rows800, rows5000 = rows(5), rows(12), rows(100), rows(800), rows(5000)
}

func buildHuge() {
	huge = new(Huge)
	count("main.Huge", unsafe.Sizeof(*huge), 1)
	fill("main.LeafHuge", huge.p[:])
	cells = new(Cells)
	count("main.Cells", unsafe.Sizeof(*cells), 1)
	n := int64(0)
	for i := 0; i < len(cells); i += 3 {
		cells[i].p = new(LeafCell)
		n++
	}
	count("main.LeafCell", unsafe.Sizeof(LeafCell{}), n)
}

var nameBytes, longNameBytes int

func buildStrings() {
	names = make([]string, 700)
	for i := range names {
		names[i] = numbered("n", i, 5)
		nameBytes += len(names[i])
	}
	longNames = make([]string, 200)
	for i := range longNames {
		longNames[i] = numbered("a-name-that-has-a-slot-of-its-own-", i, 4)
		longNameBytes += len(longNames[i])
	}
	blob = make([]byte, 100000)
}

func buildMaps() {
	mapBytes = make(map[string][]byte)
	for i := 0; i < 500; i++ {
		mapBytes[numbered("map-key-", i, 8)] = make([]byte, 200)
	}
	mapPtr = make(map[int]*MapValue)
	for i := 0; i < 1000; i++ {
		mapPtr[i] = &MapValue{id: int64(i)}
	}
	mapSmall = make(map[string]*MapValue)
	for i := 0; i < 5; i++ {
		mapSmall[numbered("small-key-", i, 8)] = &MapValue{id: int64(i)}
	}
	mapWide = make(map[[2]int32]MapWide)
	for i := 0; i < 50; i++ {
		mapWide[[2]int32{int32(i), 1}] = MapWide{p: new(MapWideLeaf)}
	}
	mapDeleted = make(map[uint64]*MapValue)
	for i := uint64(0); i < 200; i++ {
		mapDeleted[i] = &MapValue{id: int64(i)}
	}
	for i := uint64(50); i < 200; i++ {
		delete(mapDeleted, i)
	}
	mapSet = make(map[string]struct{})
	for i := 0; i < 40; i++ {
		mapSet[numbered("member-of-set-", i, 6)] = struct{}{}
	}
	count("main.MapValue", unsafe.Sizeof(MapValue{}), 1000+5+50)
	count("main.MapWideLeaf", unsafe.Sizeof(MapWideLeaf{}), 50)
}

func buildHolders() {
	chanItems = make(chan *ChanItem, 16)
	for i := 0; i < 13; i++ {
		chanItems <- &ChanItem{id: int64(i)}
	}
	for i := 0; i < 3; i++ {
		<-chanItems
	}
	chanInts = make(chan int, 8)
	chanInts <- 1
	chanInts <- 2
	chanSync = make(chan struct{})
	chanWait = make(chan *ChanWait)
	count("main.ChanItem", unsafe.Sizeof(ChanItem{}), 10)

	for i := int64(0); i < 55; i++ {
		shapes = append(shapes, &Square{i, 0})
	}
	for i := int64(0); i < 20; i++ {
		shapes = append(shapes, Circle{i, &Label{}})
	}
	count("main.Square", unsafe.Sizeof(Square{}), 55)
	count("main.Circle", unsafe.Sizeof(Circle{}), 20)
	count("main.Label", unsafe.Sizeof(Label{}), 20)
	anything = []any{int64(1 << 40), "a string", &Square{1, 2}, Circle{1, &Label{}}, 3.5, Empty{}, nil, &list}
	count("main.Square", 0, 1)
	count("main.Circle", 0, 1)
	count("main.Label", 0, 1)
	heldAny = &HeldAny{1, &HeldLeaf{2, 3}}
	heldNamed = &HeldNamed{4, &HeldLeaf{5, 6}}
	count("main.HeldAny", unsafe.Sizeof(HeldAny{}), 1)
	count("main.HeldNamed", unsafe.Sizeof(HeldNamed{}), 1)
	count("main.HeldLeaf", unsafe.Sizeof(HeldLeaf{}), 2)

	for i := int64(0); i < 10; i++ {
		captured := &Captured{a: i}
		closures = append(closures, func() int64 { captured.b++; return captured.a })
	}
	count("main.Captured", unsafe.Sizeof(Captured{}), 10)

	finalized = made[Finalized]("main.Finalized", 12)
	for _, f := range finalized {
		f.self = new(FinalizedLeaf)
		arg := new(FinalizerArg) // held by the finalizer alone
		runtime.SetFinalizer(f, func(*Finalized) { arg.a++ })
	}
	count("main.FinalizedLeaf", unsafe.Sizeof(FinalizedLeaf{}), 12)
	count("main.FinalizerArg", unsafe.Sizeof(FinalizerArg{}), 12)

	for i := 0; i < 7; i++ {
		arg := new(TimerArg)
		timers = append(timers, time.AfterFunc(time.Hour, func() { arg.a++ }))
	}
	count("main.TimerArg", unsafe.Sizeof(TimerArg{}), 7)
	timers = append(timers, time.NewTimer(time.Hour))
	ticker = time.NewTicker(time.Hour)
}

//go:noinline
func buildLate() {
	for i := int64(0); i < 5; i++ {
		pool.Put(&PoolItem{id: i})
	}
	count("main.PoolItem", unsafe.Sizeof(PoolItem{}), 5)
	var last *Garbage
	for i := int64(0); i < 100; i++ {
		last = &Garbage{i, last}
	}
	sink += last.id
	r := row("main.Garbage", unsafe.Sizeof(Garbage{}))
	r.count, r.dead = 100, true
}

//go:noinline
func crash(p *Point) int64 { return crashInlined(p) + 1 }

func crashInlined(p *Point) int64 { return p.z }

func main() {
	mode, nodes := "print", 1000
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	if len(os.Args) > 2 {
		nodes, _ = strconv.Atoi(os.Args[2])
	}
	runtime.GOMAXPROCS(2)
	debug.SetGCPercent(-1)

	buildList(nodes)
	buildSmall()
	buildSlices()
	buildBorders()
	buildHalves()
	buildHuge()
	buildStrings()
	buildMaps()
	buildHolders()
	buildKinds()
	collecting := mode == "gcabort" || mode == "gcwait"
	buildVersioned(collecting)
	launchAll(2)
	launchThreads()

	for i := 0; i < 2; i++ {
		if i == 1 && !collecting {
			fillVictims()
		}
		runtime.GC()
		settle()
	}
	if collecting {
		go goCollect()
		for n := collections(); collections() < n+4; {
			runtime.Gosched()
		}
	} else {
		buildLate() // what a collection would free
	}
	report()

	switch mode {
	case "print":
		os.Exit(0)
	case "crash":
		sink += crash(nil)
	case "panic":
		panic("bait panics")
	case "abort", "gcabort":
		syscall.Kill(os.Getpid(), syscall.SIGABRT)
	default:
		put("READY\n")
		flush()
	}
	select {} // a sleep may grow a heap of timers
}

// Lets others run for a while; allocates nothing.
func settle() {
	for started := time.Now(); time.Since(started) < 50*time.Millisecond; {
		runtime.Gosched()
	}
}

func collections() uint32 {
	runtime.ReadMemStats(&stats[0])
	return stats[0].NumGC
}
