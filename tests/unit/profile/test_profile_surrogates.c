/* SPDX-License-Identifier: MIT
 *
 * Tests names in JSON that contain half of a character, which no UTF-8 text can hold.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/profile.h>

#include "profile_nodes.h"
#include "run_suite.h"

/* Halves of characters are visible, wherever the buffer of the reader ends. Whole characters and escaped
 * backslashes are as they were. */
START_TEST(halves_of_characters)
{
	static const char *const names[][2] = {{"a\\ud800", "a<d800>"},
					       {"a\\uD801", "a<D801>"},
					       {"\\udc00\\ud83d", "<dc00><d83d>"},
					       {"\\ud83d\\ude00", "\xf0\x9f\x98\x80"},
					       {"\\ud83d\\ud83d\\ude00", "<d83d>\xf0\x9f\x98\x80"},
					       {"\\\\ud800", "\\ud800"},
					       {"\\ud80", NULL}};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (int before = (1 << 16) - 60; before < (1 << 16) + 2; before++) {
			struct incstack_profile *profile = NULL;
			struct incstack_profile_problem problem = {.size = sizeof(problem)};
			char *text = NULL;
			ck_assert_int_gt(
				asprintf(&text,
					 "%*s{\"shared\":{\"frames\":[{\"name\":\"%s\"}]},"
					 "\"profiles\":[{\"type\":\"sampled\",\"name\":\"\","
					 "\"unit\":\"none\",\"samples\":[[0]],\"weights\":[3]}]}",
					 before, "", names[i][0]),
				0);
			FILE *stream = fmemopen(text, strlen(text), "r");
			int error = incstack_profile_read(stream, INCSTACK_FORMAT_SPEEDSCOPE, 0,
							  &profile, &problem);
			fclose(stream);
			free(text);
			if (error != (names[i][1] ? 0 : INCSTACK_EFORMAT))
				ck_abort_msg("name %zu: %d", i, error);
			if (error)
				continue;
			const struct incstack_profile_frame frame = node_at(profile, 1).frame;
			if (frame.name_length != strlen(names[i][1]) ||
			    memcmp(frame.name, names[i][1], frame.name_length) != 0)
				ck_abort_msg("name %zu", i);
			incstack_profile_destroy(profile);
		}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("surrogates");
	TCase *tc = tcase_create("json");
	tcase_add_test(tc, halves_of_characters);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
