/* SPDX-License-Identifier: MIT
 *
 * The field numbers of pprof's profile.proto that are read or written.
 */
#ifndef INCSTACK_PROFILE_PPROF_H
#define INCSTACK_PROFILE_PPROF_H

enum { INCSTACK__VARINT_MAX = 10 }; /* bytes */

enum {
	PPROF_SAMPLE_TYPE = 1,
	PPROF_SAMPLE = 2,
	PPROF_LOCATION = 4,
	PPROF_FUNCTION = 5,
	PPROF_STRING = 6,
	PPROF_TIME = 9,
	PPROF_DURATION = 10,
	PPROF_COMMENT = 13,
};

enum {
	PPROF_SAMPLE_LOCATION = 1,
	PPROF_SAMPLE_VALUE = 2,
};

enum {
	PPROF_LOCATION_ID = 1,
	PPROF_LOCATION_ADDRESS = 3,
	PPROF_LOCATION_LINE = 4,
};

enum {
	PPROF_LINE_FUNCTION = 1,
	PPROF_LINE_LINE = 2,
};

#endif
