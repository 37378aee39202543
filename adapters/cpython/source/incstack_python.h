/* SPDX-License-Identifier: MIT
 *
 * What the extension module offers to other C code of the process, for example a recorder that has its own
 * events: the stack of Python's frames as one number. The functions are found by dlsym, once the module is loaded.
 *
 * Errors are those of incstack/error.h.
 */
#ifndef INCSTACK_PYTHON_H
#define INCSTACK_PYTHON_H

#include <stdint.h>

/* Changes when a user of this header must be changed. */
#define INCSTACK_PYTHON_ABI 1

/* Returns INCSTACK_PYTHON_ABI of the module.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
int incstack_python_abi(void);

/* Begins to number contexts, if no recording is in progress. Errors: EBUSY, ENOMEM.
 * The end of the life of a code object is noticed in Python's allocators, where this puts functions.
 * Thread: any that has Python's lock. Signal: no. Allocates: malloc. Blocks: for moments. */
int incstack_python_open(void);

/* Ends it. The contexts stay until the next open.
 * Thread: any that has Python's lock. Signal: no. Allocates: never. Blocks: for moments. */
void incstack_python_close(void);

/* Returns the number of the context in which the calling thread runs: all its frames of Python, each with the place
 * of its call. Contexts that are equal have one number. 0: the thread runs no Python, or nothing is open. It needs
 * not have Python's lock. It costs what the frames cost that are new since the last call of this thread.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: for moments. */
uint32_t incstack_python_context(void);

/* A context: its youngest frame, and the context of the caller. */
struct incstack_python_context {
	uint32_t parent;  /* 0: none */
	int32_t line;     /* 0: unknown */
	const char *name; /* of the function, qualified, UTF-8; valid until the next open */
	const char *file; /* the same */
	int is_entry; /* C code has called the frame: a C frame of the interpreter's loop runs it and the
			   * frames that it calls, up to the next one with this mark */
};

/* Describes a context. Errors: EINVAL: there is none with this number.
 * Thread: any. Signal: no. Allocates: never. Blocks: for moments. */
int incstack_python_describe(uint32_t number, struct incstack_python_context *context);

#endif
