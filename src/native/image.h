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

#include "elf/elf_image.h"

/* A copy of an object. Its bytes may be copied when they are first read. */
struct incstack__native_image {
	struct incstack__elf_image bytes;
	uintptr_t header; /* its .eh_frame_hdr; 0: it has none */
};

/* Reads the rule of an address in the image from .eh_frame. Returns false if that gives none, or if
 * it leads out of the image. */
bool incstack__native_image_rule(const struct incstack__native_image *image, uintptr_t address,
				 struct incstack_rule *rule);

/* Whether the instruction before the address in the image is a call. */
bool incstack__native_image_follows_call(const struct incstack__native_image *image,
					 uintptr_t address);

#endif
