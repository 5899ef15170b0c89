/*
 * src/golang/layout.h: where the Go runtime keeps its fields, resolved once from the executable's DWARF. What differs
 * between versions is a further name in a row of these tables, never a branch elsewhere.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "object/dwarf.h"

/*
 * F(member, types, paths, need): the field is the first of `paths` (separated by |; dots enter structs) that the first
 * of `types` has. need is REQUIRED (opening fails without it) or OPTIONAL (->size 0 where absent).
 */
#define SONDE_GO_FIELDS(F)                                                                        \
	F(g_stack_lo, "runtime.g", "stack.lo", REQUIRED)                                          \
	F(g_stack_hi, "runtime.g", "stack.hi", REQUIRED)                                          \
	F(g_panic, "runtime.g", "_panic", REQUIRED)                                               \
	F(g_defer, "runtime.g", "_defer", REQUIRED)                                               \
	F(g_m, "runtime.g", "m", REQUIRED)                                                        \
	F(g_sched_sp, "runtime.g", "sched.sp", REQUIRED)                                          \
	F(g_sched_pc, "runtime.g", "sched.pc", REQUIRED)                                          \
	F(g_sched_ctxt, "runtime.g", "sched.ctxt", OPTIONAL)                                      \
	F(g_sched_lr, "runtime.g", "sched.lr", OPTIONAL)                                          \
	F(g_syscallsp, "runtime.g", "syscallsp", REQUIRED)                                        \
	F(g_syscallpc, "runtime.g", "syscallpc", REQUIRED)                                        \
	F(g_status, "runtime.g", "atomicstatus.value|atomicstatus", REQUIRED)                     \
	F(g_goid, "runtime.g", "goid", REQUIRED)                                                  \
	F(g_waitsince, "runtime.g", "waitsince", OPTIONAL)                                        \
	F(g_waitreason, "runtime.g", "waitreason", REQUIRED)                                      \
	F(g_gopc, "runtime.g", "gopc", REQUIRED)                                                  \
	F(g_startpc, "runtime.g", "startpc", REQUIRED)                                            \
	F(g_parent_goid, "runtime.g", "parentGoid", OPTIONAL)                                     \
	F(g_lockedm, "runtime.g", "lockedm", OPTIONAL)                                            \
	F(g_labels, "runtime.g", "labels", OPTIONAL)                                              \
	F(g_async_safe_point, "runtime.g", "asyncSafePoint", OPTIONAL)                            \
	F(g_xregs_state, "runtime.g", "xRegs.state", OPTIONAL)                                    \
	F(xreg_regs, "runtime.xRegState", "regs", OPTIONAL)                                       \
	F(m_g0, "runtime.m", "g0", REQUIRED)                                                      \
	F(m_gsignal, "runtime.m", "gsignal", REQUIRED)                                            \
	F(m_curg, "runtime.m", "curg", REQUIRED)                                                  \
	F(m_procid, "runtime.m", "procid", REQUIRED)                                              \
	F(m_id, "runtime.m", "id", REQUIRED)                                                      \
	F(m_alllink, "runtime.m", "alllink", REQUIRED)                                            \
	F(m_vdso_sp, "runtime.m", "vdsoSP", OPTIONAL)                                             \
	F(m_vdso_pc, "runtime.m", "vdsoPC", OPTIONAL)                                             \
	F(span_start, "runtime.mspan", "startAddr", REQUIRED)                                     \
	F(span_npages, "runtime.mspan", "npages", REQUIRED)                                       \
	F(span_elemsize, "runtime.mspan", "elemsize", REQUIRED)                                   \
	F(span_nelems, "runtime.mspan", "nelems", REQUIRED)                                       \
	F(span_freeindex, "runtime.mspan", "freeindex", REQUIRED)                                 \
	F(span_alloc_bits, "runtime.mspan", "allocBits", REQUIRED)                                \
	F(span_class, "runtime.mspan", "spanclass", REQUIRED)                                     \
	F(span_state, "runtime.mspan", "state.s.value|state.s|state", REQUIRED)                   \
	F(span_specials, "runtime.mspan", "specials", REQUIRED)                                   \
	F(span_large_type, "runtime.mspan", "largeType", OPTIONAL)                                \
	F(span_user_arena, "runtime.mspan", "isUserArenaChunk", OPTIONAL)                         \
	F(special_next, "runtime.special", "next", REQUIRED)                                      \
	F(special_kind, "runtime.special", "kind", REQUIRED)                                      \
	F(special_offset, "runtime.special", "offset", REQUIRED)                                  \
	F(special_finalizer, "runtime.specialfinalizer", "fn", REQUIRED)                          \
	F(special_object_type, "runtime.specialfinalizer", "ot", OPTIONAL)                        \
	F(special_cleanup, "runtime.specialCleanup", "cleanup|fn", OPTIONAL)                      \
	F(special_weak_handle, "runtime.specialWeakHandle", "handle", OPTIONAL)                   \
	F(finblock_link, "runtime.finBlock|runtime.finblock", "alllink", REQUIRED)                \
	F(finblock_cnt, "runtime.finBlock|runtime.finblock", "cnt", REQUIRED)                     \
	F(finblock_fin, "runtime.finBlock|runtime.finblock", "fin", REQUIRED)                     \
	F(finalizer_fn, "runtime.finalizer", "fn", REQUIRED)                                      \
	F(finalizer_arg, "runtime.finalizer", "arg", REQUIRED)                                    \
	F(finalizer_ot, "runtime.finalizer", "ot", REQUIRED)                                      \
	F(finalizer_fint, "runtime.finalizer", "fint", REQUIRED)                                  \
	F(cleanup_block_link, "runtime.cleanupBlock", "alllink|cleanupBlockHeader.alllink",       \
		OPTIONAL)                                                                         \
	F(cleanup_block_n, "runtime.cleanupBlock", "n|cleanupBlockHeader.n", OPTIONAL)            \
	F(cleanup_block_items, "runtime.cleanupBlock", "cleanups", OPTIONAL)                      \
	F(cleanup_queue_all, "runtime.cleanupQueue", "all.value|all", OPTIONAL)                   \
	F(mheap_allspans, "runtime.mheap", "allspans", REQUIRED)                                  \
	F(mheap_chunks, "runtime.mheap", "pages.chunks", OPTIONAL)                                \
	F(mheap_page_ranges, "runtime.mheap", "pages.inUse.ranges", OPTIONAL)                     \
	F(mheap_summary, "runtime.mheap", "pages.summary", OPTIONAL)                              \
	F(mheap_arenas, "runtime.mheap", "arenas", OPTIONAL)                                      \
	F(palloc_bits, "runtime.pallocData", "pallocBits", OPTIONAL)                              \
	F(palloc_scavenged, "runtime.pallocData", "scavenged", OPTIONAL)                          \
	F(addr_range_base, "runtime.addrRange", "base.a|base", OPTIONAL)                          \
	F(addr_range_limit, "runtime.addrRange", "limit.a|limit", OPTIONAL)                       \
	F(p_cache_base, "runtime.p", "pcache.base", OPTIONAL)                                     \
	F(p_cache_free, "runtime.p", "pcache.cache", OPTIONAL)                                    \
	F(p_cache_scavenged, "runtime.p", "pcache.scav", OPTIONAL)                                \
	F(span_next, "runtime.mspan", "next", OPTIONAL)                                           \
	F(work_wbufs_free, "runtime.workType", "wbufSpans.free.first", OPTIONAL)                  \
	F(work_wbufs_busy, "runtime.workType", "wbufSpans.busy.first", OPTIONAL)                  \
	F(module_pc_header, "runtime.moduledata", "pcHeader", REQUIRED)                           \
	F(module_pclntable, "runtime.moduledata", "pclntable", REQUIRED)                          \
	F(module_text, "runtime.moduledata", "text", REQUIRED)                                    \
	F(module_etext, "runtime.moduledata", "etext", REQUIRED)                                  \
	F(module_noptrdata, "runtime.moduledata", "noptrdata", REQUIRED)                          \
	F(module_data, "runtime.moduledata", "data", REQUIRED)                                    \
	F(module_edata, "runtime.moduledata", "edata", REQUIRED)                                  \
	F(module_bss, "runtime.moduledata", "bss", REQUIRED)                                      \
	F(module_ebss, "runtime.moduledata", "ebss", REQUIRED)                                    \
	F(module_enoptrbss, "runtime.moduledata", "enoptrbss", REQUIRED)                          \
	F(module_types, "runtime.moduledata", "types", REQUIRED)                                  \
	F(module_etypes, "runtime.moduledata", "etypes", REQUIRED)                                \
	F(module_rodata, "runtime.moduledata", "rodata", REQUIRED)                                \
	F(module_gofunc, "runtime.moduledata", "gofunc", REQUIRED)                                \
	F(module_data_mask, "runtime.moduledata", "gcdatamask.bytedata", REQUIRED)                \
	F(module_bss_mask, "runtime.moduledata", "gcbssmask.bytedata", REQUIRED)                  \
	F(module_data_mask_bits, "runtime.moduledata", "gcdatamask.n", REQUIRED)                  \
	F(module_bss_mask_bits, "runtime.moduledata", "gcbssmask.n", REQUIRED)                    \
	F(module_next, "runtime.moduledata", "next", REQUIRED)                                    \
	F(defer_heap, "runtime._defer", "heap", OPTIONAL)                                         \
	F(defer_fn, "runtime._defer", "fn", REQUIRED)                                             \
	F(defer_link, "runtime._defer", "link", REQUIRED)                                         \
	F(type_size, "internal/abi.Type", "Size_", REQUIRED)                                      \
	F(type_ptr_bytes, "internal/abi.Type", "PtrBytes", REQUIRED)                              \
	F(type_tflag, "internal/abi.Type", "TFlag", REQUIRED)                                     \
	F(type_kind, "internal/abi.Type", "Kind_", REQUIRED)                                      \
	F(type_gcdata, "internal/abi.Type", "GCData", REQUIRED)                                   \
	F(type_str, "internal/abi.Type", "Str", REQUIRED)                                         \
	F(itab_type, "internal/abi.ITab|runtime.itab", "Type|_type", REQUIRED)                    \
	F(swiss_dir_ptr, "internal/runtime/maps.Map", "dirPtr", OPTIONAL)                         \
	F(swiss_dir_len, "internal/runtime/maps.Map", "dirLen", OPTIONAL)                         \
	F(swiss_used, "internal/runtime/maps.Map", "used", OPTIONAL)                              \
	F(swiss_table_groups, "internal/runtime/maps.table", "groups.data", OPTIONAL)             \
	F(swiss_table_mask, "internal/runtime/maps.table", "groups.lengthMask", OPTIONAL)         \
	F(hmap_count, "runtime.hmap", "count", OPTIONAL)                                          \
	F(hmap_flags, "runtime.hmap", "flags", OPTIONAL)                                          \
	F(hmap_b, "runtime.hmap", "B", OPTIONAL)                                                  \
	F(hmap_buckets, "runtime.hmap", "buckets", OPTIONAL)                                      \
	F(hmap_oldbuckets, "runtime.hmap", "oldbuckets", OPTIONAL)                                \
	F(hmap_extra, "runtime.hmap", "extra", OPTIONAL)                                          \
	F(hchan_recvq, "runtime.hchan", "recvq.first", REQUIRED)                                  \
	F(hchan_sendq, "runtime.hchan", "sendq.first", REQUIRED)                                  \
	F(sudog_c, "runtime.sudog", "c.vu|c", REQUIRED)                                           \
	F(sudog_waitlink, "runtime.sudog", "waitlink", REQUIRED)                                  \
	F(g_waiting_on, "runtime.g", "waiting", REQUIRED)                                         \
	F(sudog_next, "runtime.sudog", "next", REQUIRED)                                          \
	F(sudog_elem, "runtime.sudog", "elem.vu|elem", REQUIRED)                                  \
	F(hchan_qcount, "runtime.hchan", "qcount", OPTIONAL)                                      \
	F(hchan_recvx, "runtime.hchan", "recvx", OPTIONAL)                                        \
	F(hchan_closed, "runtime.hchan", "closed", OPTIONAL)                                      \
	F(sudog_g, "runtime.sudog", "g", OPTIONAL)                                                \
	F(hchan_buf, "runtime.hchan", "buf", REQUIRED)                                            \
	F(hchan_dataqsiz, "runtime.hchan", "dataqsiz", REQUIRED)                                  \
	F(hchan_elemtype, "runtime.hchan", "elemtype", REQUIRED)                                  \
	F(stkobj_off, "runtime.stackObjectRecord", "off", REQUIRED)                               \
	F(stkobj_size, "runtime.stackObjectRecord", "size", REQUIRED)                             \
	F(stkobj_ptr_bytes, "runtime.stackObjectRecord", "ptrBytes|_ptrdata|ptrdata", REQUIRED)   \
	F(stkobj_gcdata, "runtime.stackObjectRecord", "gcdataoff", REQUIRED)                      \
	F(label_set_list, "runtime/pprof.LabelSet|internal/runtime/pprof/label.Set", "list|List", \
		OPTIONAL)

/* T(member, types, need): the size of a struct. */
#define SONDE_GO_SIZES(T)                                       \
	T(sizeof_g, "runtime.g", REQUIRED)                      \
	T(sizeof_mspan, "runtime.mspan", REQUIRED)              \
	T(sizeof_moduledata, "runtime.moduledata", REQUIRED)    \
	T(sizeof_finalizer, "runtime.finalizer", REQUIRED)      \
	T(sizeof_cleanup_fn, "runtime.cleanupFn", OPTIONAL)     \
	T(sizeof_stkobj, "runtime.stackObjectRecord", REQUIRED) \
	T(sizeof_type, "internal/abi.Type", REQUIRED)           \
	T(sizeof_palloc, "runtime.pallocData", OPTIONAL)        \
	T(sizeof_addr_range, "runtime.addrRange", OPTIONAL)     \
	T(sizeof_heap_arena, "runtime.heapArena", OPTIONAL)     \
	T(sizeof_gc_bits, "runtime.gcBitsArena", OPTIONAL)      \
	T(sizeof_hmap, "runtime.hmap", OPTIONAL)                \
	T(sizeof_swiss_map, "internal/runtime/maps.Map", OPTIONAL)

/* C(member, names, fallback): a constant; the fallback stands for versions that do not have it. */
#define SONDE_GO_CONSTANTS(C)                                                                     \
	C(page_bytes, "runtime._PageSize|internal/runtime/gc.PageSize", 8192)                     \
	C(heap_arena_bytes, "runtime.heapArenaBytes", 64 << 20)                                   \
	C(header_min_bytes,                                                                       \
		"runtime.minSizeForMallocHeader|internal/runtime/gc.MinSizeForMallocHeader", 512) \
	C(header_bytes, "runtime.mallocHeaderSize|internal/runtime/gc.MallocHeaderSize", 8)       \
	C(state_in_use, "runtime.mSpanInUse", 1)                                                  \
	C(state_manual, "runtime.mSpanManual", 2)                                                 \
	C(g_scan, "runtime._Gscan", 0x1000)                                                       \
	C(g_idle, "runtime._Gidle", 0)                                                            \
	C(g_runnable, "runtime._Grunnable", 1)                                                    \
	C(g_running, "runtime._Grunning", 2)                                                      \
	C(g_syscall, "runtime._Gsyscall", 3)                                                      \
	C(g_waiting, "runtime._Gwaiting", 4)                                                      \
	C(g_dead, "runtime._Gdead", 6)                                                            \
	C(g_copystack, "runtime._Gcopystack", 8)                                                  \
	C(g_preempted, "runtime._Gpreempted", 9)                                                  \
	C(g_leaked, "runtime._Gleaked", -1)                                                       \
	C(g_deadextra, "runtime._Gdeadextra", -1)                                                 \
	C(special_kind_finalizer, "runtime._KindSpecialFinalizer", 1)                             \
	C(special_kind_weak_handle, "runtime._KindSpecialWeakHandle", -1)                         \
	C(special_kind_cleanup, "runtime._KindSpecialCleanup", -1)                                \
	C(kind_gc_prog, "internal/abi.KindGCProg", 0)                                             \
	C(kind_direct_iface, "internal/abi.KindDirectIface", 0)                                   \
	C(tflag_direct_iface, "internal/abi.TFlagDirectIface", 0)                                 \
	C(tflag_gc_mask_on_demand, "internal/abi.TFlagGCMaskOnDemand", 0)                         \
	C(tflag_extra_star, "internal/abi.TFlagExtraStar", 2)                                     \
	C(tflag_uncommon, "internal/abi.TFlagUncommon", 1)                                        \
	C(func_id_wrapper, "internal/abi.FuncIDWrapper", -1)

struct sonde_go_field {
	uint32_t offset, size; /* bytes; size 0 = this version has no such field */
};

struct sonde_go_layout {
#define F(member, types, paths, need) struct sonde_go_field member;
#define T(member, types, need) uint32_t member;
#define C(member, names, fallback) int64_t member;
	SONDE_GO_FIELDS(F)
	SONDE_GO_SIZES(T)
	SONDE_GO_CONSTANTS(C)
#undef F
#undef T
#undef C
};

/* Resolve all rows. SONDE_UNSUPPORTED names the first required field that the binary's DWARF does not have. */
struct sonde_error *sonde_go_layout_resolve(
	struct sonde_dwarf *dwarf, struct sonde_go_layout *ret) SONDE_CHECK;
