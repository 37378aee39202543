/* SPDX-License-Identifier: MIT
 *
 * What the stacks of one embedder share, and the embedder's allocator (memory.c).
 */
#ifndef INCSTACK__RUNTIME_H
#define INCSTACK__RUNTIME_H

#include <stdatomic.h>
#include <stdbool.h>

#include <incstack/incstack.h>

#include "object.h"
#include "rule.h"

enum { RULES_WANTED = 64 };

/* The fields that every sample reads come first. */
struct incstack_runtime {
	_Atomic(struct rule_table *) fast_rules; /* same as `rules`, or null: see fast_walk.h */
	_Atomic(struct rule_table *) rules;
	atomic_bool wanting; /* something is in `wanted` */
	struct incstack_embedder embedder;
	void *context;
	struct incstack_options options;
	_Atomic uint64_t rule_count;          /* entries in use */
	_Atomic uint64_t rules_unkept;        /* rules for which the table had no room */
	_Atomic(struct rule_table *) growing; /* the newest table, even before it is published */
	_Atomic uint64_t rules_invalidated;   /* calls of incstack__rules_invalidate */
	atomic_uint invalidating;             /* threads inside incstack__rules_invalidate */
	atomic_flag rule_lock;                /* held to make a larger table; nobody waits */
	/* Addresses that signal handlers missed: a ring that overwrites the oldest. */
	_Atomic uintptr_t wanted[RULES_WANTED];
	atomic_uint wanted_next;
	atomic_uint users;   /* stacks, trees, 1 until it is destroyed; the last user frees it */
	atomic_uint thunks;  /* taken from the pool */
	atomic_uint revived; /* returns through retired thunks */
	struct chunk *kept;  /* chunks of released trees */
	uint32_t kept_count;
	atomic_flag kept_lock;
	size_t xsave_bytes;
};

/* memory.c; incstack__runtime_drop: one user less */
void *incstack__allocate(runtime *rt, size_t bytes);
void incstack__release(runtime *rt, void *memory, size_t bytes);
void incstack__runtime_drop(runtime *rt);

#endif
