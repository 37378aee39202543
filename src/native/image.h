/* SPDX-License-Identifier: MIT
 *
 * Unwind rules of code that belongs to another process. The caller has a copy of the object, laid
 * out as it is there, and passes addresses in this copy.
 */
#ifndef INCSTACK_SRC_NATIVE_IMAGE_H
#define INCSTACK_SRC_NATIVE_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <incstack/embedder.h>

/* A copy of an object in [low, high). */
struct incstack__native_image {
	uintptr_t low, high;
	uintptr_t header; /* its .eh_frame_hdr; 0: it has none */
	/* Called before bytes in it are read, so that they can be copied then. Returns false if they
	 * cannot be read. Null: all can be. */
	bool (*get)(void *context, uintptr_t at, uint64_t bytes);
	void *context;
};

/* Reads the rule of an address in the image from .eh_frame. Returns false if that gives none, or if
 * it leads out of the image. */
bool incstack__native_image_rule(const struct incstack__native_image *image, uintptr_t address,
				 struct incstack_rule *rule);

/* Whether the instruction before the address in the image is a call. */
bool incstack__native_image_follows_call(const struct incstack__native_image *image,
					 uintptr_t address);

#endif
