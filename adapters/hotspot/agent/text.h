/* SPDX-License-Identifier: MIT
 *
 * Names of the JVM as names in a profile. Knows nothing of the JVM's functions.
 */
#ifndef AGENT_TEXT_H
#define AGENT_TEXT_H

#include <stddef.h>

/* "Ljava/util/List;" and "get" become "java.util.List.get". The address in the name of a hidden
 * class ("A$$Lambda$1.0x00007f00") is left out, because it differs in each run. Returns null
 * without memory. The caller frees it. */
char *agent_method_name(const char *class_signature, const char *method);

/* Makes modified UTF-8, the JVM's, valid UTF-8 in place: pairs of surrogates become one
 * character, and what is none becomes '?'. Control characters become '?', too. */
void agent_text_repair(char *text);

#endif
