/* SPDX-License-Identifier: MIT
 *
 * Makes lone surrogates of JSON text visible.
 */
#ifndef INCSTACK_PROFILE_JSON_SURROGATES_H
#define INCSTACK_PROFILE_JSON_SURROGATES_H

#include <stdbool.h>
#include <stddef.h>

/* Replaces each escape of a lone surrogate, such as \ud800, by as many characters: <d800>. Returns how many
 * bytes are done: what follows may be the beginning of an escape, unless the text ends there (`is_last`).
 * The next call must begin with these bytes. */
size_t incstack__json_show_surrogates(unsigned char *text, size_t size, bool is_last);

#endif
