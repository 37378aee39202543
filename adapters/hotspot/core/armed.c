/* SPDX-License-Identifier: MIT
 *
 * The list of the armed frames of one stack: a sorted array, because nearly every change
 * concerns its youngest end.
 */
#include <stdlib.h>
#include <string.h>

#include "armed.h"

int incstack__armed_reserve(struct incstack__armed *armed, uint32_t more)
{
	if (armed->room - armed->count >= more)
		return 0;
	uint32_t room = 2 * armed->room + more;
	uintptr_t *names = realloc(armed->names, room * sizeof(*names));
	if (!names)
		return -1;
	armed->names = names;
	armed->room = room;
	return 0;
}

/* Returns the position behind the last name that is `name` or older. */
static uint32_t behind(const struct incstack__armed *armed, uintptr_t name)
{
	uint32_t at = armed->count;
	while (at && armed->names[at - 1] < name)
		at--;
	return at;
}

int incstack__armed_add(struct incstack__armed *armed, uintptr_t name)
{
	uint32_t at = behind(armed, name);
	if (armed->count == armed->room || (at && armed->names[at - 1] == name))
		return -1;
	memmove(&armed->names[at + 1], &armed->names[at],
		(armed->count - at) * sizeof(*armed->names));
	armed->names[at] = name;
	armed->count++;
	return 0;
}

int incstack__armed_has(const struct incstack__armed *armed, uintptr_t name)
{
	uint32_t at = behind(armed, name);
	return at && armed->names[at - 1] == name;
}

int incstack__armed_remove(struct incstack__armed *armed, uintptr_t name)
{
	uint32_t at = behind(armed, name);
	if (!at || armed->names[at - 1] != name)
		return 0;
	memmove(&armed->names[at - 1], &armed->names[at],
		(armed->count - at) * sizeof(*armed->names));
	armed->count--;
	return 1;
}

uint32_t incstack__armed_take(struct incstack__armed *armed, uintptr_t limit, uintptr_t *oldest)
{
	uint32_t before = armed->count;
	while (armed->count && armed->names[armed->count - 1] < limit)
		*oldest = armed->names[--armed->count];
	return before - armed->count;
}

void incstack__armed_free(struct incstack__armed *armed)
{
	free(armed->names);
	*armed = (struct incstack__armed){NULL, 0, 0};
}
