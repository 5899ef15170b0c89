/* Replays a fuzz target's seeds: every file of the folders given, once each; TAP on stdout. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		return -1;
	size_t len = 0, cap = 1 << 16;
	uint8_t *data = malloc(cap);
	for (size_t got; data && (got = fread(data + len, 1, cap - len, f)) > 0;) {
		len += got;
		if (len == cap)
			data = realloc(data, cap *= 2);
	}
	fclose(f);
	if (!data)
		return -1;
	/* An exact copy, so that ASan sees a read past the end. */
	uint8_t *exact = malloc(len ? len : 1);
	memcpy(exact, data, len);
	free(data);
	LLVMFuzzerTestOneInput(exact, len);
	free(exact);
	return 0;
}

int main(int argc, char **argv)
{
	int n = 0;
	for (int i = 1; i < argc; i++) {
		struct dirent **names = NULL;
		int found = scandir(argv[i], &names, NULL, alphasort);
		for (int k = 0; k < found; k++) {
			char path[4096];
			snprintf(path, sizeof(path), "%s/%s", argv[i], names[k]->d_name);
			if (names[k]->d_name[0] != '.')
				printf("%s %d - %s\n", replay(path) ? "not ok" : "ok", ++n,
					names[k]->d_name);
			fflush(stdout);
			free(names[k]);
		}
		free(names);
	}
	if (!n)
		printf("not ok %d - no seeds\n", ++n);
	printf("1..%d\n", n);
	return 0;
}
