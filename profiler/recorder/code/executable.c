/* SPDX-License-Identifier: MIT
 *
 * Finds out whether memory is executable. Only the kernel's list of all mappings tells. A search takes up to a
 * millisecond in a process with many mappings, so each thread remembers the ranges that it has met, for a second.
 */
#include <stddef.h>
#include <time.h>

#include "executable.h"
#include "recorder/system/kernel.h"
#include "recorder/system/system.h"

enum { SEARCHES_MOST = 64 }; /* of a thread, in a second */
enum {
	RANGES = sizeof(((struct incstack__executable *)0)->ranges) /
		 sizeof(struct incstack__executable_range)
};

/* The list, line by line, of which only the beginning is kept: LOW-HIGH rwxp. */
struct list {
	int fd;
	size_t at, end;
	char text[1024];
};

static int next_byte(struct list *list)
{
	if (list->at == list->end) {
		const long got =
			incstack__system_call(SYS_read, list->fd, list->text, sizeof(list->text));

		list->at = 0;
		list->end = got > 0 ? (size_t)got : 0;
	}
	return list->at < list->end ? (unsigned char)list->text[list->at++] : -1;
}

/* Reads a hexadecimal number, and the byte behind it. */
static uintptr_t next_number(struct list *list)
{
	uintptr_t number = 0;

	for (;;) {
		const int c = next_byte(list);

		if (c >= '0' && c <= '9')
			number = number << 4 | (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			number = number << 4 | (uintptr_t)(c - 'a' + 10);
		else
			return number;
	}
}

/* Reads a line. Returns false at the end. */
static bool next_line(struct list *list, struct incstack__executable_range *range, bool *executable)
{
	int c;

	range->low = next_number(list);
	range->high = next_number(list);
	next_byte(list);
	next_byte(list);
	*executable = next_byte(list) == 'x';
	do
		c = next_byte(list);
	while (c >= 0 && c != '\n');
	return range->high > range->low;
}

/* Finds the neighbouring executable mappings around the address. Returns false if it is in none. */
static bool search(struct list *list, uintptr_t address, struct incstack__executable_range *found)
{
	struct incstack__executable_range range;
	bool executable;

	*found = (struct incstack__executable_range){0, 0};
	while (next_line(list, &range, &executable) && (range.low <= address || found->high)) {
		if (executable && found->high && range.low == found->high)
			found->high = range.high;
		else if (found->high > address)
			break;
		else
			*found = executable ? range : (struct incstack__executable_range){0, 0};
	}
	return address - found->low < found->high - found->low;
}

static bool search_kernel(uintptr_t address, struct incstack__executable_range *found)
{
	struct list list = {.at = 0, .end = 0};
	bool is_there;

	list.fd = (int)incstack__system_call(SYS_openat, (long)AT_FDCWD, "/proc/self/maps",
					     (long)(O_RDONLY | O_CLOEXEC), 0L);
	if (list.fd < 0)
		return false;
	is_there = search(&list, address, found);
	incstack__system_call(SYS_close, (long)list.fd);
	return is_there;
}

static void forget_old(struct incstack__executable *known)
{
	struct timespec now;

	incstack__clock(CLOCK_MONOTONIC, &now);
	if (known->since == now.tv_sec)
		return;
	*known = (struct incstack__executable){.since = now.tv_sec};
}

bool incstack__executable_has(struct incstack__executable *known, uintptr_t address)
{
	struct incstack__executable_range found;

	forget_old(known);
	for (size_t i = 0; i < RANGES; i++)
		if (address - known->ranges[i].low < known->ranges[i].high - known->ranges[i].low)
			return true;
	if (known->searches == SEARCHES_MOST)
		return false;
	known->searches++;
	if (!search_kernel(address, &found))
		return false;
	known->ranges[known->next++ % RANGES] = found;
	return true;
}
