/* SPDX-License-Identifier: MIT
 *
 * Reports how a process ended, as far as that is known. If the program did not exit by itself, also
 * what it had allocated last.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

#include "report.h"

static void print_signal(int number, FILE *out)
{
	const char *name = sigabbrev_np(number);

	if (name != NULL)
		fprintf(out, "The program was killed by SIG%s (%s).\n", name, sigdescr_np(number));
	else
		fprintf(out, "The program was killed by signal %d.\n", number);
}

/* Prints the newest allocation. Events are ordered by their stamps, so this does not tell which
 * instruction failed, only what was allocated last. */
static void print_newest(const struct tool_report *report, FILE *out)
{
	const struct incstack__replay *replay = report->replay;

	if (replay->newest_node == INCSTACK__CCT_ROOT)
		return;
	fprintf(out, "The newest %s before that, on thread %" PRIu32 ":\n", report->form->event,
		replay->newest_thread);
	tool_report_frames(report, replay->newest_node, out);
}

/* The recorder does not know how the process ended. Its parent may. Recording may also have stopped
 * before the end; a note tells why. */
static void print_unknown(const struct incstack__tracefile_totals *totals, FILE *out)
{
	const int recovered = (totals->tally.flags & INCSTACK__TRACEFILE_TALLY_RECOVERED) != 0;
	const char *how = "the program did not end normally, or still runs";

	if (totals->end != 0 && WIFEXITED((int)(totals->end & 0xffff))) {
		if (!recovered && tool_report_has_stopped(totals))
			return;
		how = "the program ended by a system call of its own, which the recorder does not "
		      "see";
	} else if (totals->end != 0) {
		how = "the program did not end normally";
	}
	if (recovered)
		fprintf(out, "What was not written yet was recovered: %s.\n", how);
	else
		fprintf(out, "warning: %s; what it had not written yet is missing\n", how);
}

/* Whether the file is a copy that was made while the process was recorded. */
static bool is_running(const struct tool_report *report)
{
	const struct incstack__moment *moment = incstack__tracefile_reader_moment(report->reader);

	return moment != NULL && !(moment->head.flags & INCSTACK__MOMENT_OF_END);
}

void tool_report_end(const struct tool_report *report, FILE *out)
{
	const struct incstack__tracefile_totals *totals =
		incstack__tracefile_reader_totals(report->reader);
	const int status = (int)(totals->end & 0xffff);
	const int known = totals->end != 0;

	if (is_running(report)) {
		fprintf(out, "The process went on after this snapshot.\n");
		return;
	}
	if (totals->tally.flags & INCSTACK__TRACEFILE_TALLY_EXEC) {
		fprintf(out, "The process became another program (exec).\n");
		return;
	}
	if (known && WIFEXITED(status) && WEXITSTATUS(status) != 0)
		fprintf(out, "The program exited with status %d.\n", WEXITSTATUS(status));
	if (known && WIFSIGNALED(status))
		print_signal(WTERMSIG(status), out);
	if (!(totals->tally.flags & INCSTACK__TRACEFILE_TALLY_PROCESS))
		print_unknown(totals, out);
	if (known ? WIFSIGNALED(status)
		  : !(totals->tally.flags & INCSTACK__TRACEFILE_TALLY_PROCESS))
		print_newest(report, out);
}
