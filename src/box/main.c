/* handrail-box: makes one box, an isolated set of processes, from a JSON document. See
 * handrail-box(8). */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/process/image.h"
#include "box/copy.h"
#include "box/fence.h"
#include "box/size.h"
#include "box/snapshot.h"
#include "box/spec.h"
#include "box/start.h"

#define STATUS_USAGE 2    /* the command line or the document is wrong */
#define STATUS_LARGE 3    /* the copy would take more than --most */
#define STATUS_FAILED 125 /* the box could not be made */

static const char usage_text[] =
    "usage: handrail-box [--check] [--detach FD] [FILE]\n"
    "       handrail-box --copy FROM TO [--without PATH]... [--freeze GROUP]\n"
    "                    [--most BYTES]\n"
    "       handrail-box --copy FROM TO ... --freeze GROUP --shift PID LAYER\n"
    "                    [--below DIR]... [--root DIR]\n"
    "       handrail-box --join LAYER DIR...\n"
    "       handrail-box --size DIR...\n"
    "       handrail-box --remove DIR\n"
    "Makes a box, an isolated set of processes, and runs a program in it until it ends. FILE has "
    "a\n"
    "JSON document that describes the box; without FILE it is read from standard input.\n"
    "\n"
    "  --check      make no box; explain the document, and what this kernel enforces\n"
    "  --detach FD  let the box live on. FD is a socket: a line with the process is written to\n"
    "               it, and the box starts when a byte comes back\n"
    "  --copy       copy the storage FROM to the new directory TO; leave\n"
    "               out PATH below FROM; freeze the control group GROUP meanwhile.\n"
    "               --most: stop with status 3 if the copy would take more than BYTES\n"
    "  --shift      make the files of the box whose first process is PID the layer LAYER/files,\n"
    "               instead of a copy, where that is safe. --below: the layers that the box has,\n"
    "               topmost first; --root: its root directory\n"
    "  --join       make one layer, LAYER/files, of the layers DIR, topmost first\n"
    "  --size       print the number of files below all DIRs, and the disk that they take\n"
    "  --remove     remove a storage\n"
    "  --help       print this text\n"
    "\n"
    "The exit status is the program's; 2: the command or the document is wrong; 125: the box\n"
    "could not be made. See handrail-box(8).\n";

struct order {
	bool check, help;
	int control; /* -1: the box runs in the foreground */
	const char *file;
};

static int
fail(int status, const struct hr_err *e)
{
	(void)fprintf(stderr, "handrail-box: %s\n", e->msg);
	return status;
}

/* Reads a positive number. */
static bool
number(const char *text, uint64_t *ret)
{
	char *end;

	*ret = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
	return *ret > 0 && *end == '\0';
}

/* Reads an option of --copy. Returns the number of its arguments, or -1 if usage_text does not show
 * it. */
static int
copy_option(struct box_snapshot *s, int argc, char **argv)
{
	struct box_shift *shift = &s->shift;
	const char *name = argv[0], *value = argc > 1 ? argv[1] : NULL;
	uint64_t n;

	if (value == NULL)
		return -1;
	if (strcmp(name, "--without") == 0) {
		/* a shift needs one more */
		if (s->copy.nwithout == BOX_COPY_WITHOUT - 1)
			return -1;
		s->copy.without[s->copy.nwithout++] = value;
		return 1;
	}
	if (strcmp(name, "--below") == 0 && shift->nbelow < BOX_BELOW_MAX) {
		shift->below[shift->nbelow++] = value;
		return 1;
	}
	if (strcmp(name, "--freeze") == 0 && s->group == NULL) {
		s->group = value;
		return 1;
	}
	if (strcmp(name, "--root") == 0 && shift->root == NULL) {
		shift->root = value;
		return 1;
	}
	if (strcmp(name, "--most") == 0)
		return number(value, &s->copy.most) ? 1 : -1;
	if (strcmp(name, "--shift") != 0 || argc < 3 || !number(value, &n) || n > INT_MAX)
		return -1;
	shift->pid = (pid_t)n;
	shift->layer = argv[2];
	return 2;
}

/* Implements --copy. Returns as copy_or_remove(). */
static int
copy(int argc, char **argv)
{
	struct box_snapshot s = {.copy = {.from = argv[2], .to = argv[3]}};
	struct hr_err e = {0};
	bool shifted;
	int i, n, r;

	for (i = 4; i < argc; i += n + 1)
		if ((n = copy_option(&s, argc - i, argv + i)) < 0)
			return -1;
	if (s.shift.pid > 0 ? s.group == NULL : s.shift.nbelow > 0 || s.shift.root != NULL)
		return -1;
	r = box_snapshot(&s, &shifted, &e);
	if (r == 0)
		return 0;
	if (r > 0)
		(void)hr_err_set(&e, HR_E_TOOLARGE,
		    "a copy of the files would take more than %" PRIu64 " bytes", s.copy.most);
	r = fail(r > 0 ? STATUS_LARGE : STATUS_FAILED, &e);
	/* the box has the layer all the same */
	if (shifted)
		(void)puts("{\"shifted\": true, \"reason\": \"\"}");
	return r;
}

/* Implements --copy, --join, --size and --remove. Returns the exit status, or -1 for another
 * command. */
static int
copy_or_remove(int argc, char **argv)
{
	const char *const *args = (const char *const *)argv;
	struct hr_err e = {0};

	if (argc == 3 && strcmp(argv[1], "--remove") == 0)
		return box_copy_remove(argv[2], &e) == 0 ? 0 : fail(STATUS_FAILED, &e);
	if (argc >= 3 && strcmp(argv[1], "--size") == 0)
		return box_size(args + 2, &e) == 0 ? 0 : fail(STATUS_FAILED, &e);
	if (argc >= 4 && argc <= 3 + BOX_BELOW_MAX && strcmp(argv[1], "--join") == 0)
		return box_copy_join(argv[2], args + 3, (size_t)argc - 3, &e) == 0
			   ? 0
			   : fail(STATUS_FAILED, &e);
	return argc >= 4 && strcmp(argv[1], "--copy") == 0 ? copy(argc, argv) : -1;
}

/* Returns false for a command that usage_text does not show. */
static bool
parse(struct order *o, int argc, char **argv)
{
	char *end;
	long fd;
	int i;

	*o = (struct order){.control = -1};
	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--check") == 0) {
			o->check = true;
		} else if (strcmp(argv[i], "--help") == 0) {
			o->help = true;
		} else if (strcmp(argv[i], "--detach") == 0 && i + 1 < argc) {
			fd = strtol(argv[++i], &end, 10);
			if (*end != '\0' || end == argv[i] || fd < 3 || fd > 1 << 20)
				return false;
			o->control = (int)fd;
		} else if (argv[i][0] != '-' && o->file == NULL) {
			o->file = argv[i];
		} else {
			return false;
		}
	}
	return !o->check || o->control < 0;
}

static int
explain(const struct box_spec *s)
{
	struct hr_err e = {0};
	HR_BUF(b, 1 << 20);

	box_spec_explain(s, &b);
	box_start_explain(&b);
	box_fence_explain(&b);
	box_start_lacks(true, &b);
	if (hr_buf_check(&b, &e) < 0 ||
	    hr_fd_write_full(STDOUT_FILENO, hr_buf_str(&b), b.len, &e) < 0 ||
	    box_start_check(s, &e) < 0)
		return fail(STATUS_FAILED, &e);
	return 0;
}

/* Puts /dev/null in place of standard input, which had the document: a box that lives on must not
 * have an end of its caller's pipe or socket. */
static int
leave_input(struct hr_err *err)
{
	HR_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	return null >= 0 && dup2(null, STDIN_FILENO) >= 0 ? 0 : hr_err_sys(err, errno, "/dev/null");
}

static int
launch(const struct box_spec *s, const struct order *o)
{
	struct hr_err e = {0};
	int status;

	if (o->control >= 0 && o->file == NULL && leave_input(&e) < 0)
		return fail(STATUS_FAILED, &e);
	hr_fd_cloexec_from(STDERR_FILENO + 1);
	if (box_start(s, o->control, &status, &e) < 0)
		return fail(STATUS_FAILED, &e);
	return status;
}

/* Executes this program again from sealed memory. Otherwise a program in the box could execute
 * /proc/self/exe, and write to the launcher's file through it. Returns 0 if this process already
 * runs from sealed memory, or -1 with *err set. */
static int
leave_file(char **argv, struct hr_err *err)
{
	static const char own[] = "/proc/self/exe";
	HR_CLOSE int file = open(own, O_RDONLY | O_CLOEXEC);
	HR_CLOSE int memory = -1;
	int seals;

	/* a file of tmpfs has another seal */
	if (file >= 0 && (seals = fcntl(file, F_GET_SEALS)) > 0 && (seals & F_SEAL_WRITE) != 0)
		return 0;
	memory = hr_image_open(own, "handrail-box", 0500, err);
	if (memory < 0)
		return -1;
	(void)fexecve(memory, argv, environ);
	return hr_err_sys(err, errno, "execute the copy of the launcher");
}

int
main(int argc, char **argv)
{
	struct hr_err e = {0};
	struct order o;
	HR_BUF(text, BOX_SPEC_MAX);
	struct box_spec s;
	int status;

	if (hr_fd_open_stdio(&e) < 0)
		return fail(STATUS_FAILED, &e);
	/* no process of a box sees a copier, which need not leave the file */
	if ((status = copy_or_remove(argc, argv)) >= 0)
		return status;
	if (leave_file(argv, &e) < 0)
		return fail(STATUS_FAILED, &e);
	if (!parse(&o, argc, argv) || o.help) {
		(void)fputs(usage_text, o.help ? stdout : stderr);
		return o.help ? 0 : STATUS_USAGE;
	}
	if ((o.file != NULL ? hr_path_read(o.file, &text, &e)
			    : hr_path_read_fd(STDIN_FILENO, "standard input", &text, &e)) < 0)
		return fail(STATUS_USAGE, &e);
	/* a caller that has failed meanwhile reports the reason itself */
	if (o.control >= 0 && o.file == NULL && text.len == 0)
		return STATUS_FAILED;
	if (box_spec_read(&s, hr_buf_str(&text), text.len, &e) < 0)
		status = fail(STATUS_USAGE, &e);
	else
		status = o.check ? explain(&s) : launch(&s, &o);
	box_spec_done(&s);
	return status;
}
