/* SPDX-License-Identifier: MIT
 *
 * The cache of unwind rules, shared by all stacks of a runtime: a hash table with open
 * addressing from code address to packed rule. Readers and writers take no lock. A table that
 * was replaced by a larger one stays readable until the runtime ends. The table grows ahead of
 * need, and only where memory may be allocated. If a sample or a return finds no room (I7), it
 * uses the rule without caching it and counts that.
 */

#include "runtime.h"
#include "signals.h"

enum { FIRST_ENTRIES = 8191 }; /* a power of two with the head */
/* A kind that no rule has. It says that the address is known to have no rule. */
enum { KIND_UNKNOWN = 7 };

packed_rule incstack__rule_find(const runtime *rt, uintptr_t address)
{
	/* acquire: pairs with the release in grow. */
	const struct rule_table *t = atomic_load_explicit(&rt->rules, memory_order_acquire);
	return t ? rule_in(t, rule_key(address)) : 0;
}

/* Returns the entry of the key. If there is none, it claims one and sets *is_new. Several threads
 * may do so at once, and a signal handler may jump out before the rule is stored, so an entry that
 * has a key but no rule counts as unknown. */
static struct rule_entry *claim(struct rule_table *t, uintptr_t key, bool *is_new)
{
	for (uint64_t i = rule_hash(key);; i += sizeof(struct rule_entry)) {
		struct rule_entry *e = (struct rule_entry *)rule_entry_at(t, i);
		uintptr_t found = 0;
		*is_new = atomic_compare_exchange_strong_explicit(
			&e->key, &found, key, memory_order_relaxed, memory_order_relaxed);
		if (*is_new || found == key)
			return e;
	}
}

/* Returns true if the key is new in the table. */
static bool insert(struct rule_table *t, uintptr_t key, packed_rule rule)
{
	bool is_new;
	struct rule_entry *e = claim(t, key, &is_new);
	atomic_store_explicit(&e->rule, rule, memory_order_relaxed);
	return is_new;
}

/* The number of entries of a table, without the head. */
static uint64_t entries_of(const struct rule_table *t)
{
	uintptr_t mask = atomic_load_explicit(&t->head.key, memory_order_relaxed);
	return (mask & ~RULE_NO_KEY) / sizeof(struct rule_entry);
}

static size_t table_bytes(uint64_t entries)
{
	return sizeof(struct rule_table) + entries * sizeof(struct rule_entry);
}

static struct rule_table *replaced_by(const struct rule_table *t)
{
	return (struct rule_table *)atomic_load_explicit(&t->head.rule, memory_order_relaxed);
}

/* Copies an entry to a larger table. Another thread may invalidate the rule in the meantime. It
 * clears the old entry first and then looks for one in the new table. Here the new entry is written
 * first, and then the old entry is read again. With sequentially consistent operations on both
 * sides, at least one thread sees what the other did. Returns whether the key is new. */
static bool copy_entry(struct rule_table *to, const struct rule_entry *from)
{
	uintptr_t k = atomic_load_explicit(&from->key, memory_order_relaxed);
	packed_rule r = atomic_load_explicit(&from->rule, memory_order_relaxed);
	if (!k || !r)
		return false;
	bool is_new;
	struct rule_entry *e = claim(to, k, &is_new);
	for (packed_rule now = r;; r = now) {
		atomic_store(&e->rule, r);
		now = atomic_load(&from->rule);
		if (now == r)
			return is_new;
	}
}

/* Copies the entries that are still valid, and returns their number. */
static uint64_t copy(struct rule_table *to, const struct rule_table *from)
{
	uint64_t count = 0;
	for (uint64_t i = 0; from && i < entries_of(from); i++)
		count += copy_entry(to, &from->entry[i]);
	return count;
}

/* Whether the table is at most a quarter full. It may fill up to a half (keep), so there is room
 * for as many rules again before the next opportunity to grow. */
static bool grown_enough(const runtime *rt, const struct rule_table *t)
{
	return t &&
	       atomic_load_explicit(&rt->rule_count, memory_order_relaxed) * 4 <= entries_of(t);
}

/* Replaces the table by a larger one. If there is no memory, the old table stays. */
static void grow(runtime *rt, struct rule_table *old)
{
	uint64_t entries = old ? entries_of(old) * 2 + 1 : FIRST_ENTRIES;
	struct rule_table *t = incstack__allocate(rt, table_bytes(entries));
	if (!t)
		return;
	atomic_init(&t->head.key, entries * sizeof(struct rule_entry) | RULE_NO_KEY);
	atomic_init(&t->head.rule, (uintptr_t)old);
	for (uint64_t i = 0; i < entries; i++) {
		atomic_init(&t->entry[i].key, 0);
		atomic_init(&t->entry[i].rule, 0);
	}
	atomic_store(&rt->growing, t);
	atomic_store_explicit(&rt->rule_count, copy(t, old), memory_order_relaxed);
	/* release: pairs with the acquires in rule_find and keep. */
	atomic_store_explicit(&rt->rules, t, memory_order_release);
#ifdef INCSTACK_HOSTILE
	return; /* no fast walk, so the general walk handles every frame */
#endif
	if (!rt->embedder.code
		     .logical_pc) /* release: pairs with the acquire in fast_walk_frames. */
		atomic_store_explicit(&rt->fast_rules, t, memory_order_release);
}

/* Caches a rule, or counts that there is no room. A rule that is written into a table that is
 * being replaced may be lost; the embedder is then asked for it again. */
static packed_rule keep(runtime *rt, uintptr_t address, packed_rule rule)
{
	struct rule_table *t = atomic_load_explicit(&rt->rules, memory_order_acquire);
	uint64_t count = atomic_load_explicit(&rt->rule_count, memory_order_relaxed);
	if (rule_by_pointer(rule)) /* other code may be there next time */
		return rule;
	if (!t || count * 2 >= entries_of(t))
		atomic_fetch_add_explicit(&rt->rules_unkept, 1, memory_order_relaxed);
	else if (insert(t, rule_key(address), rule))
		atomic_fetch_add_explicit(&rt->rule_count, 1, memory_order_relaxed);
	return rule;
}

static bool plain(const struct incstack_rule *r)
{
	return (r->kind == INCSTACK_RULE_SP || r->kind == INCSTACK_RULE_FP) && !r->flags &&
	       r->ra_offset == 8 && r->cfa_offset > 0 && r->cfa_offset % 8 == 0 &&
	       r->cfa_offset < 1 << 21 && r->fp_offset % 8 == 0 && r->fp_offset < 1 << 11 &&
	       (r->kind == INCSTACK_RULE_FP || r->fp_offset <= r->cfa_offset);
}

static packed_rule pack(const struct incstack_rule *r)
{
	if (plain(r))
		return 1 | (packed_rule)(r->kind == INCSTACK_RULE_FP) << 1 |
		       (packed_rule)r->fp_offset | (packed_rule)(r->cfa_offset / 8) << 14;
	bool fits = r->kind <= INCSTACK_RULE_END && r->ra_offset % 8 == 0 &&
		    r->fp_offset % 8 == 0 && r->ra_offset / 8 < 256;
	if (!fits || r->kind == INCSTACK_RULE_NONE)
		return KIND_UNKNOWN << 1;
	return (packed_rule)r->kind << 1 | (packed_rule)(r->flags & 15) << 4 |
	       (packed_rule)(r->ra_offset / 8) << 8 | (packed_rule)(r->fp_offset / 8) << 16 |
	       (packed_rule)(uint32_t)r->cfa_offset << 32;
}

struct incstack_rule incstack__rule_unpack(packed_rule r)
{
	if (rule_plain(r))
		return (struct incstack_rule){rule_from_fp(r) ? INCSTACK_RULE_FP : INCSTACK_RULE_SP,
					      (int32_t)rule_cfa(r), 8, (uint16_t)rule_fp(r), 0};
	return (struct incstack_rule){(uint32_t)(r >> 1 & 7), (int32_t)(r >> 32),
				      (uint16_t)((r >> 8 & 0xff) * 8),
				      (uint16_t)((r >> 16 & 0xffff) * 8), (uint32_t)(r >> 4 & 15)};
}

static packed_rule ask(runtime *rt, uintptr_t address)
{
	struct incstack_rule rule = {.kind = INCSTACK_RULE_NONE};
	uint64_t before;
	bool blocked = incstack__signals_block(&before);
	if (rt->embedder.code.find_rule(rt->context, address, &rule) < 0)
		rule.kind = INCSTACK_RULE_NONE;
	incstack__signals_restore(blocked, &before);
	return pack(&rule);
}

/* Asks the embedder and caches the answer, even if the answer is that there is no rule. */
packed_rule incstack__rule_learn(runtime *rt, uintptr_t address)
{
	struct incstack_rule rule;
	if (rt->embedder.code.find_rule_quickly &&
	    !rt->embedder.code.find_rule_quickly(rt->context, address, &rule))
		return keep(rt, address, pack(&rule));
	return keep(rt, address, ask(rt, address));
}

/* Asks again about an address that had no rule. It may have one by now, because a library was
 * loaded at a place where generated code was. No unload was announced then. */
packed_rule incstack__rule_learn_again(runtime *rt, uintptr_t address, packed_rule known)
{
	struct incstack_rule rule;
	if (rt->embedder.code.find_rule_quickly &&
	    !rt->embedder.code.find_rule_quickly(rt->context, address, &rule))
		return keep(rt, address, pack(&rule));
	return known;
}

/* Makes room ahead for the rules that samples will learn. Called where memory may be
 * allocated. */
void incstack__rule_reserve(runtime *rt)
{
	struct rule_table *t = atomic_load_explicit(&rt->rules, memory_order_acquire);
	if (__builtin_expect(!rt->embedder.code.find_rule || grown_enough(rt, t), 1))
		return;
	uint64_t before;
	bool blocked = incstack__signals_block(&before);
	if (!atomic_flag_test_and_set_explicit(&rt->rule_lock, memory_order_acquire)) {
		t = atomic_load_explicit(&rt->rules, memory_order_relaxed);
		if (!grown_enough(rt, t))
			grow(rt, t);
		atomic_flag_clear_explicit(&rt->rule_lock, memory_order_release);
	}
	incstack__signals_restore(blocked, &before);
}

/* Notes an address whose rule a signal handler missed and must not ask for. The next sample of
 * the stack outside a signal handler, reserve or retrieve asks for it. */
static void want(runtime *rt, uintptr_t address)
{
	unsigned i = atomic_fetch_add_explicit(&rt->wanted_next, 1, memory_order_relaxed);
	atomic_store_explicit(&rt->wanted[i % RULES_WANTED], address, memory_order_relaxed);
	/* release: pairs with the acquire in rule_learn_wanted. */
	atomic_store_explicit(&rt->wanting, true, memory_order_release);
}

/* Asks the embedder in a signal handler, where only one of its functions may be called; with
 * `quickly`, find_rule_quickly takes its place if it is missing. `known` is 0, or says that the
 * address had no rule. If the address still has no rule, find_rule is asked later. But with
 * INCSTACK_EBUSY only the next handler asks again. */
packed_rule incstack__rule_in_handler(runtime *rt, uintptr_t address, packed_rule known,
				      bool quickly)
{
	int (*find)(void *, uintptr_t, struct incstack_rule *) = rt->embedder.signals.find_rule;
	struct incstack_rule rule;
	if (!find && quickly)
		find = rt->embedder.code.find_rule_quickly;
	int error = find ? find(rt->context, address, &rule) : INCSTACK_EUNWIND;
	if (!error)
		return keep(rt, address, pack(&rule));
	if (!known && error != INCSTACK_EBUSY)
		want(rt, address);
	return known;
}

/* Asks for the rules that signal handlers missed, so that the next handler finds them. Called
 * where the embedder may be asked. */
void incstack__rule_learn_wanted(runtime *rt)
{
	/* The cheap load avoids most of the expensive exchanges. The acquire of the exchange pairs
	 * with the release in want. */
	if (!atomic_load_explicit(&rt->wanting, memory_order_relaxed) ||
	    !atomic_exchange_explicit(&rt->wanting, false, memory_order_acquire))
		return;
	for (int i = 0; i < RULES_WANTED; i++) {
		uintptr_t address =
			atomic_exchange_explicit(&rt->wanted[i], 0, memory_order_relaxed);
		if (address && !incstack__rule_find(rt, address))
			incstack__rule_learn(rt, address);
	}
}

static void invalidate_in(struct rule_table *t, uintptr_t low, uintptr_t high)
{
	for (uint64_t i = 0; t && i < entries_of(t); i++) {
		uintptr_t k = atomic_load_explicit(&t->entry[i].key, memory_order_relaxed);
		if (k - rule_key(low) < high - low)
			atomic_store(&t->entry[i].rule, 0);
	}
}

/* Forgets the rules of [low, high). It waits for no other thread, because a thread that is making a
 * larger table may be stopped, or may be the calling thread, interrupted by a signal handler. */
void incstack__rules_invalidate(runtime *rt, uintptr_t low, uintptr_t high)
{
	atomic_fetch_add(&rt->invalidating, 1);
	atomic_fetch_add(&rt->rules_invalidated, 1); /* mode validate may remember such rules */
	invalidate_in(atomic_load(&rt->rules), low, high);
	invalidate_in(atomic_load(&rt->growing), low, high);
	for (int i = 0; i < RULES_WANTED; i++)
		if (atomic_load_explicit(&rt->wanted[i], memory_order_relaxed) - low < high - low)
			atomic_store_explicit(&rt->wanted[i], 0, memory_order_relaxed);
	/* A walk by such a rule may have been remembered meanwhile. */
	atomic_fetch_add(&rt->rules_invalidated, 1);
	atomic_fetch_sub(&rt->invalidating, 1);
}

/* In the child of fork no other thread exists. If one was making a larger table, its lock is
 * released. If one was invalidating rules, all rules are forgotten. */
void incstack__rule_forked(runtime *rt)
{
	atomic_flag_clear(&rt->rule_lock);
	if (atomic_exchange(&rt->invalidating, 0))
		incstack__rules_invalidate(rt, 0, UINTPTR_MAX);
}

void incstack__rule_free(runtime *rt)
{
	struct rule_table *t = atomic_load_explicit(&rt->rules, memory_order_relaxed);
	while (t) {
		struct rule_table *older = replaced_by(t);
		incstack__release(rt, t, table_bytes(entries_of(t)));
		t = older;
	}
}
