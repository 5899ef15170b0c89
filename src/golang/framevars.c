#include "golang/framevars.h"

static const uint8_t call_frame_cfa = 0x9c; /* DW_OP_call_frame_cfa: Go's frame base, always */

static bool view_reg(void *ctx, unsigned reg, uint64_t *value)
{
	const struct sonde_go_frame_view *v = ctx;
	const struct sonde_machine *machine =
		sonde_machine_find(sonde_target_info(v->go->target)->machine);
	if (reg == machine->sp) {
		*value = v->frame->sp;
		return true;
	}
	if (!v->regs || !sonde_regs_has(v->regs, reg))
		return false;
	*value = v->regs->dwarf[reg];
	return true;
}

static bool view_memory(void *ctx, uint64_t addr, void *to, size_t len)
{
	const struct sonde_go_frame_view *v = ctx;
	return sonde_target_read(v->go->target, addr, to, len);
}

void sonde_go_frame_view_init(struct sonde_go_frame_view *v, const struct sonde_go *go,
	const struct sonde_goroutine *g, const struct sonde_go_frame *frame)
{
	*v = (struct sonde_go_frame_view){
		.go = go,
		.frame = frame,
		.context =
			{
				.reg = view_reg,
				.memory = view_memory,
				.ctx = v,
				.has_cfa = true,
				.cfa = frame->fp,
				.bias = go->bias,
				.frame_base = &call_frame_cfa,
				.frame_base_len = 1,
			},
	};
	if ((frame->flags & SONDE_GO_FRAME_SIGNALLED) && g->regs.known)
		v->regs = &g->regs;
}

struct sonde_error *sonde_go_frame_variables(const struct sonde_go *go,
	const struct sonde_go_frame *frame, struct sonde_dwarf_variables *to)
{
	return sonde_dwarf_variables_at(go->dwarf, sonde_go_frame_lookup_pc(frame) - go->bias, to);
}

const char *sonde_go_frame_locate(struct sonde_go_frame_view *v,
	const struct sonde_dwarf_variable *variable,
	struct sonde_location_piece pieces[SONDE_GO_MAX_PIECES], size_t *n)
{
	*n = 0;
	if (!variable->expr)
		return NULL;
	v->context.unit = variable->unit;
	return sonde_location_evaluate(
		variable->expr, variable->expr_len, &v->context, pieces, SONDE_GO_MAX_PIECES, n);
}
