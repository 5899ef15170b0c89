/*
 * unwind/lookup.h as BPF programs use it: blocks are the values of a map, once with a plain loop and once by steps. Only
 * compiled (unwind_lookup_bpf.sh), with no header but the library's.
 */
#include "unwind/lookup.h"

#define SEC(name) __attribute__((section(name), used))

struct {
	int (*type)[2]; /* BPF_MAP_TYPE_ARRAY */
	uint32_t *key;
	uint8_t (*value)[SONDE_UNWIND_BLOCK_BYTES];
	int (*max_entries)[4096];
} table_blocks SEC(".maps");

/* Numbers of the kernel's helpers: include/uapi/linux/bpf.h. */
static void *(*map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*loop)(uint32_t n, void *callback, void *ctx, uint64_t flags) = (void *)181;

static inline __attribute__((always_inline)) const uint8_t *block(void *ctx, uint32_t number)
{
	return map_lookup_elem(&table_blocks, &number);
}

SEC("perf_event")
int plain_loop(uint64_t *regs)
{
	struct sonde_unwind_rule r;
	if (!sonde_unwind_lookup(block, 0, regs[16], &r))
		return 0;
	return r.cfa_offset + (int)sonde_unwind_cfa_reg(&r);
}

static long step(uint32_t i, struct sonde_unwind_search *s)
{
	return !sonde_unwind_search_step(s, block, 0);
}

SEC("perf_event")
int by_steps(uint64_t *regs)
{
	struct sonde_unwind_search s;
	struct sonde_unwind_rule r;
	uint32_t number;
	if (!sonde_unwind_search_start(&s, block, 0, regs[16]))
		return 0;
	loop(SONDE_UNWIND_MAX_STEPS, step, &s, 0);
	if (!sonde_unwind_search_number(&s, block, 0, &number) || !number ||
		!sonde_unwind_search_rule(&s, block, 0, number, &r))
		return 0;
	return r.cfa_offset + sonde_unwind_cfa_add(&r);
}

char _license[] SEC("license") = "Dual BSD/GPL";
