/* src/core/export_memory.h: how reports write what mappings have. */
#pragma once
#include <stdint.h>

/* "rw-" */
void sonde_core_permission_text(uint32_t perm, char to[4]);
