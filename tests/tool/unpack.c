/* SPDX-License-Identifier: MIT
 *
 * unpack FILE: replaces a packed trace file by what it was before, for tests that read or damage its bytes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tracefile/packed.h"

static unsigned char *read_whole(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	unsigned char *data = NULL;

	if (file == NULL || fseek(file, 0, SEEK_END) != 0)
		return NULL;
	*size = (size_t)ftell(file);
	rewind(file);
	data = malloc(*size);
	if (data != NULL && fread(data, 1, *size, file) != *size)
		return NULL;
	fclose(file);
	return data;
}

int main(int argc, char **argv)
{
	struct incstack__tracefile_unpacked unpacked;
	size_t size = 0;
	unsigned char *data = argc == 2 ? read_whole(argv[1], &size) : NULL;
	FILE *out;

	if (data == NULL || incstack__tracefile_unpack(data, size, &unpacked) != 0 ||
	    unpacked.what != NULL)
		return 1;
	out = fopen(argv[1], "wb");
	if (out == NULL || fwrite(unpacked.data, 1, unpacked.size, out) != unpacked.size ||
	    fclose(out) != 0)
		return 1;
	free(unpacked.owned);
	free(data);
	return 0;
}
