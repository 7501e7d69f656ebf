/* Builds the second fence: the parts of the kernel that programs of a box do not reach. */
#include "config.h"

#include "box/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

/* the capabilities that the box's root keeps: those of container engines, without devices and raw
 * sockets. CAP_SETFCAP lets a user namespace in the box have a root of its own */
static const cap_value_t kept[] = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL,
    CAP_NET_BIND_SERVICE, CAP_SETFCAP, CAP_SETGID, CAP_SETPCAP, CAP_SETUID, CAP_SYS_CHROOT};

/* The system calls that fail with EPERM in a box. They act on the machine as a whole, or have been
 * the way out of containers. Namespaces of one's own stay possible: browsers make their sandbox of
 * them. A name that libseccomp does not know is skipped: this processor has no such call, or the
 * call is above LAST_CALL. */
static const char *const refused[] = {
    /* the machine: clock, kernel, power, swap, accounting */
    "acct", "adjtimex", "clock_adjtime", "clock_adjtime64", "clock_settime", "clock_settime64",
    "create_module", "delete_module", "finit_module", "get_kernel_syms", "init_module", "ioperm",
    "iopl", "kexec_file_load", "kexec_load", "lookup_dcookie", "nfsservctl", "pciconfig_iobase",
    "pciconfig_read", "pciconfig_write", "query_module", "quotactl", "quotactl_fd", "reboot",
    "s390_pci_mmio_read", "s390_pci_mmio_write", "setdomainname", "sethostname", "settimeofday",
    "stime", "swapoff", "swapon", "sysfs", "syslog", "uselib", "ustat", "vhangup", "vm86",
    "vm86old",
    /* a way past the rules for sockets, whose arguments it has in memory: an old one of 32 bits */
    "socketcall",
    /* keys, which are not separated by namespaces */
    "add_key", "keyctl", "request_key",
    /* large or often broken parts of the kernel */
    "bpf", "fanotify_init", "fanotify_mark", "io_uring_enter", "io_uring_register",
    "io_uring_setup", "perf_event_open", "userfaultfd",
    /* files by handles, and file systems */
    "fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr", "move_mount",
    "name_to_handle_at", "open_by_handle_at", "open_tree", "open_tree_attr", "pivot_root", "umount",
    "umount2",
    /* other processes' descriptors and memory, by other ways than a debugger's */
    "kcmp", "mbind", "migrate_pages", "move_pages", "pidfd_getfd", "set_mempolicy",
    "set_mempolicy_home_node", "setns"};

/* The families of sockets that a box may make; all others fail with EPERM. AF_VSOCK reaches the
 * host of a virtual machine past every namespace, and the kernel loads the module of any family for
 * any program that asks: large parts that no program of a box needs. */
static const unsigned families[] = {AF_UNSPEC, AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
#define FAMILIES 64 /* the kernel knows fewer, and refuses larger numbers itself */
/* The protocols of AF_NETLINK that fail with EPERM: a namespace of users would open them. */
static const unsigned netlinks[] = {NETLINK_NETFILTER, NETLINK_XFRM};

/* The options of sockets by which root of a namespace of users replaces the tables of a firewall,
 * which has been a way into the kernel: those of iptables, ip6tables, arptables and ebtables. */
static const unsigned tables[][2] = {{IPPROTO_IP, 64}, {IPPROTO_IP, 65}, {IPPROTO_IPV6, 64},
    {IPPROTO_IPV6, 65}, {IPPROTO_IP, 96}, {IPPROTO_IP, 97}, {IPPROTO_IP, 128}, {IPPROTO_IP, 129}};

/* Numbers of system calls above this one fail with ENOSYS: the calls came after Linux 6.13, and are
 * not reviewed here. From 424 on a call has the same number on every processor. */
#define LAST_CALL 466u

static int
refuse(scmp_filter_ctx filter, int call, unsigned n, struct scmp_arg_cmp *args, struct hr_err *err)
{
	int r = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), call, n, args);

	return r == 0 ? 0 : hr_err_sys(err, -r, "the filter of system calls");
}

static struct scmp_arg_cmp
low_bits(unsigned arg, unsigned value)
{
	return (struct scmp_arg_cmp){
	    .arg = arg, .op = SCMP_CMP_MASKED_EQ, .datum_a = UINT32_MAX, .datum_b = value};
}

static bool
is_permitted(unsigned family)
{
	size_t i;

	for (i = 0; i < sizeof(families) / sizeof(*families); i++)
		if (families[i] == family)
			return true;
	return false;
}

static int
refuse_calls(scmp_filter_ctx filter, struct hr_err *err)
{
	/* The first two type into a terminal, or read the console. The others make subvolumes,
	 * which snapshots of the box would lack. */
	static const unsigned requests[] = {TIOCSTI, TIOCLINUX, BTRFS_IOC_SUBVOL_CREATE,
	    BTRFS_IOC_SUBVOL_CREATE_V2, BTRFS_IOC_SNAP_CREATE, BTRFS_IOC_SNAP_CREATE_V2};
	unsigned f;
	size_t i;
	int call;

	for (i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		call = seccomp_syscall_resolve_name(refused[i]);
		if (call != __NR_SCMP_ERROR && refuse(filter, call, 0, NULL, err) < 0)
			return -1;
	}
	/* the kernel takes 32 bits of each of these arguments */
	for (i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		struct scmp_arg_cmp a = low_bits(1, requests[i]);

		if (refuse(filter, SCMP_SYS(ioctl), 1, &a, err) < 0)
			return -1;
	}
	for (f = 0; f < FAMILIES; f++) {
		struct scmp_arg_cmp a = low_bits(0, f);

		if (!is_permitted(f) && refuse(filter, SCMP_SYS(socket), 1, &a, err) < 0)
			return -1;
	}
	for (i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		struct scmp_arg_cmp a[] = {low_bits(1, tables[i][0]), low_bits(2, tables[i][1])};

		if (refuse(filter, SCMP_SYS(setsockopt), 2, a, err) < 0)
			return -1;
	}
	for (i = 0; i < sizeof(netlinks) / sizeof(*netlinks); i++) {
		struct scmp_arg_cmp a[] = {low_bits(0, AF_NETLINK), low_bits(2, netlinks[i])};

		if (refuse(filter, SCMP_SYS(socket), 2, a, err) < 0)
			return -1;
	}
	return 0;
}

/* Refuses the calls of later kernels, which libseccomp has no names for. */
static int
refuse_later_calls(struct hr_err *err)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~0x40000000u), /* x32 sets this bit */
	    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, LAST_CALL, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	const struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0
		   ? 0
		   : hr_err_sys(err, errno, "load the filter of later system calls");
}

int
box_fence_filter(struct hr_err *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	HR_CLOSE int fd = -1;
	int r;

	if (filter == NULL)
		return hr_err_nomem(err);
	/* the other calling conventions of this processor would be ways around the filter */
	if (seccomp_arch_native() == SCMP_ARCH_X86_64 &&
	    (seccomp_arch_add(filter, SCMP_ARCH_X86) != 0 ||
		seccomp_arch_add(filter, SCMP_ARCH_X32) != 0)) {
		seccomp_release(filter);
		return hr_err_set(err, HR_E_SYS, "the filter of system calls: x86 and x32");
	}
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	r = refuse_calls(filter, err);
	if (r == 0) {
		fd = memfd_create("filter", MFD_CLOEXEC);
		r = fd < 0 ? -errno : seccomp_export_bpf(filter, fd);
		if (r != 0)
			r = hr_err_sys(err, -r, "make the filter of system calls");
	}
	seccomp_release(filter);
	if (r != 0)
		return -1;
	r = fd;
	fd = -1; /* the caller's now */
	return r;
}

/* Loads the program of box_fence_filter(). */
static int
filter_calls(int fd, struct hr_err *err)
{
	struct sock_filter code[BPF_MAXINSNS];
	const ssize_t n = pread(fd, code, sizeof(code), 0);
	const struct sock_fprog program = {(unsigned short)(n / (ssize_t)sizeof(*code)), code};

	if (n <= 0 || (size_t)n % sizeof(*code) != 0)
		return hr_err_set(err, HR_E_SYS, "the filter of system calls is damaged");
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0
		   ? 0
		   : hr_err_sys(err, errno, "load the filter of system calls");
}

static int
drop_capabilities(struct hr_err *err)
{
	const int n = (int)(sizeof(kept) / sizeof(*kept));
	cap_t c;
	cap_value_t v;
	bool keep;
	int i, r;

	for (v = 0; v <= CAP_LAST_CAP; v++) {
		keep = false;
		for (i = 0; i < n; i++)
			keep = keep || kept[i] == v;
		if (!keep && prctl(PR_CAPBSET_DROP, v, 0, 0, 0) != 0 && errno != EINVAL)
			return hr_err_sys(err, errno, "drop a capability");
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
		return hr_err_sys(err, errno, "drop ambient capabilities");
	c = cap_init();
	if (c == NULL)
		return hr_err_nomem(err);
	r = cap_set_flag(c, CAP_PERMITTED, n, kept, CAP_SET) != 0 ||
		    cap_set_flag(c, CAP_EFFECTIVE, n, kept, CAP_SET) != 0 || cap_set_proc(c) != 0
		? hr_err_sys(err, errno, "drop capabilities")
		: 0;
	(void)cap_free(c);
	return r;
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
box_fence_raise(int filter, struct hr_err *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return hr_err_sys(err, errno, "no_new_privs");
	if (scope(err) < 0 || drop_capabilities(err) < 0)
		return -1;
	return filter_calls(filter, err) < 0 ? -1 : refuse_later_calls(err);
}

void
box_fence_explain(struct hr_buf *b)
{
	hr_buf_addf(b,
	    "Its programs gain no rights by set-uid programs, have at most %zu capabilities, and "
	    "%zu system calls fail.\n",
	    sizeof(kept) / sizeof(*kept), sizeof(refused) / sizeof(*refused));
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
