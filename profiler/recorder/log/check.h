/* SPDX-License-Identifier: MIT
 *
 * check.c: the walks with which --crosscheck compares the traces of a record.
 */
#ifndef INCSTACK_RECORDER_CHECK_H
#define INCSTACK_RECORDER_CHECK_H

#include <stdbool.h>
#include <stdint.h>

struct incstack__record;
struct incstack_top;
struct incstack_tree;

int incstack__record_check_create(struct incstack__record *record);
void incstack__record_check_destroy(struct incstack__record *record);
/* Called before threads are recorded, and in the child of fork. */
void incstack__record_check_start(void);
bool incstack__record_check_room(const struct incstack__record *record);
void incstack__record_check_walk(struct incstack__record *record, uint64_t index,
				 const struct incstack_top *top);
void incstack__record_check_skip(struct incstack__record *record, uint64_t index);
void incstack__record_check_tree(struct incstack__record *record, const struct incstack_tree *tree);
/* Drops the walks of traces that were written. */
void incstack__record_check_clear(struct incstack__record *record);

#endif
