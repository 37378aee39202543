/* SPDX-License-Identifier: MIT
 *
 * The version of the linked library and the texts of its error codes.
 */
#include <incstack/incstack.h>
#include <incstack/profile.h>
#include <incstack/safepoint.h>

int incstack_version(void)
{
	return INCSTACK_VERSION;
}

/* The switches have no default, so the compiler warns about a code without a text. */
static const char *tracing_text(enum incstack_error error)
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
	return NULL;
}

static const char *safepoint_text(enum incstack_safepoint_error error)
{
	switch (error) {
	case INCSTACK_ETIMEDOUT:
		return "the time ended before the event";
	case INCSTACK_EFORKED:
		return "the coordinator belongs to the parent of this process";
	}
	return NULL;
}

static const char *profile_text(enum incstack_profile_error error)
{
	switch (error) {
	case INCSTACK_EFORMAT:
		return "the input is not in the format";
	case INCSTACK_EIO:
		return "the stream failed";
	}
	return NULL;
}

const char *incstack_error_text(int error)
{
	if (error == 0)
		return "success";
	const char *text = tracing_text((enum incstack_error)error);
	if (!text)
		text = safepoint_text((enum incstack_safepoint_error)error);
	if (!text)
		text = profile_text((enum incstack_profile_error)error);
	return text ? text : "unknown error";
}
