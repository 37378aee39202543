/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * leak 65536 grow<add<top
 * peak 65536 grow<add<top
 */
#include <stdlib.h>

struct list {
	size_t used, room;
	long *items;
};

static void grow(struct list *list)
{
	list->room = list->room ? 2 * list->room : 4;
	list->items = realloc(list->items, list->room * sizeof(long)); /* <grow grow> */
}

static void add(struct list *list, long item)
{
	if (list->used == list->room)
		grow(list); /* <add add> */
	list->items[list->used++] = item;
}

static struct list all;

int main(void)
{
	for (long i = 0; i < 8000; i++)
		add(&all, i); /* <top main> */
	return all.used != 8000;
}
