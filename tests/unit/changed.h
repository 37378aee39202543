/* SPDX-License-Identifier: MIT
 *
 * A subgraph, and what its changes have made.
 */
#ifndef CHANGED_H
#define CHANGED_H

#include <check.h>
#include <stdbool.h>
#include <string.h>

#include <incstack/instrument.h>

static struct incstack_subgraph *subgraph;
static bool made[200000]; /* methods that are instrumented, as the changes said */

static inline void create(uint32_t scheme, uint32_t flags)
{
	const struct incstack_subgraph_options options = {
		.size = sizeof(options), .scheme = scheme, .flags = flags};

	memset(made, 0, sizeof(made));
	ck_assert_int_eq(incstack_subgraph_create(&options, &subgraph), 0);
}

static inline void teardown(void)
{
	incstack_subgraph_destroy(subgraph);
	subgraph = NULL;
}

/* Takes all changes; returns how many there were. */
static inline int take_changes(void)
{
	struct incstack_subgraph_change change;
	int count = 0, got;

	while ((got = incstack_subgraph_next_change(subgraph, &change)) == 1) {
		ck_assert_uint_lt(change.method, sizeof(made));
		ck_assert(made[change.method] == (change.action == INCSTACK_CHANGE_RESTORE));
		made[change.method] = !made[change.method];
		count++;
	}
	ck_assert_int_eq(got, 0);
	return count;
}

#endif
