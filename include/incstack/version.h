/* SPDX-License-Identifier: MIT
 *
 * The version of the library, at compile time and at run time, and the two
 * macros that every public declaration uses.
 */
#ifndef INCSTACK_VERSION_H
#define INCSTACK_VERSION_H

/* Changes when a program that uses the library must be changed. */
#define INCSTACK_VERSION_MAJOR 0
/* Changes when something is added. */
#define INCSTACK_VERSION_MINOR 1
/* Changes when something is repaired. */
#define INCSTACK_VERSION_PATCH 0

/* The version as one number: 10203 is 1.2.3. */
#define INCSTACK_VERSION \
	(INCSTACK_VERSION_MAJOR * 10000 + INCSTACK_VERSION_MINOR * 100 + INCSTACK_VERSION_PATCH)

/* Empty in a static build, so that a host library that contains the archive exports
 * none of its symbols. */
#if defined(INCSTACK_SHARED)
#define INCSTACK_API __attribute__((visibility("default")))
#else
#define INCSTACK_API
#endif

#ifdef __cplusplus
#define INCSTACK_BEGIN_C extern "C" { /* begins declarations with the linkage of C */
#define INCSTACK_END_C }              /* ends them */
#else
#define INCSTACK_BEGIN_C /* begins declarations with the linkage of C */
#define INCSTACK_END_C   /* ends them */
#endif

INCSTACK_BEGIN_C

/* Returns INCSTACK_VERSION of the linked library.
 * Thread: any. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_version(void);

INCSTACK_END_C

#endif
