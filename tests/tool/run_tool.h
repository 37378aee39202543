/* SPDX-License-Identifier: MIT
 *
 * Runs the tool as people run it, in a new folder with two profiles: a.folded and b.folded.
 */
#ifndef INCSTACK_TESTS_TOOL_RUN_TOOL_H
#define INCSTACK_TESTS_TOOL_RUN_TOOL_H

#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/profile_files.h"

static char folder[] = "/tmp/incstack-tool-XXXXXX";
static char output[1 << 16]; /* of the last command: stdout and stderr */

/* Runs a shell command in the folder, in which $I is the tool; its exit status. */
__attribute__((format(printf, 1, 2))) static int run(const char *format, ...)
{
	const char *build = getenv("INCSTACK_BUILD_DIR");
	char *script, *command;
	va_list arguments;
	FILE *stream;
	size_t got;
	int status;

	va_start(arguments, format);
	ck_assert_int_gt(vasprintf(&script, format, arguments), 0);
	va_end(arguments);
	ck_assert_int_gt(asprintf(&command, "cd %s && I=%s/incstack && { %s; } 2>&1", folder,
				  build ? build : "build/release", script),
			 0);
	stream = popen(command, "r");
	ck_assert_ptr_nonnull(stream);
	got = fread(output, 1, sizeof(output) - 1, stream);
	output[got] = 0;
	status = pclose(stream);
	free(script);
	free(command);
	return WEXITSTATUS(status);
}

static void shows(const char *text)
{
	ck_assert_msg(strstr(output, text), "no '%s' in:\n%s", text, output);
}

static void set_up(void)
{
	strcpy(folder, "/tmp/incstack-tool-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(
		run("printf 'main;f (int);g \"x\" 5\\nmain;größe 3\\nmain 2\\n' > a.folded"), 0);
	ck_assert_int_eq(run("printf 'main;f (int);g \"x\" 1\\nmain;h 9\\n' > b.folded"), 0);
}

static void tear_down(void)
{
	ck_assert_int_eq(run("rm -r %s", folder), 0);
}

#endif
