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

/* Turns the JVM's modified UTF-8 into valid UTF-8, in place. Pairs of surrogates become one
 * character. Bytes that form no character become '?', and so do control characters. */
void agent_text_repair(char *text);

#endif
