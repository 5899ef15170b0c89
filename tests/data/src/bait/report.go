// What bait prints; nothing here allocates.
package main

import (
	"os"
	"runtime"
	"unsafe"
)

func report() {
	put("go version=")
	put(runtime.Version())
	putKey("pid", uint64(os.Getpid()))
	put("\n")
	for i := range types[:ntypes] {
		putType(&types[i])
	}
	putSlice("mediums", "[]*main.Medium", len(mediums), cap(mediums), 8)
	putSlice("larges", "[]*main.Large", len(larges), cap(larges), 8)
	putSlice("points", "[]*main.Point", len(points), cap(points), 8)
	putSlice("grid", "[]main.Point", len(grid), cap(grid), unsafe.Sizeof(grid[0]))
	putSlice("l60", "[]*main.Leaf60", len(l60), cap(l60), 8)
	putSlice("l100", "[]*main.Leaf100", len(l100), cap(l100), 8)
	putSlice("l3000", "[]*main.Leaf3000", len(l3000), cap(l3000), 8)
	putSlice("l4000", "[]*main.Leaf4000", len(l4000), cap(l4000), 8)
	putSlice("l4095", "[]*main.Leaf4095", len(l4095), cap(l4095), 8)
	putSlice("l4096", "[]*main.Leaf4096", len(l4096), cap(l4096), 8)
	putSlice("l9000", "[]*main.Leaf9000", len(l9000), cap(l9000), 8)
	putSlice("l20000", "[]*main.Leaf20000", len(l20000), cap(l20000), 8)
	putSlice("rows5", "[]main.Row40", len(rows5), cap(rows5), unsafe.Sizeof(Row40{}))
	putSlice("rows12", "[]main.Row40", len(rows12), cap(rows12), unsafe.Sizeof(Row40{}))
	putSlice("rows100", "[]main.Row40", len(rows100), cap(rows100), unsafe.Sizeof(Row40{}))
	putSlice("rows800", "[]main.Row40", len(rows800), cap(rows800), unsafe.Sizeof(Row40{}))
	putSlice("rows5000", "[]main.Row40", len(rows5000), cap(rows5000), unsafe.Sizeof(Row40{}))
	putSlice("names", "[]string", len(names), cap(names), unsafe.Sizeof(names[0]))
	putSlice("blob", "[]uint8", len(blob), cap(blob), 1)
	putSized("map", "mapBytes", "map[string][]uint8", len(mapBytes), -1)
	putSized("map", "mapPtr", "map[int]*main.MapValue", len(mapPtr), -1)
	putSized("map", "mapSmall", "map[string]*main.MapValue", len(mapSmall), -1)
	putSized("map", "mapWide", "map[[2]int32]main.MapWide", len(mapWide), -1)
	putSized("map", "mapDeleted", "map[uint64]*main.MapValue", len(mapDeleted), -1)
	putSized("map", "mapSet", "map[string]struct {}", len(mapSet), -1)
	putSized("map", "mapNil", "map[string]int", len(mapNil), -1)
	putSized("chan", "chanItems", "chan *main.ChanItem", len(chanItems), cap(chanItems))
	putSized("chan", "chanInts", "chan int", len(chanInts), cap(chanInts))
	putSized("chan", "chanSync", "chan struct {}", 0, 0)
	putSized("chan", "chanWait", "chan *main.ChanWait", 0, 0)
	putPair("string", "names", "count", len(names), "bytes", nameBytes)
	putPair("string", "longNames", "count", len(longNames), "bytes", longNameBytes)
	blocks, last := 0, uintptr(0)
	for _, t := range tinies {
		if block := uintptr(unsafe.Pointer(t)) / 16; block != last {
			blocks, last = blocks+1, block
		}
	}
	putPair("tiny", "tinies", "objects", len(tinies), "blocks", blocks)
	// Each of these sizes is a size class; a large object takes whole pages.
	putPair("retained", "tree", "objects", 1023, "bytes", 1023*int(unsafe.Sizeof(*tree)))
	putPair("retained", "diamond", "objects", 6, "bytes",
		int(unsafe.Sizeof(*diamond)+2*unsafe.Sizeof(DiamondSide{})+unsafe.Sizeof(DiamondShared{})+2*unsafe.Sizeof(DiamondOwn{})))
	putPair("retained", "huge", "objects", 1+len(huge.p), "bytes",
		int(unsafe.Sizeof(*huge)+8191)&^8191+len(huge.p)*int(unsafe.Sizeof(LeafHuge{})))
	for i := range gorows[:ngorows] {
		put("func name=")
		put(gorows[i].name)
		putKey("count", uint64(gorows[i].count))
		put("\n")
	}
	putAddr("main.list", unsafe.Pointer(list))
	putAddr("main.mediums[0]", unsafe.Pointer(mediums[0]))
	putAddr("main.larges[0]", unsafe.Pointer(larges[0]))
	putAddr("main.l3000", unsafe.Pointer(&l3000[0]))
	putAddr("main.l3000[2999]", unsafe.Pointer(l3000[2999]))
	putAddr("main.at32760[0]", unsafe.Pointer(at32760[0]))
	putAddr("main.at32768[0]", unsafe.Pointer(at32768[0]))
	putAddr("main.tree", unsafe.Pointer(tree))
	putAddr("main.huge", unsafe.Pointer(huge))
	putAddr("main.cells", unsafe.Pointer(cells))
	putAddr("main.interior", unsafe.Pointer(interior))
	flush()

	put("stacks_begin\n")
	flush()
	writeAll(stacks[:runtime.Stack(stacks[:], true)])
	put("stacks_end\n")

	runtime.ReadMemStats(&stats[0])
	runtime.ReadMemStats(&stats[1])
	m, first := &stats[1], &stats[0]
	stable := uint64(0)
	if m.HeapAlloc == first.HeapAlloc && m.Mallocs == first.Mallocs && m.Frees == first.Frees {
		stable = 1
	}
	putMem("stable", stable)
	putMem("HeapAlloc", m.HeapAlloc)
	putMem("HeapObjects", m.HeapObjects)
	putMem("HeapInuse", m.HeapInuse)
	putMem("HeapIdle", m.HeapIdle)
	putMem("HeapReleased", m.HeapReleased)
	putMem("HeapSys", m.HeapSys)
	putMem("StackInuse", m.StackInuse)
	putMem("StackSys", m.StackSys)
	putMem("Sys", m.Sys)
	putMem("Mallocs", m.Mallocs)
	putMem("Frees", m.Frees)
	putMem("NumGC", uint64(m.NumGC))
	putMem("NumGoroutine", uint64(runtime.NumGoroutine()))
	putMem("GOMAXPROCS", uint64(runtime.GOMAXPROCS(0)))
	for i := range m.BySize {
		if size := &m.BySize[i]; size.Mallocs != size.Frees {
			put("class")
			putKey("size", uint64(size.Size))
			putKey("objects", size.Mallocs-size.Frees)
			put("\n")
		}
	}
	put("end\n")
	flush()
}
