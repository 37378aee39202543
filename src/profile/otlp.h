/* SPDX-License-Identifier: MIT
 *
 * The field numbers of OpenTelemetry's profiles.proto (v1development, 1.11.0) that are read or written.
 */
#ifndef INCSTACK_PROFILE_OTLP_H
#define INCSTACK_PROFILE_OTLP_H

enum {
	OTLP_RESOURCE_PROFILES = 1, /* of the outermost message */
	OTLP_DICTIONARY = 2,
};

/* The tables of the dictionary. Element 0 of each stands for "none". */
enum {
	OTLP_MAPPINGS = 1,
	OTLP_LOCATIONS = 2,
	OTLP_FUNCTIONS = 3,
	OTLP_LINKS = 4,
	OTLP_STRINGS = 5,
	OTLP_ATTRIBUTES = 6,
	OTLP_STACKS = 7,
	OTLP_TABLES = 8,
};

enum {
	OTLP_RESOURCE = 1, /* of resource profiles */
	OTLP_SCOPE_PROFILES = 2,
};

enum {
	OTLP_SCOPE = 1, /* of scope profiles */
	OTLP_PROFILES = 2,
};

enum {
	OTLP_SCOPE_NAME = 1,
	OTLP_SCOPE_VERSION = 2,
	OTLP_SCOPE_ATTRIBUTES = 3,
};

enum {
	OTLP_RESOURCE_ATTRIBUTES = 1,
};

/* A key and a value outside of the dictionary. */
enum {
	OTLP_KEY = 1,
	OTLP_VALUE = 2,
};

enum {
	OTLP_ANY_STRING = 1,
	OTLP_ANY_NUMBER = 3,
};

enum {
	OTLP_PROFILE_TYPE = 1,
	OTLP_PROFILE_SAMPLES = 2,
	OTLP_PROFILE_TIME = 3, /* fixed64 */
	OTLP_PROFILE_DURATION = 4,
	OTLP_PROFILE_PERIOD_TYPE = 5,
	OTLP_PROFILE_PERIOD = 6,
};

enum {
	OTLP_SAMPLE_STACK = 1,
	OTLP_SAMPLE_ATTRIBUTES = 2,
	OTLP_SAMPLE_VALUES = 4,
	OTLP_SAMPLE_TIMESTAMPS = 5,
};

enum {
	OTLP_TYPE_NAME = 1,
	OTLP_TYPE_UNIT = 2,
};

enum {
	OTLP_MAPPING_START = 1,
	OTLP_MAPPING_LIMIT = 2,
	OTLP_MAPPING_OFFSET = 3,
	OTLP_MAPPING_FILE = 4,
	OTLP_MAPPING_ATTRIBUTES = 5,
};

enum {
	OTLP_LOCATION_MAPPING = 1,
	OTLP_LOCATION_ADDRESS = 2,
	OTLP_LOCATION_LINES = 3,
};

enum {
	OTLP_LINE_FUNCTION = 1,
	OTLP_LINE_LINE = 2,
};

enum {
	OTLP_FUNCTION_NAME = 1,
	OTLP_FUNCTION_SYSTEM_NAME = 2,
	OTLP_FUNCTION_FILE = 3,
	OTLP_FUNCTION_START_LINE = 4,
};

enum {
	OTLP_ATTRIBUTE_KEY = 1,
	OTLP_ATTRIBUTE_VALUE = 2,
	OTLP_ATTRIBUTE_UNIT = 3,
};

/* The names that OpenTelemetry has for a mapping's build-id, and for a sample's thread. */
#define INCSTACK__OTLP_BUILD_ID "process.executable.build_id.gnu"
#define INCSTACK__OTLP_THREAD_NAME "thread.name"
#define INCSTACK__OTLP_THREAD_ID "thread.id"

#endif
