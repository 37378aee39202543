/* SPDX-License-Identifier: MIT
 *
 * Method keys: numbers that name methods for ever, even after the memory that described the method
 * has a new use. A key is made without a lock or an allocation, so a sample can do it.
 */
#ifndef INCSTACK_HOTSPOT_METHODS_H
#define INCSTACK_HOTSPOT_METHODS_H

#include <stddef.h>
#include <stdint.h>

#include <incstack/version.h>

INCSTACK_BEGIN_C

struct incstack__methods;

/* What is kept of a method that no longer exists. The strings follow it in the same memory. */
struct incstack__method_names {
	const char *class_signature;
	const char *name;
	const char *signature;
	const char *source_file; /* may be null */
};

/* Makes an empty table for `capacity` keys, a power of two. Memory is used as keys are made.
 * Returns null if there is no memory. */
struct incstack__methods *incstack__methods_create(uint32_t capacity);
void incstack__methods_destroy(struct incstack__methods *methods);

/* Returns the key of the method at this address, 1 or more; 0 if the table is full. Thread:
 * any. Signal: yes. */
uint32_t incstack__method_key(struct incstack__methods *methods, uintptr_t method);

/* Returns the key if there is one, else 0. */
uint32_t incstack__method_find(const struct incstack__methods *methods, uintptr_t method);

/* Returns the address of the method. Returns 0 if the method no longer exists or there was never
 * such a key; then *names are its names, or null. The caller makes sure that the method is not
 * freed meanwhile. */
uintptr_t incstack__method_of(const struct incstack__methods *methods, uint32_t key,
			      const struct incstack__method_names **names);

/* Called when the method is about to be freed. Keeps `names`, a malloc'ed object or null. If the
 * address is used again, it gets a new key. */
void incstack__method_gone(struct incstack__methods *methods, uint32_t key,
			   struct incstack__method_names *names);

/* Copies names into one malloc'ed object. Null if there is no memory. */
struct incstack__method_names *incstack__method_names_copy(const char *class_signature,
							   const char *name, const char *signature,
							   const char *source_file);

/* How many keys were made, and how often there was no room for one. */
void incstack__methods_count(const struct incstack__methods *methods, uint64_t *keys,
			     uint64_t *refused);

INCSTACK_END_C

#endif
