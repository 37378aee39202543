/* SPDX-License-Identifier: MIT
 *
 * The calling context tree of the oracle, and its comparison with the library's (cct.c).
 */
#ifndef TOYVM_CCT_H
#define TOYVM_CCT_H

#include <stdbool.h>

#include <incstack/incstack.h>

struct cct;
struct cct *cct_new(void);
void cct_free(struct cct *c);
/* From the base to the youngest frame: method << 32 | bci. */
void cct_add_record(struct cct *c, const uint64_t *keys, size_t count);
void cct_add_tree(struct cct *c, const struct incstack_tree *tree);
bool cct_same(const struct cct *c);

#endif
