/* SPDX-License-Identifier: MIT
 *
 * Tests the recorder's trace file. If recording cannot begin, there is no new file, and an
 * existing one is unchanged. If a write fails, that is noted once, and nothing more is written.
 */
#include <check.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>

#include "refused.h"

#include "record_file.h"
#include "run_suite.h"

static void limit_files(rlim_t bytes)
{
	const struct rlimit limit = {bytes, RLIM_INFINITY};

	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static int is_noted(enum incstack__tracefile_note note)
{
	return incstack__recording.slots[0].notes >> note & 1;
}

START_TEST(begun_and_ended)
{
	static const char block[] = "a block";
	char read_back[sizeof(block)];
	int fd;

	incstack__recording.why = 4;
	ck_assert_int_eq(incstack__record_open(path), 0);
	ck_assert_uint_eq(spools, 1);
	ck_assert_str_eq(incstack__recording.path, path);
	ck_assert_int_eq(size_of_file(), INCSTACK__TRACEFILE_START);
	ck_assert_uint_eq(incstack__recording.slots[0].notes, 4);
	ck_assert_int_eq(incstack__record_write(block, sizeof(block)), 0);
	ck_assert_int_eq(size_of_file(), INCSTACK__TRACEFILE_START + sizeof(block));
	fd = open(path, O_RDONLY);
	ck_assert_int_eq(pread(fd, read_back, sizeof(block), INCSTACK__TRACEFILE_START),
			 sizeof(block));
	ck_assert_str_eq(read_back, block);
	close(fd);
	incstack__record_close();
	ck_assert_ptr_null(incstack__recording.slots);
	ck_assert_int_eq(incstack__recording.fd, -1);
}
END_TEST

/* The rest of a block follows that the kernel wrote only in part, as it does on a nearly full
 * disk. */
START_TEST(written_in_parts)
{
	static char block[] = "a block in three parts, of which the second is empty";
	struct iovec parts[] = {{block, 9}, {block, 0}, {block + 9, sizeof(block) - 9}};
	char read_back[sizeof(block)];
	int fd;

	ck_assert_int_eq(incstack__record_open(path), 0);
	refuse("writev", 0, (unsigned)_i, 0);
	ck_assert_int_eq(incstack__record_write_parts(parts, 3), 0);
	ck_assert_uint_eq(refusal.calls, (unsigned)_i + 1);
	ck_assert_int_eq(size_of_file(), INCSTACK__TRACEFILE_START + sizeof(block));
	fd = open(path, O_RDONLY);
	ck_assert_int_eq(pread(fd, read_back, sizeof(block), INCSTACK__TRACEFILE_START),
			 sizeof(block));
	ck_assert_str_eq(read_back, block);
	close(fd);
	ck_assert_uint_eq(incstack__recording.slots[0].notes, 0);
	incstack__record_close();
}
END_TEST

/* Another run writes to this file. */
START_TEST(file_of_another_run)
{
	const uint64_t magic = INCSTACK__TRACEFILE_MAGIC;
	const int fd = open(path, O_RDWR | O_CREAT, 0666);

	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	ck_assert_int_eq(write(fd, &magic, sizeof(magic)), sizeof(magic));
	ck_assert_int_eq(incstack__record_open(path), -1);
	ck_assert_int_eq(incstack__recording.fd, -1);
	ck_assert_uint_eq(spools, 0);
	ck_assert_int_eq(size_of_file(), sizeof(magic));
	close(fd); /* that run has ended: what it left is overwritten */
	ck_assert_int_eq(incstack__record_open(path), 0);
	ck_assert_int_eq(size_of_file(), INCSTACK__TRACEFILE_START);
	incstack__record_close();
}
END_TEST

/* A file that is no trace file stays, and a link is not followed: others can guess the name. */
START_TEST(what_is_not_ours_stays)
{
	const int fd = open(path, O_RDWR | O_CREAT, 0666);
	char other[sizeof(path) + 2];

	ck_assert_int_eq(write(fd, path, sizeof(path)), sizeof(path));
	ck_assert_int_eq(incstack__record_open(path), -1);
	ck_assert_int_eq(size_of_file(), sizeof(path));
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	close(fd);
	snprintf(other, sizeof(other), "%s.2", path);
	ck_assert_int_eq(link(path, other),
			 0); /* one that has another name may be of somebody else */
	ck_assert_int_eq(incstack__record_open(path), -1);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(symlink(other, path), 0);
	ck_assert_int_eq(incstack__record_open(path), -1);
	ck_assert_int_eq(size_of_file(), 0);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkfifo(path, 0666), 0);
	ck_assert_int_eq(incstack__record_open(path), -1);
	ck_assert_uint_eq(spools, 0);
	unlink(other);
}
END_TEST

/* A file that cannot be emptied is no trace file, and stays. */
START_TEST(what_is_no_file_stays)
{
	ck_assert_int_eq(symlink("/dev/null", path), 0);
	ck_assert_int_eq(incstack__record_open(path), -1);
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert_uint_eq(spools, 0);
}
END_TEST

/* The header alone would be too long. */
START_TEST(limit_before_the_start)
{
	limit_files(INCSTACK__TRACEFILE_START - 1);
	ck_assert_int_eq(incstack__record_open(path), -1);
	ck_assert_int_eq(size_of_file(), -1);
	limit_files(INCSTACK__TRACEFILE_START);
	ck_assert_int_eq(incstack__record_open(path), 0);
	incstack__record_close();
}
END_TEST

/* At the limit to the byte, then one byte beyond it: no signal comes, and no block may follow one
 * that is missing. */
START_TEST(limit_while_recording)
{
	static const char block[100];

	ck_assert_int_eq(incstack__record_open(path), 0);
	limit_files(INCSTACK__TRACEFILE_START + sizeof(block));
	ck_assert_int_eq(incstack__record_write(block, sizeof(block)), 0);
	ck_assert_int_eq(is_noted(INCSTACK__NOTE_FILE_LIMIT), 0);
	ck_assert_int_eq(incstack__record_write(block, 1), -1);
	ck_assert_int_eq(is_noted(INCSTACK__NOTE_FILE_LIMIT), 1);
	limit_files(RLIM_INFINITY);
	ck_assert_int_eq(incstack__record_write(block, 1), -1);
	ck_assert_int_eq(size_of_file(), INCSTACK__TRACEFILE_START + sizeof(block));
	incstack__record_close();
}
END_TEST

/* The program closed the descriptor, and took the file away. */
START_TEST(file_that_is_gone)
{
	ck_assert_int_eq(incstack__record_open(path), 0);
	close(incstack__recording.fd);
	ck_assert_int_eq(incstack__record_write(path, 1), 0); /* it is opened again */
	close(incstack__recording.fd);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(incstack__record_write(path, 1), -1);
	ck_assert_int_eq(is_noted(INCSTACK__NOTE_FILE_CLOSED), 1);
	ck_assert_int_eq(is_noted(INCSTACK__NOTE_FILE_LIMIT), 0);
	incstack__record_close();
}
END_TEST

/* ---- system calls that are refused ------------------------------------------------------- */

static const struct {
	const char *call;
	unsigned number;
	int error;
	bool begins;
} refusals[] = {
	{"open", 0, EACCES, false},       {"fcntl", 0, EMFILE, true}, /* it keeps its number */
	{"flock", 0, ENOLCK, true},                                   /* there are no locks */
	{"flock", 0, EWOULDBLOCK, false}, {"fstat", 0, EIO, false},
	{"open", 1, EACCES, true}, /* no command in the header */
	{"read", 0, EIO, true},           {"fstat", 1, EIO, false},
	{"writev", 0, ENOSPC, false},     {"writev", 0, EINTR, true},
	{"fallocate", 0, ENOSPC, false},  {"mmap", 0, ENOMEM, false},
	{"getrlimit", 0, EPERM, true},    {"getrlimit", 1, EPERM, true},
};

START_TEST(refused_at_the_start)
{
	refuse(refusals[_i].call, refusals[_i].number, 1, refusals[_i].error);
	ck_assert_int_eq(incstack__record_open(path), refusals[_i].begins ? 0 : -1);
	ck_assert_uint_gt(refusal.calls, refusals[_i].number);
	refuse_nothing();
	ck_assert_uint_eq(spools, refusals[_i].begins);
	if (refusals[_i].begins) {
		ck_assert_int_eq(size_of_file(), INCSTACK__TRACEFILE_START);
		ck_assert_int_eq(incstack__record_write(path, 1), 0);
		ck_assert_int_eq(size_of_file(), INCSTACK__TRACEFILE_START + 1);
	} else {
		ck_assert_ptr_null(incstack__recording.slots);
		ck_assert_int_eq(incstack__recording.fd, -1);
	}
	incstack__record_close();
	ck_assert_int_eq(incstack__record_open(path), 0);
	incstack__record_close();
}
END_TEST

/* Only the first reason is reported. */
START_TEST(refused_writes)
{
	static const struct {
		int error;
		enum incstack__tracefile_note note;
	} wanted[] = {{ENOSPC, INCSTACK__NOTE_FILE_FULL},
		      {EFBIG, INCSTACK__NOTE_FILE_LIMIT},
		      {EDQUOT, INCSTACK__NOTE_FILE_QUOTA},
		      {EIO, INCSTACK__NOTE_FILE_ERROR},
		      {EBADF, INCSTACK__NOTE_FILE_ERROR}};
	sigset_t limit;

	sigemptyset(&limit);
	sigaddset(&limit, SIGXFSZ);
	ck_assert_int_eq(sigprocmask(SIG_BLOCK, &limit, NULL), 0);
	ck_assert_int_eq(incstack__record_open(path), 0);
	refuse("writev", 0, 1, EINTR);
	ck_assert_int_eq(incstack__record_write(path, 7), 0);
	ck_assert_int_eq(size_of_file(), INCSTACK__TRACEFILE_START + 7);
	raise(SIGXFSZ);
	refuse("writev", 0, 1, wanted[_i].error);
	ck_assert_int_eq(incstack__record_write(path, 1), -1);
	ck_assert_int_eq(sigpending(&limit), 0);
	ck_assert_int_eq(sigismember(&limit, SIGXFSZ), wanted[_i].error != EFBIG);
	ck_assert_uint_eq(incstack__recording.slots[0].notes, UINT64_C(1) << wanted[_i].note);
	ck_assert_int_eq(incstack__record_write(path, 1), -1);
	ck_assert_int_eq(give_up(INCSTACK__NOTE_FILE_CLOSED), -1);
	ck_assert_uint_eq(incstack__recording.slots[0].notes, UINT64_C(1) << wanted[_i].note);
	ck_assert_int_eq(size_of_file(), INCSTACK__TRACEFILE_START + 7);
	incstack__record_close();
}
END_TEST

/* What the file of the parent, or of the image before, says if there is no file. */
START_TEST(unrecorded)
{
	ck_assert_int_eq(incstack__record_unrecorded(ENOSPC), INCSTACK__NOTE_UNRECORDED_FULL);
	ck_assert_int_eq(incstack__record_unrecorded(EDQUOT), INCSTACK__NOTE_UNRECORDED_FULL);
	ck_assert_int_eq(incstack__record_unrecorded(EFBIG), INCSTACK__NOTE_UNRECORDED_LIMIT);
	ck_assert_int_eq(incstack__record_unrecorded(ENOMEM), INCSTACK__NOTE_UNRECORDED_MEMORY);
	ck_assert_int_eq(incstack__record_unrecorded(EMFILE), INCSTACK__NOTE_UNRECORDED_OPEN);
	ck_assert_int_eq(incstack__record_unrecorded(EROFS), INCSTACK__NOTE_UNRECORDED_RIGHTS);
	ck_assert_int_eq(incstack__record_unrecorded(EIO), INCSTACK__NOTE_UNRECORDED);
}
END_TEST

START_TEST(refused_memory)
{
	unsigned char *memory = incstack__record_map(4096);

	memory[4095] = 5;
	refuse("mmap", 0, 1, ENOMEM);
	ck_assert_ptr_null(incstack__record_map(4096));
	refuse("mremap", 0, 1, ENOMEM);
	ck_assert_ptr_null(incstack__record_remap(memory, 4096, 8192));
	memory = incstack__record_remap(memory, 4096, 8192);
	ck_assert_int_eq(memory[4095], 5);
	ck_assert_int_eq(memory[8191], 0);
	incstack__record_unmap(memory, 8192);
	incstack__record_unmap(NULL, 8192);
}
END_TEST

/* A note in the file of the parent, or of the image before, if that is a trace file. */
START_TEST(notes_for_others)
{
	static const char *const calls[] = {"open", "fstat", "mmap"};
	const int note = INCSTACK__NOTE_UNRECORDED;

	ck_assert_int_eq(incstack__record_open(path), 0);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		refuse(calls[i], 0, 1, EACCES);
		incstack__record_note_in(path, note);
		ck_assert_uint_eq(refusal.calls, 1);
		ck_assert_int_eq(is_noted(note), 0);
	}
	incstack__record_note_in(path, note);
	ck_assert_int_eq(is_noted(note), 1);
	incstack__record_close();
	ck_assert_int_eq(truncate(path, INCSTACK__TRACEFILE_HEADER_BYTES), 0);
	incstack__record_note_in(path, note); /* a store there would be a signal */
	ck_assert_int_eq(size_of_file(), INCSTACK__TRACEFILE_HEADER_BYTES);
}
END_TEST

/* ---- before exec -------------------------------------------------------------------------- */

/* The next image needs the right to write there. */
START_TEST(left_for_the_next_image)
{
	const int note = INCSTACK__NOTE_UNRECORDED;
	char *const file = incstack__recording.file;

	ck_assert_int_eq(incstack__record_open(path), 0);
	strcpy(file, path);
	incstack__record_note_unwritable();
	strcpy(file, "/trace");
	incstack__record_note_unwritable();
	ck_assert_int_eq(chdir(folder), 0);
	strcpy(file, "trace");
	incstack__record_note_unwritable();
	ck_assert_int_eq(is_noted(note), geteuid() == 0 ? 0 : is_noted(note));
	strcpy(file, "/no/such/folder/trace");
	incstack__recording.stopping = 1;
	incstack__record_note_unwritable();
	ck_assert_int_eq(is_noted(note), geteuid() == 0 ? 0 : is_noted(note));
	incstack__recording.stopping = 0;
	incstack__record_note_unwritable();
	ck_assert_int_eq(is_noted(note), 1);
	incstack__record_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("trace file of the recorder");
	TCase *files = tcase_create("files");

	tcase_add_checked_fixture(files, make_folder, remove_folder);
	tcase_add_test(files, begun_and_ended);
	tcase_add_loop_test(files, written_in_parts, 0, sizeof("a block in three"));
	tcase_add_test(files, file_of_another_run);
	tcase_add_test(files, what_is_not_ours_stays);
	tcase_add_test(files, what_is_no_file_stays);
	tcase_add_test(files, limit_before_the_start);
	tcase_add_test(files, limit_while_recording);
	tcase_add_test(files, file_that_is_gone);
	tcase_add_loop_test(files, refused_at_the_start, 0, sizeof(refusals) / sizeof(refusals[0]));
	tcase_add_loop_test(files, refused_writes, 0, 5);
	tcase_add_test(files, unrecorded);
	tcase_add_test(files, refused_memory);
	tcase_add_test(files, notes_for_others);
	tcase_add_test(files, left_for_the_next_image);
	suite_add_tcase(suite, files);
	return run_suite(suite);
}
