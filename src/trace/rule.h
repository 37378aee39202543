/* SPDX-License-Identifier: MIT
 *
 * An unwind rule packed into one word, and its look-up by code address: both are on the path
 * of every frame of every walk.
 */
#ifndef INCSTACK__RULE_H
#define INCSTACK__RULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <incstack/incstack.h>

/* A rule in one word; 0 means "not in the cache". Nearly all rules are plain. The return
 * slot of a plain rule is the word below the CFA, and the rule fits into 32 bits. Its layout:
 *   bit 0: 1 | CFA from the frame pointer: 1 | 0: 1 | fp_offset / 8: 8 | 0: 3 | cfa_offset / 8: 18
 * Other rules: 0 | kind: 3 | flags: 4 | ra_offset / 8: 8 | fp_offset / 8: 16 | cfa_offset: 32 */
typedef uint64_t packed_rule;
#define RULE_END ((packed_rule)INCSTACK_RULE_END << 1)
#define RULE_FRAME_POINTER ((packed_rule)(1 | 1 << 1 | 2 << 3 | 2 << 14))

static inline bool rule_plain(packed_rule r)
{
	return r & 1;
}
static inline bool rule_from_fp(packed_rule r)
{
	return r & 2;
}
static inline uintptr_t rule_fp(packed_rule r)
{
	return r & 0x7f8;
}
static inline uintptr_t rule_cfa(packed_rule r)
{
	return r >> 11;
}
/* False if the embedder has no rule for the address, or has not been asked for it. */
static inline bool rule_known(packed_rule r)
{
	return rule_plain(r) || (r && (r >> 1 & 7) <= INCSTACK_RULE_END);
}
static inline bool rule_decodes_now(packed_rule r)
{
	return !rule_plain(r) && r & (packed_rule)INCSTACK_RULE_DECODE_NOW << 4;
}

static inline bool rule_forbids_barrier(packed_rule r)
{
	return !rule_plain(r) && r & (packed_rule)INCSTACK_RULE_NO_BARRIER << 4;
}

static inline bool rule_by_pointer(packed_rule r)
{
	return !rule_plain(r) && r & (packed_rule)INCSTACK_RULE_BY_POINTER << 4;
}

struct rule_entry {
	_Atomic uintptr_t key;
	_Atomic packed_rule rule;
};

/* A hash table with open addressing. The head occupies the place of the first entry, so a masked
 * byte offset is added to the table's address without adjustment. The head's key is that mask,
 * combined with a bit that no address has, so no look-up matches it. The head's rule is the table
 * that this table replaced, which lives as long as the runtime. */
struct rule_table {
	struct rule_entry head;
	struct rule_entry entry[];
};
#define RULE_NO_KEY (UINT64_C(1) << 63)

/* The key of an address in the table. The rule of a return address is the rule of the byte before
 * it. Keys are one above the address of the rule, so a return address is its own key. */
static inline uintptr_t rule_key(uintptr_t address)
{
	return address + 1;
}
static inline uint64_t rule_hash(uintptr_t key)
{
	return (key * UINT64_C(0x61c88647)) >> 28;
}
static inline const struct rule_entry *rule_entry_at(const struct rule_table *t, uint64_t offset)
{
	uintptr_t mask = atomic_load_explicit(&t->head.key, memory_order_relaxed);
	return (const struct rule_entry *)((const char *)t + (offset & mask));
}
static inline packed_rule rule_in(const struct rule_table *t, uintptr_t key)
{
	for (uint64_t i = rule_hash(key);; i += sizeof(struct rule_entry)) {
		const struct rule_entry *e = rule_entry_at(t, i);
		uintptr_t found = atomic_load_explicit(&e->key, memory_order_relaxed);
		if (__builtin_expect(found == key, 1))
			return atomic_load_explicit(&e->rule, memory_order_relaxed);
		if (!found)
			return 0;
	}
}

/* rule.c */
struct incstack_rule incstack__rule_unpack(packed_rule r);
packed_rule incstack__rule_find(const struct incstack_runtime *rt, uintptr_t address);
packed_rule incstack__rule_learn(struct incstack_runtime *rt, uintptr_t address);
packed_rule incstack__rule_in_handler(struct incstack_runtime *rt, uintptr_t address,
				      packed_rule known, bool quickly);
packed_rule incstack__rule_learn_again(struct incstack_runtime *rt, uintptr_t address,
				       packed_rule known);
void incstack__rule_learn_wanted(struct incstack_runtime *rt);
void incstack__rule_reserve(struct incstack_runtime *rt);
void incstack__rules_invalidate(struct incstack_runtime *rt, uintptr_t low, uintptr_t high);
void incstack__rule_free(struct incstack_runtime *rt);
void incstack__rule_forked(struct incstack_runtime *rt);

#endif
