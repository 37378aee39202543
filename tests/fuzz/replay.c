/* SPDX-License-Identifier: MIT
 *
 * The main function of a fuzzer without libFuzzer: runs the files that are its arguments.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
	enum { INPUT_MAX = 1 << 20 };
	uint8_t *data = malloc(INPUT_MAX);
	FILE *stream = fopen(path, "rb");
	uint8_t *exact;
	size_t size;

	if (data == NULL || stream == NULL) {
		perror(path);
		free(data);
		return 1;
	}
	size = fread(data, 1, INPUT_MAX, stream);
	fclose(stream);
	/* Of the exact size, so that the sanitizer sees any read behind it. */
	exact = realloc(data, size > 0 ? size : 1);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
	return 0;
}

int main(int argc, char **argv)
{
	int failed = argc < 2;

	for (int i = 1; i < argc; i++)
		failed |= run_file(argv[i]);
	printf("%d inputs\n", argc - 1);
	return failed;
}
