/* SPDX-License-Identifier: MIT
 *
 * Which methods the roots reach, and what must be changed for it.
 */
#ifndef INCSTACK__INSTRUMENT_REACH_H
#define INCSTACK__INSTRUMENT_REACH_H

#include "mirrors.h"

struct root {
	struct root *next;
	struct mirror *mirror;
	uint64_t name;
};

struct incstack_subgraph {
	struct incstack_subgraph_options options;
	struct mirrors mirrors;
	struct root *roots;
	struct method *work;                       /* methods whose callees must be found */
	struct method *first_change, *last_change; /* methods that may have to be changed */
	bool must_restart; /* a search from the roots was cut off: nothing may be restored */
	uint64_t instrumented, entered, unresolved, refused;
};

/* A method is reached. Its callees are found by incstack__reach_go_on. */
void incstack__reach_method(struct incstack_subgraph *s, struct method *method);
/* An instrumented method has run for the first time. */
void incstack__reach_entered(struct incstack_subgraph *s, struct method *method);
/* Looks where a call leads now. */
void incstack__reach_call(struct incstack_subgraph *s, const struct call *call);
/* What calls of a class and its superclasses reach in a class that was just loaded, or just seen. */
void incstack__reach_class(struct incstack_subgraph *s, struct mirror *mirror);
/* Finds callees until there is nothing left to do. Errors: ENOMEM; the rest stays to be done. */
int incstack__reach_go_on(struct incstack_subgraph *s);
/* Finds what a root reaches that was just added. Errors: ENOMEM. */
int incstack__reach_root(struct incstack_subgraph *s, const struct root *root);
/* Finds everything anew from the roots. Errors: ENOMEM; it starts again when it is next told to go on. */
int incstack__reach_again(struct incstack_subgraph *s);
/* Takes the methods of a class out of all lists. */
void incstack__reach_forget(struct incstack_subgraph *s, struct mirror *mirror);

#endif
