/* SPDX-License-Identifier: MIT
 *
 * The version of the linked library and the texts of its error codes.
 */
#include <incstack/incstack.h>

int incstack_version(void)
{
	return INCSTACK_VERSION;
}

/* A switch without default: the compiler names the code that has no text. */
static const char *known_text(enum incstack_error error)
{
	switch (error) {
	case INCSTACK_EINVAL:
		return "invalid argument";
	case INCSTACK_ENOMEM:
		return "out of memory";
	case INCSTACK_ELIMIT:
		return "the stack's byte limit is reached";
	case INCSTACK_ETHREAD:
		return "the calling thread does not own the stack";
	case INCSTACK_EBUSY:
		return "the stack is in the middle of an operation";
	case INCSTACK_EUNWIND:
		return "the top frame has no unwind rule";
	case INCSTACK_ERANGE:
		return "address outside the stack";
	}
	return "unknown error";
}

const char *incstack_error_text(int error)
{
	return error == 0 ? "success" : known_text((enum incstack_error)error);
}
