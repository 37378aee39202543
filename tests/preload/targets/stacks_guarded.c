/* SPDX-License-Identifier: MIT
 *
 * incstack heap traces: 40000
 *
 * Checks that a page that cannot be read lies before each part of the recorder's shared memory. So
 * a walk past the base of a stack below it cannot take the recorder's data for frames.
 */
#include <stdio.h>
#include <string.h>

#include "nest.h"

static int is_shared_memory(const char *line)
{
	return strstr(line, " rw-s ") != NULL && strstr(line, ".live") != NULL;
}

/* Counts the parts, and those without such a page. Sets *recorded if the recorder is there. */
static int count(FILE *maps, int *unguarded, int *recorded)
{
	char line[4096];
	unsigned long end_before = 0;
	int readable_before = 0;
	int parts = 0;

	while (fgets(line, sizeof(line), maps) != NULL) {
		unsigned long low;
		unsigned long high;

		if (sscanf(line, "%lx-%lx", &low, &high) != 2)
			continue;
		*recorded |= strstr(line, "libincstack_recorder") != NULL;
		if (is_shared_memory(line)) {
			parts++;
			*unguarded += end_before != low || readable_before;
		}
		end_before = high;
		readable_before = strstr(line, " ---p ") == NULL;
	}
	return parts;
}

int main(void)
{
	int unguarded = 0;
	int recorded = 0;
	FILE *maps;
	int parts;

	for (int i = 0; i < 40000; i++)
		nest(i % 30, allocate);
	maps = fopen("/proc/self/maps", "r");
	if (maps == NULL)
		return 1;
	parts = count(maps, &unguarded, &recorded);
	fclose(maps);
	if ((recorded && parts == 0) || unguarded != 0)
		fprintf(stderr, "%d of %d parts have no guard\n", unguarded, parts);
	return (recorded && parts == 0) || unguarded != 0;
}
