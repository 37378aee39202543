/* SPDX-License-Identifier: MIT
 *
 * The broker's end of the channel.
 */
#ifndef INCSTACK_TOOL_JAIL_CHANNEL_H
#define INCSTACK_TOOL_JAIL_CHANNEL_H

#include "jail.h"

/* Does not wait. Returns the size of the message; 0: the worker has closed its end; -1: there is no
 * message. */
ssize_t tool_jail_receive(int channel, struct tool_jail_request *request, bool *is_whole);

/* Does not wait. Returns -1 if the worker does not take the answer. */
int tool_jail_answer(int channel, struct tool_jail_served *served);

#endif
