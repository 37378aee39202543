/* SPDX-License-Identifier: MIT
 *
 * Gives up the rights of a process: another user, namespaces with nothing in them, no capabilities.
 * What the system does not permit is left out, as in a container; only the system calls' filter is
 * always there.
 */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail.h"

enum { NOBODY = 65534 };

/* A root directory with nothing in it. */
static void empty_root(void)
{
	static const unsigned long flags =
		MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME;

	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", "/tmp", "tmpfs", flags, "size=4k") != 0)
		return;
	if (chroot("/tmp") != 0 || chdir("/") != 0) {
		/* The filter lets nothing be opened anyway. */
	}
}

/* An ordinary user may make the others only in a user namespace, if at all. */
static void leave_namespaces(void)
{
	const int own = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET;

	if (unshare(geteuid() == 0 ? own : CLONE_NEWUSER | own) == 0)
		empty_root();
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &head, none) == 0 ? 0 : errno;
}

int tool_jail_rights(bool *is_other_user)
{
	const bool is_root = geteuid() == 0;

	leave_namespaces();
	for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0;
	     capability++)
		prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
	*is_other_user =
		!is_root || (setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
			     setresuid(NOBODY, NOBODY, NOBODY) == 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return errno;
	return drop_capabilities();
}
