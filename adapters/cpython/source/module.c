/* SPDX-License-Identifier: MIT
 *
 * The module incstack._incstack: what the package of Python calls.
 */
#include "frames/frames.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <incstack/error.h>
#include <incstack/version.h>

#include "allocators.h"
#include "lock.h"
#include "output.h"

static struct timespec began, began_clock;
static uint64_t duration;

static uint64_t ns_of(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

static uint64_t ns_since(const struct timespec *then)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return ns_of(&now) - ns_of(then);
}

static PyObject *fail(int error)
{
	if (error == INCSTACK_ENOMEM)
		return PyErr_NoMemory();
	if (error == INCSTACK_EIO)
		return PyErr_SetFromErrno(PyExc_OSError);
	return PyErr_Format(PyExc_RuntimeError, "the profile cannot be written: %s",
			    incstack_error_text(error));
}

static PyObject *start(PyObject *self, PyObject *arguments)
{
	int check, is_traced;
	(void)self;
	if (!PyArg_ParseTuple(arguments, "pp", &check, &is_traced))
		return NULL;
	if (recording_is_on())
		return PyErr_Format(PyExc_RuntimeError,
				    "a recording is in progress: call incstack.stop() first");
	if (!recording_start(check ? RECORDING_CHECKED : RECORDING_BLOCKS))
		return PyErr_NoMemory();
	clock_gettime(CLOCK_MONOTONIC, &began);
	clock_gettime(CLOCK_REALTIME, &began_clock);
	if (allocators_install(is_traced))
		Py_RETURN_NONE;
	allocators_remove();
	recording_stop();
	return PyErr_Format(PyExc_RuntimeError,
			    "tracemalloc is at work in a way that incstack does not know: stop "
			    "tracemalloc, or start incstack before tracemalloc");
}

static PyObject *stop(PyObject *self, PyObject *unused)
{
	(void)self, (void)unused;
	if (!recording_is_on())
		return PyErr_Format(PyExc_RuntimeError,
				    "nothing is recorded: call incstack.start() first");
	duration = ns_since(&began);
	const bool are_called = allocators_are_called();
	allocators_remove();
	recording_stop();
	return PyBool_FromLong(are_called);
}

static PyObject *is_on(PyObject *self, PyObject *unused)
{
	(void)self, (void)unused;
	return PyBool_FromLong(recording_is_on());
}

static PyObject *counts(PyObject *self, PyObject *unused)
{
	(void)self, (void)unused;
	lock_take();
	const struct recording_sums s = recording_sums;
	const struct threads_counts t = threads_counts;
	lock_give();
	return Py_BuildValue("{sKsKsKsKsKsKsKsKsKsKsKsKsK}", "bytes", s.bytes, "calls", s.calls,
			     "temporary", s.temporary, "live_bytes", s.live_bytes, "live_calls",
			     s.live_calls, "peak_bytes", s.peak_bytes, "samples", t.samples,
			     "walked", t.walked, "lost", t.lost + s.unknown, "compared", s.compared,
			     "mismatches", s.mismatches, "fired", t.fired, "foreign", t.foreign);
}

static PyObject *write_profile(PyObject *self, PyObject *arguments)
{
	int descriptor, format;
	unsigned int kind;
	const char *launcher;
	struct incstack_profile_meta meta = {.size = sizeof(meta), .mode = "heap"};
	(void)self;
	if (!PyArg_ParseTuple(arguments, "iiIss", &descriptor, &format, &kind, &launcher,
			      &meta.program))
		return NULL;
	meta.time_ns = ns_of(&began_clock);
	meta.duration_ns = recording_is_on() ? ns_since(&began) : duration;
	meta.lost = threads_counts.lost + recording_sums.unknown;
	const int copy = dup(descriptor);
	FILE *stream = copy < 0 ? NULL : fdopen(copy, "wb");
	if (!stream)
		return PyErr_SetFromErrno(PyExc_OSError);
	int error =
		output_write(stream, (enum incstack_profile_format)format, kind, launcher, &meta);
	if (fclose(stream) != 0 && !error)
		error = INCSTACK_EIO;
	if (error)
		return fail(error);
	Py_RETURN_NONE;
}

static PyObject *lines(PyObject *self, PyObject *unused)
{
	struct line *all;
	size_t count;
	(void)self, (void)unused;
	int error = output_lines(&all, &count);
	PyObject *list = error ? fail(error) : PyList_New(0);
	for (size_t i = 0; list && !error && i < count; i++) {
		const struct line *l = &all[i];
		PyObject *line = Py_BuildValue("(ssiKKKKKK)", l->name, l->file, (int)l->line,
					       l->bytes, l->calls, l->temporary, l->peak_bytes,
					       l->live_bytes, l->live_calls);
		if (!line || PyList_Append(list, line))
			Py_CLEAR(list);
		Py_XDECREF(line);
	}
	free(all);
	return list;
}

static PyObject *format_of(PyObject *self, PyObject *path)
{
	(void)self;
	const char *text = PyUnicode_AsUTF8(path);
	return text ? PyLong_FromLong(incstack_profile_format_of(text)) : NULL;
}

/* The frames of a context, the youngest first. */
static PyObject *frames_of(uint32_t context)
{
	PyObject *list = PyList_New(0);
	while (list && context >= CONTEXTS_FIRST) {
		lock_take();
		const struct context c = contexts[context];
		const struct code code = *codes_at(c.code);
		lock_give();
		PyObject *frame = Py_BuildValue("(ssi)", code.name, code.file, (int)c.line);
		if (!frame || PyList_Append(list, frame))
			Py_CLEAR(list);
		Py_XDECREF(frame);
		context = c.parent;
	}
	return list;
}

static PyObject *stack(PyObject *self, PyObject *unused)
{
	(void)self, (void)unused;
	return frames_of(recording_context(true));
}

static PyMethodDef functions[] = {
	{"start", start, METH_VARARGS, "start(check, is_traced): begins a recording."},
	{"stop", stop, METH_NOARGS,
	 "Ends the recording. Returns False if others have removed our allocators."},
	{"is_on", is_on, METH_NOARGS, "Whether a recording is in progress."},
	{"counts", counts, METH_NOARGS, "The sums of the recording."},
	{"write", write_profile, METH_VARARGS,
	 "write(fd, format, kind, launcher, program): writes the profile to a descriptor."},
	{"lines", lines, METH_NOARGS, "The sums of each line that has allocated."},
	{"format_of", format_of, METH_O, "The number of the format of a path; 0: none."},
	{"stack", stack, METH_NOARGS, "The stack of the caller, as the recording sees it."},
	{0}};

static int execute(PyObject *module)
{
	if (Py_Version >> 16 != PY_VERSION_HEX >> 16) {
		PyErr_Format(
			PyExc_ImportError,
			"this incstack was built for Python %d.%d: install incstack again with "
			"this Python's pip",
			PY_MAJOR_VERSION, PY_MINOR_VERSION);
		return -1;
	}
	if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
		PyErr_SetString(
			PyExc_ImportError,
			"import incstack in the main interpreter: a recording is of the whole "
			"process, with all subinterpreters");
		return -1;
	}
	char version[32];
	const int number = incstack_version();
	snprintf(version, sizeof(version), "%d.%d.%d", number / 10000, number / 100 % 100,
		 number % 100);
	return PyModule_AddStringConstant(module, "version", version);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)(uintptr_t)execute}, {0}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT,
				    "_incstack",
				    "The part of incstack that is written in C.",
				    0,
				    functions,
				    slots,
				    NULL,
				    NULL,
				    NULL};

PyMODINIT_FUNC PyInit__incstack(void);

PyMODINIT_FUNC PyInit__incstack(void)
{
	return PyModuleDef_Init(&module);
}
