/* SPDX-License-Identifier: MIT
 *
 * How the recorder opens files whose names others can guess. It follows no link and waits for
 * nothing.
 */
#ifndef INCSTACK_RECORDER_OPEN_H
#define INCSTACK_RECORDER_OPEN_H

#include <fcntl.h>

#define INCSTACK__RECORD_OPEN (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

#endif
