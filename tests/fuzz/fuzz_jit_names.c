/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the reader of the files in which runtimes name the code that they make. The first byte of the
 * input tells whether the rest is a map or a jitdump. Then names are looked up at the addresses that the
 * input has.
 */
#include <stdlib.h>
#include <string.h>

#include "tool/report/jit_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(struct tool_jit_names *names, const uint8_t *data, size_t size)
{
	uint64_t address;
	const char *name;

	for (size_t i = 0; i + sizeof(address) <= size && i < 256; i++) {
		memcpy(&address, data + i, sizeof(address));
		name = tool_jit_names_find(names, address);
		if (name != NULL && name[0] == '\0')
			abort();
	}
	for (address = 0; address < 64; address++)
		tool_jit_names_find(names, 0x1000 + address);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tool_jit_names *names;
	uint8_t *copy;
	FILE *file;

	if (size < 2)
		return 0;
	copy = malloc(size - 1);
	if (copy == NULL)
		return 0;
	memcpy(copy, data + 1, size - 1);
	file = fmemopen(copy, size - 1, "r");
	if (file != NULL) {
		names = data[0] & 1 ? tool_jit_names_of(NULL, file) : tool_jit_names_of(file, NULL);
		look(names, data + 1, size - 1);
		tool_jit_names_free(names);
		fclose(file);
	}
	free(copy);
	return 0;
}
