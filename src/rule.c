/* SPDX-License-Identifier: MIT
 *
 * The cache of unwind rules, shared by all stacks of a runtime: an open hash
 * table from look-up address to packed rule. Readers take no lock: an entry's
 * rule is written before its address (release), and a table that was outgrown
 * stays readable until the runtime ends.
 */
#include "internal.h"

enum { FIRST_ENTRIES = 4096 };
/* packed: kind 4 bits | flags 4 | ra_offset / 8: 8 | fp_offset / 8: 16 | cfa_offset: 32 */

static uint64_t hash(uintptr_t address)
{
	return (address * 0x9e3779b97f4a7c15u) >> 20;
}

static packed_rule look_up(const struct rule_table *t, uintptr_t address)
{
	for (uint64_t i = hash(address);; i++) {
		/* pairs with the release in insert */
		uintptr_t found =
			atomic_load_explicit(&t->entry[i & t->mask].address, memory_order_acquire);
		if (found == address)
			return atomic_load_explicit(&t->entry[i & t->mask].rule,
						    memory_order_relaxed);
		if (!found)
			return 0;
	}
}

packed_rule incstack__rule_find(const runtime *rt, uintptr_t address)
{
	const struct rule_table *t = atomic_load_explicit(&rt->rules, memory_order_acquire);
	return t ? look_up(t, address) : 0;
}

static void insert(struct rule_table *t, uintptr_t address, packed_rule rule)
{
	uint64_t i = hash(address);
	for (;; i++) {
		uintptr_t found =
			atomic_load_explicit(&t->entry[i & t->mask].address, memory_order_relaxed);
		if (!found || found == address)
			break;
	}
	atomic_store_explicit(&t->entry[i & t->mask].rule, rule, memory_order_relaxed);
	/* pairs with the acquire in look_up */
	atomic_store_explicit(&t->entry[i & t->mask].address, address, memory_order_release);
}

static size_t table_bytes(uint64_t entries)
{
	return sizeof(struct rule_table) + entries * 2 * sizeof(uint64_t);
}

/* Doubles the table; keeps the old one where there is no memory. */
static void grow(runtime *rt, struct rule_table *old)
{
	uint64_t entries = old ? (old->mask + 1) * 2 : FIRST_ENTRIES;
	struct rule_table *t = incstack__allocate(rt, table_bytes(entries));
	if (!t)
		return;
	t->mask = entries - 1;
	t->older = old;
	for (uint64_t i = 0; i < entries; i++) {
		atomic_init(&t->entry[i].address, 0);
		atomic_init(&t->entry[i].rule, 0);
	}
	for (uint64_t i = 0; old && i <= old->mask; i++) {
		uintptr_t a = atomic_load_explicit(&old->entry[i].address, memory_order_relaxed);
		packed_rule r = atomic_load_explicit(&old->entry[i].rule, memory_order_relaxed);
		if (a && r)
			insert(t, a, r);
	}
	atomic_store_explicit(&rt->rules, t, memory_order_release); /* pairs with rule_find */
}

static void remember(runtime *rt, uintptr_t address, packed_rule rule)
{
	if (atomic_flag_test_and_set_explicit(&rt->rule_lock, memory_order_acquire))
		return; /* somebody else writes: learn it at the next miss */
	struct rule_table *t = atomic_load_explicit(&rt->rules, memory_order_relaxed);
	if (!t || rt->rule_count * 2 > t->mask) {
		grow(rt, t);
		t = atomic_load_explicit(&rt->rules, memory_order_relaxed);
	}
	if (t && rt->rule_count < t->mask - 1) {
		insert(t, address, rule);
		rt->rule_count++;
	}
	atomic_flag_clear_explicit(&rt->rule_lock, memory_order_release);
}

static packed_rule pack(const struct incstack_rule *r)
{
	bool fits = r->kind <= INCSTACK_RULE_END && r->ra_offset % 8 == 0 &&
		    r->fp_offset % 8 == 0 && r->ra_offset / 8 < 256;
	if (!fits || r->kind == INCSTACK_RULE_NONE)
		return 15; /* a kind that no rule has: known to have none */
	return r->kind | (uint64_t)(r->flags & 15) << 4 | (uint64_t)(r->ra_offset / 8) << 8 |
	       (uint64_t)(r->fp_offset / 8) << 16 | (uint64_t)(uint32_t)r->cfa_offset << 32;
}

/* Asks the embedder and keeps the answer, also that there is none. */
packed_rule incstack__rule_learn(runtime *rt, uintptr_t address)
{
	struct incstack_rule rule = {.kind = INCSTACK_RULE_NONE};
	if (rt->embedder.find_rule(rt->context, address, &rule) < 0)
		rule.kind = INCSTACK_RULE_NONE;
	packed_rule packed = pack(&rule);
	remember(rt, address, packed);
	return packed;
}

void incstack__rule_forget(runtime *rt, uintptr_t low, uintptr_t high)
{
	while (atomic_flag_test_and_set_explicit(&rt->rule_lock, memory_order_acquire))
		;
	struct rule_table *t = atomic_load_explicit(&rt->rules, memory_order_relaxed);
	for (uint64_t i = 0; t && i <= t->mask; i++) {
		uintptr_t a = atomic_load_explicit(&t->entry[i].address, memory_order_relaxed);
		if (a >= low && a < high)
			atomic_store_explicit(&t->entry[i].rule, 0, memory_order_relaxed);
	}
	atomic_flag_clear_explicit(&rt->rule_lock, memory_order_release);
}

void incstack__rule_free(runtime *rt)
{
	struct rule_table *t = atomic_load_explicit(&rt->rules, memory_order_relaxed);
	while (t) {
		struct rule_table *older = t->older;
		incstack__release(rt, t, table_bytes(t->mask + 1));
		t = older;
	}
}
