/* SPDX-License-Identifier: MIT
 *
 * Mode validate: what is remembered of a stack is compared with the stack, and nothing is patched.
 */
#ifndef INCSTACK__VALIDATE_H
#define INCSTACK__VALIDATE_H

#include "unwind.h"

/* While a stack is in mode validate, a raw object keeps the rule of its frame, if the rule fits. Other
 * modes hide it by all ones, which are no rule. */
static inline void validate_keep_rule(const stack *s, object *o, packed_rule rule)
{
	if (o->flags & INCSTACK_OBJECT_RAW)
		o->position = (rule_plain(rule) || rule == RULE_END ? (int32_t)rule : 0) |
			      s->validation.hidden;
}

bool incstack__validate(stack *s, const object *k, const struct cursor *at, object **good);
object *incstack__validate_known(const stack *s, object *first, object *otherwise);
void incstack__validate_open(stack *s);
void incstack__validate_hide_rules(stack *s);

#endif
