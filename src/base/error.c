/* SPDX-License-Identifier: MIT
 *
 * The texts of all error codes of all libraries.
 */
#include <stddef.h>

#include <incstack/error.h>

static const struct {
	int code;
	const char *text;
} texts[] = {
	{0, "success"},
	{INCSTACK_EINVAL, "invalid argument"},
	{INCSTACK_ENOMEM, "out of memory"},
	{INCSTACK_ELIMIT, "a limit is reached"},
	{INCSTACK_ETHREAD, "the calling thread does not own the stack"},
	{INCSTACK_EBUSY, "the stack is in the middle of an operation"},
	{INCSTACK_EUNWIND, "the top frame has no unwind rule"},
	{INCSTACK_ERANGE, "an address, a number or a sum is out of range"},
	{INCSTACK_EROOM,
	 "no room for the trace: call incstack_stack_reserve before the sample, or use "
	 "incstack_stack_sample_at_poll"},
	{INCSTACK_ETIMEDOUT, "timed out"},
	{INCSTACK_EFORKED, "the coordinator belongs to the parent of this process"},
	{INCSTACK_EFORMAT, "the input is not in the format"},
	{INCSTACK_EIO, "reading or writing failed"},
};

const char *incstack_error_text(int error)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].code == error)
			return texts[i].text;
	return "unknown error";
}
