/* Prints the filter of the system calls of a box, as an array in C. libseccomp makes the filter
 * when handrail is built: the launcher would take a millisecond for it at the start of each box. */
#include "config.h"

#include <errno.h>
#include <linux/btrfs.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* The system calls that fail with EPERM in a box. They act on the machine as a whole, or have been
 * the way out of containers. Namespaces of one's own stay possible: browsers make their sandbox of
 * them. A name that libseccomp, of version 2.5.4 or later, does not know is skipped: this processor
 * has no such call, or the call is above LAST_CALL of fence.c. */
static const char *const refused[] = {
    /* the machine: clock, kernel, power, swap, accounting */
    "acct", "adjtimex", "clock_adjtime", "clock_adjtime64", "clock_settime", "clock_settime64",
    "create_module", "delete_module", "finit_module", "get_kernel_syms", "init_module", "ioperm",
    "iopl", "kexec_file_load", "kexec_load", "lookup_dcookie", "nfsservctl", "pciconfig_iobase",
    "pciconfig_read", "pciconfig_write", "query_module", "quotactl", "quotactl_fd", "reboot",
    "s390_pci_mmio_read", "s390_pci_mmio_write", "setdomainname", "sethostname", "settimeofday",
    "stime", "swapoff", "swapon", "sysfs", "syslog", "uselib", "ustat", "vhangup", "vm86",
    "vm86old",
    /* a way past the rules for sockets, whose arguments it has in memory: programs of 32 bits on
     * x86 that use it have no sockets */
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

/* Returns 0 or a negative error number, as libseccomp does. */
static int
refuse(scmp_filter_ctx filter, int call, unsigned n, struct scmp_arg_cmp *args)
{
	return seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), call, n, args);
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
refuse_calls(scmp_filter_ctx filter)
{
	/* The first two type into a terminal, or read the console. The others make subvolumes,
	 * which snapshots of the box would lack. */
	static const unsigned requests[] = {TIOCSTI, TIOCLINUX, BTRFS_IOC_SUBVOL_CREATE,
	    BTRFS_IOC_SUBVOL_CREATE_V2, BTRFS_IOC_SNAP_CREATE, BTRFS_IOC_SNAP_CREATE_V2};
	/* an old name of AF_PACKET, in the bits of the type that are no flags */
	struct scmp_arg_cmp packets[] = {low_bits(0, AF_INET),
	    {.arg = 1, .op = SCMP_CMP_MASKED_EQ, .datum_a = 0xf, .datum_b = SOCK_PACKET}};
	unsigned f;
	size_t i;
	int call, r = 0;

	for (i = 0; r == 0 && i < sizeof(refused) / sizeof(*refused); i++) {
		call = seccomp_syscall_resolve_name(refused[i]);
		if (call != __NR_SCMP_ERROR)
			r = refuse(filter, call, 0, NULL);
	}
	/* the kernel takes 32 bits of each of these arguments */
	for (i = 0; r == 0 && i < sizeof(requests) / sizeof(*requests); i++) {
		struct scmp_arg_cmp a = low_bits(1, requests[i]);

		r = refuse(filter, SCMP_SYS(ioctl), 1, &a);
	}
	for (f = 0; r == 0 && f < FAMILIES; f++) {
		struct scmp_arg_cmp a = low_bits(0, f);

		if (is_permitted(f))
			continue;
		r = refuse(filter, SCMP_SYS(socket), 1, &a);
		if (r == 0)
			r = refuse(filter, SCMP_SYS(socketpair), 1, &a);
	}
	if (r == 0)
		r = refuse(filter, SCMP_SYS(socket), 2, packets);
	for (i = 0; r == 0 && i < sizeof(tables) / sizeof(*tables); i++) {
		struct scmp_arg_cmp a[] = {low_bits(1, tables[i][0]), low_bits(2, tables[i][1])};

		r = refuse(filter, SCMP_SYS(setsockopt), 2, a);
	}
	for (i = 0; r == 0 && i < sizeof(netlinks) / sizeof(*netlinks); i++) {
		struct scmp_arg_cmp a[] = {low_bits(0, AF_NETLINK), low_bits(2, netlinks[i])};

		r = refuse(filter, SCMP_SYS(socket), 2, a);
	}
	return r;
}

/* Returns 0 or a negative error number. */
static int
fill(scmp_filter_ctx filter)
{
	/* the other calling conventions of this processor would be ways around the filter */
	if (seccomp_arch_native() == SCMP_ARCH_X86_64 &&
	    (seccomp_arch_add(filter, SCMP_ARCH_X86) != 0 ||
		seccomp_arch_add(filter, SCMP_ARCH_X32) != 0))
		return -EINVAL;
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return refuse_calls(filter);
}

/* Reads the program that libseccomp has written to `file`, and prints it. */
static int
print(FILE *file)
{
	struct sock_filter code;

	rewind(file);
	(void)printf("/* printed by src/box/mkfilter.c */\n"
		     "#define BOX_FILTER_NAMES %zu\n"
		     "static struct sock_filter box_filter[] = {\n",
	    sizeof(refused) / sizeof(*refused));
	while (fread(&code, sizeof(code), 1, file) == 1)
		(void)printf("\t{%#x, %u, %u, %#x},\n", code.code, code.jt, code.jf, code.k);
	(void)puts("};");
	return ferror(file) == 0 && fflush(stdout) == 0 ? 0 : -EIO;
}

int
main(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	FILE *file = tmpfile();
	int r = filter != NULL && file != NULL ? fill(filter) : -ENOMEM;

	if (r == 0)
		r = seccomp_export_bpf(filter, fileno(file));
	if (r == 0)
		r = print(file);
	if (r != 0)
		(void)fprintf(stderr, "mkfilter: %s\n", strerror(-r));
	if (file != NULL)
		(void)fclose(file);
	seccomp_release(filter);
	return r == 0 ? 0 : 1;
}
