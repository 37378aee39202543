/* SPDX-License-Identifier: MIT
 *
 * Decodes a pc: one raw object becomes the virtual frames that the embedder finds there.
 */
#ifndef INCSTACK__DECODE_H
#define INCSTACK__DECODE_H

#include "unwind.h"

object *incstack__decode(stack *s, object *o, const struct incstack_frame *frame, enum ask ask,
			 bool grow);

#endif
