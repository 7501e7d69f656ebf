/* Builds the second fence: the parts of the kernel that programs of a box do not reach. */
#include "config.h"

#include "box/fence.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "box/filter.h"

/* the capabilities that the box's root keeps: those of container engines, without devices and raw
 * sockets. CAP_SETFCAP lets a user namespace in the box have a root of its own */
static const unsigned kept[] = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL,
    CAP_NET_BIND_SERVICE, CAP_SETFCAP, CAP_SETGID, CAP_SETPCAP, CAP_SETUID, CAP_SYS_CHROOT};

/* Numbers of system calls above this one fail with ENOSYS: the calls came after Linux 6.13, and are
 * not reviewed here. From 424 on a call has the same number on every processor. */
#define LAST_CALL 466u

static int
load(struct sock_filter *code, size_t n, struct hr_err *err)
{
	const struct sock_fprog program = {(unsigned short)n, code};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0
		   ? 0
		   : hr_err_sys(err, errno, "load the filter of system calls");
}

/* Loads the filter of the listed calls, and one of the calls of later kernels, which libseccomp has
 * no names for. */
static int
filter_calls(struct hr_err *err)
{
	struct sock_filter later[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~0x40000000u), /* x32 sets this bit */
	    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, LAST_CALL, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};

	return load(box_filter, sizeof(box_filter) / sizeof(*box_filter), err) < 0
		   ? -1
		   : load(later, sizeof(later) / sizeof(*later), err);
}

static uint64_t
kept_mask(void)
{
	uint64_t mask = 0;
	size_t i;

	for (i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		mask |= UINT64_C(1) << kept[i];
	return mask;
}

/* Drops capabilities by system calls: to load libcap would take 0.1 ms of each start of a box. */
static int
drop_capabilities(struct hr_err *err)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0, 0, 0}};
	const uint64_t mask = kept_mask();
	unsigned i;

	/* EINVAL: the kernel has no such capability */
	for (i = 0; i < 64; i++)
		if ((mask >> i & 1) == 0 && prctl(PR_CAPBSET_DROP, i, 0, 0, 0) != 0 &&
		    errno != EINVAL)
			return hr_err_sys(err, errno, "drop a capability");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
		return hr_err_sys(err, errno, "drop ambient capabilities");
	for (i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		data[i].permitted = data[i].effective = (uint32_t)(mask >> 32 * i);
	return syscall(SYS_capset, &head, data) == 0 ? 0
						     : hr_err_sys(err, errno, "drop capabilities");
}

/* ---- Landlock ---- */

#define LANDLOCK_ABI_SCOPES 6 /* the first version with scopes, of Linux 6.12 */

/* The struct as <linux/landlock.h> of that version defines it. */
struct landlock_scopes {
	uint64_t access_fs, access_net, scoped;
};
#define SCOPE_ABSTRACT_UNIX_SOCKET 1u
#define SCOPE_SIGNAL 2u

static int
landlock_abi(void)
{
	return (int)syscall(
	    SYS_landlock_create_ruleset, NULL, 0, 1u /* LANDLOCK_CREATE_RULESET_VERSION */);
}

/* Applies Landlock's scopes. Abstract sockets belong to a network namespace, which a box may share
 * with the host. */
static int
scope(struct hr_err *err)
{
	const struct landlock_scopes rules = {.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL};
	HR_CLOSE int fd = -1;

	if (landlock_abi() < LANDLOCK_ABI_SCOPES)
		return 0; /* box_fence_explain() reports it */
	fd = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0u);
	if (fd < 0 || syscall(SYS_landlock_restrict_self, fd, 0u) < 0)
		return hr_err_sys(err, errno, "Landlock");
	return 0;
}

int
box_fence_raise(struct hr_err *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return hr_err_sys(err, errno, "no_new_privs");
	if (scope(err) < 0 || drop_capabilities(err) < 0)
		return -1;
	return filter_calls(err);
}

void
box_fence_explain(struct hr_buf *b)
{
	hr_buf_addf(b,
	    "Its programs gain no rights by set-uid programs, have at most %zu capabilities, and "
	    "%zu system calls fail.\n",
	    sizeof(kept) / sizeof(*kept), (size_t)BOX_FILTER_NAMES);
	if (landlock_abi() >= LANDLOCK_ABI_SCOPES)
		hr_buf_adds(b, "Landlock keeps its programs from abstract sockets and processes "
			       "outside.\n");
}

void
box_fence_lacks(struct hr_buf *b)
{
	if (landlock_abi() < LANDLOCK_ABI_SCOPES)
		hr_buf_adds(b, "This kernel's Landlock has no scopes (Linux 6.12): with the host's "
			       "network, abstract sockets of the host can be reached.\n");
}
