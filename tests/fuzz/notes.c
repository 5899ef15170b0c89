/* Notes, and what is decoded from them: NT_FILE, PRSTATUS, build-ids. The first byte chooses machine and alignment. */
#include <elf.h>
#include <stdint.h>
#include "object/buildid.h"
#include "object/note.h"
#include "object/vmas.h"
#include "target/regs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t machines[] = {EM_X86_64, EM_386, EM_AARCH64, EM_S390};
	if (!size)
		return 0;
	uint16_t machine = machines[data[0] & 3];
	uint64_t align = data[0] & 4 ? 8 : 4;
	bool big_endian = data[0] & 8;
	data++;
	size--;
	struct sonde_note_iter it = sonde_note_iter_over(data, size, align, big_endian);
	struct sonde_note note;
	while (sonde_note_next(&it, &note)) {
		struct sonde_prstatus p;
		sonde_regs_of_prstatus(machine, note.desc, note.desc_len, &p);
		sonde_cleanup(sonde_vmas) struct sonde_vmas *vmas = NULL;
		sonde_error_free(sonde_vmas_decode(
			note.desc, note.desc_len, machine == EM_386 ? 4 : 8, big_endian, &vmas));
		for (size_t i = 1; vmas && i < vmas->n; i++)
			if (vmas->items[i - 1].end > vmas->items[i].start)
				__builtin_trap();
		if (vmas && vmas->n && !sonde_vmas_find(vmas, vmas->items[vmas->n - 1].end - 1))
			__builtin_trap();
	}
	struct sonde_buildid id;
	char text[SONDE_GOBUILDID_BYTES], hex[SONDE_BUILDID_HEX_BYTES];
	if (sonde_buildid_of_notes(data, size, align, big_endian, &id) &&
		!sonde_buildid_parse(sonde_buildid_hex(&id, hex), &id))
		__builtin_trap();
	sonde_gobuildid_of_notes(data, size, align, big_endian, text);
	return 0;
}
