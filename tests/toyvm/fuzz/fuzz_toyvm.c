/* SPDX-License-Identifier: MIT
 *
 * Fuzz target over programs, schedules and sampling points: the first eight bytes
 * make the program, the next eight what happens at its polls, the rest how it is
 * run. With clang and -fsanitize=fuzzer it explores; without, main runs files, so
 * that the corpus is an ordinary test.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../vm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t bytes[26] = {0};
	uint64_t program, events;
	memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
	memcpy(&program, bytes, 8);
	memcpy(&events, bytes + 8, 8);
	bool hostile = bytes[22] % 8 == 0;
	struct schedule s = {
		.ticks = bytes[16] % 32,
		.inline_levels = bytes[17] % 5,
		.compile_after = bytes[18] % 16,
		.mode = bytes[19] % 3,
		.distance = bytes[20] % 10,
		.fuel = hostile ? 20
				: 100, /* this takes some tenths of a second under the sanitizers */
		.threads = 1 + bytes[21] % 3,
		.hostile = hostile,
		.silent_exits = bytes[23] % 8 == 0,
		.linked = bytes[24] % 3 * 4,
		.page = bytes[25] % 2 == 1};
	char *text = program_generate(program);
	struct parse_error error;
	struct program *p = program_parse(text, strlen(text), &error);
	if (!p)
		abort();
	vm_run(p, &s, events, 30, false);
	program_free(p);
	free(text);
	if (counters.mismatches || counters.lost)
		abort();
	return 0;
}

#ifndef TOYVM_FUZZER
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		uint8_t data[64];
		FILE *file = fopen(argv[i], "rb");
		if (!file)
			return 2;
		LLVMFuzzerTestOneInput(data, fread(data, 1, sizeof(data), file));
		fclose(file);
	}
	printf("%d inputs, %llu samples\n", argc - 1, (unsigned long long)counters.samples);
	return counters.samples == 0;
}
#endif
