// Big fills the heap for benchmarks, tells what a collection of it costs the runtime itself, and waits or dies.
//
//	big MODE MILLIONS
//
// MODE: print, wait (print READY, sleep), abort (SIGABRT to itself). MILLIONS of objects: 17 are about 800 MB.
// The collector's parallelism is GOMAXPROCS of the environment.
//
// It prints key=value lines: objects and bytes built by type (type name= count= size=), mem (as bait does), and gc
// wall_ns=, mark_cpu_ns=, pause_ns= of one forced collection of everything.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

type Node struct {
	next  *Node
	item  *Item
	id    int64
	value float64
}

type Item struct{ a, b int64 }

type Tree struct {
	left, right *Tree
	key         int64
}

type Record struct {
	name string
	tags []string
	next *Record
	body []byte
}

type Table struct{ rows []*Row }
type Row struct {
	cells [4]*Cell
	id    int64
}
type Cell struct{ text string }
type Medium struct { // 808 bytes: a malloc header in front
	next *Medium
	item [50]*Item
	pad  [50]int64
}

var (
	list    *Node
	trees   []*Tree
	records map[string]*Record
	last    *Record
	tables  []*Table
	medium  *Medium
	byName  map[string][]byte
	byID    map[int64]*Item
	before  [2]metrics.Sample
	after   [2]metrics.Sample
	stats   runtime.MemStats
)

func buildTree(depth int64) *Tree {
	if depth == 0 {
		return nil
	}
	return &Tree{buildTree(depth - 1), buildTree(depth - 1), depth}
}

// Builds about a million objects; returns how many of each.
func build(million int) (nodes, items, treeNodes, recs, rows, cells, entries int) {
	for i := 0; i < 190000; i++ { // 380,000: nodes and items
		list = &Node{list, &Item{int64(i), 0}, int64(i), 0}
	}
	nodes, items = 190000, 190000
	for i := 0; i < 2; i++ { // 262,142
		trees = append(trees, buildTree(17))
	}
	treeNodes = 2 * (1<<17 - 1)
	for i := 0; i < 20000; i++ { // 120,000: record, name, tags, two strings, body
		name := "record-" + strconv.Itoa(million) + "-" + strconv.Itoa(i)
		last = &Record{name: name, tags: []string{"tag-" + strconv.Itoa(i%1000), "kind-of-a-tag-" + strconv.Itoa(i)}, next: last,
			body: make([]byte, 480)}
		records[name] = last
	}
	recs = 20000
	for i := 0; i < 100; i++ { // about 200,000: a table, its rows, their cells and texts
		t := &Table{make([]*Row, 250)}
		for r := range t.rows {
			row := &Row{id: int64(r)}
			for c := 0; c < 4; c++ {
				row.cells[c] = &Cell{"cell"}
			}
			row.cells[r%4].text = "text-" + strconv.Itoa(r) + "-of-table-" + strconv.Itoa(i)
			t.rows[r] = row
		}
		tables = append(tables, t)
	}
	rows, cells = 25000, 100000
	for i := 0; i < 5000; i++ { // 5,000
		medium = &Medium{next: medium}
		medium.item[i%50] = list.item
	}
	for i := 0; i < 30000; i++ { // 90,000
		byName[strconv.Itoa(million)+"/"+strconv.Itoa(i)] = make([]byte, 200)
		byID[int64(million)<<32|int64(i)] = &Item{int64(i), 1}
	}
	items += 30000
	entries = 30000
	return
}

func sample(s *[2]metrics.Sample) {
	s[0].Name = "/cpu/classes/gc/mark/dedicated:cpu-seconds"
	s[1].Name = "/cpu/classes/gc/mark/idle:cpu-seconds"
	metrics.Read(s[:])
}

func main() {
	mode, millions := "print", 1
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	if len(os.Args) > 2 {
		millions, _ = strconv.Atoi(os.Args[2])
	}
	debug.SetGCPercent(-1)
	records, byName, byID = map[string]*Record{}, map[string][]byte{}, map[int64]*Item{}
	var total [7]int
	for i := 0; i < millions; i++ {
		n, it, t, r, ro, c, e := build(i)
		for k, v := range []int{n, it, t, r, ro, c, e} {
			total[k] += v
		}
	}
	runtime.GC()
	var gc0, gc1 debug.GCStats
	debug.ReadGCStats(&gc0)
	sample(&before)
	started := time.Now()
	runtime.GC()
	wall := time.Since(started)
	sample(&after)
	debug.ReadGCStats(&gc1)

	fmt.Printf("go version=%s pid=%d gomaxprocs=%d\n", runtime.Version(), os.Getpid(), runtime.GOMAXPROCS(0))
	for k, row := range []struct {
		name string
		size uintptr
	}{{"main.Node", unsafe.Sizeof(Node{})}, {"main.Item", unsafe.Sizeof(Item{})}, {"main.Tree", unsafe.Sizeof(Tree{})},
		{"main.Record", unsafe.Sizeof(Record{})}, {"main.Row", unsafe.Sizeof(Row{})}, {"main.Cell", unsafe.Sizeof(Cell{})}} {
		fmt.Printf("type name=%s count=%d size=%d\n", row.name, total[k], row.size)
	}
	fmt.Printf("type name=main.Medium count=%d size=%d\n", 5000*millions, unsafe.Sizeof(Medium{}))
	fmt.Printf("type name=main.Table count=%d size=%d\n", len(tables), unsafe.Sizeof(Table{}))
	fmt.Printf("map name=main.records type=map[string]*main.Record len=%d\n", len(records))
	fmt.Printf("map name=main.byName type=map[string][]uint8 len=%d\n", len(byName))
	fmt.Printf("map name=main.byID type=map[int64]*main.Item len=%d\n", len(byID))
	mark := 0.0
	for i := range before {
		mark += after[i].Value.Float64() - before[i].Value.Float64()
	}
	fmt.Printf("gc wall_ns=%d mark_cpu_ns=%d pause_ns=%d\n", wall.Nanoseconds(), int64(mark*1e9),
		int64(gc1.PauseTotal-gc0.PauseTotal))
	runtime.ReadMemStats(&stats)
	fmt.Printf("mem name=HeapAlloc value=%d\nmem name=HeapObjects value=%d\n", stats.HeapAlloc, stats.HeapObjects)
	fmt.Println("end")

	switch mode {
	case "abort":
		syscall.Kill(os.Getpid(), syscall.SIGABRT)
	case "wait":
		fmt.Println("READY")
	default:
		return
	}
	for {
		time.Sleep(time.Hour)
	}
}
