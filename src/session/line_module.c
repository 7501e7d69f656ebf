/* A builtin for bash, loaded by `enable -f` into the session's own shell: readline takes a command
 * from a FIFO in one piece, instead of byte by byte from the terminal, and leaves the terminal
 * alone meanwhile.
 *
 *   __hr_line FIFO     sets it up; prints nothing, fails where this is no bash that we know
 *   __hr_line          the next line that readline reads is to come from the FIFO
 *   __hr_line - FIFO   waits for a byte in this one: the end of a line says the same; fails on any
 *                      other, which is gone then: the rest is for `read`
 *
 * The first FIFO holds texts ended by a NUL. A text becomes the line as if pasted and accepted; an
 * empty one says that readline shall read from the terminal after all. So does whatever is not as
 * it should be: then all is as if this had not been loaded. All of readline's and of bash's is
 * looked up by name; beside that the layout of a builtin (since bash 2.0) and of a word list is
 * relied on.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/hook.h"

/* ---- bash's ---- */

struct word_desc {
	char *word;
	int flags;
};

struct word_list {
	struct word_list *next;
	struct word_desc *word;
};

struct builtin {
	const char *name;
	int (*function)(struct word_list *);
	int flags;
	const char *const *long_doc;
	const char *short_doc;
	char *handle;
};

#define BUILTIN_ENABLED 0x1
#define EXECUTION_SUCCESS 0
#define EXECUTION_FAILURE 1

/* `read` reads with it, too: a signal is acted on, its trap run, an interrupt left by a jump. */
typedef ssize_t zread_function(int, char *, size_t);
typedef void unwind_function(char *);

static struct {
	zread_function *zread;
	void (*begin_unwind)(char *);
	void (*add_unwind)(unwind_function *, char *);
	void (*run_unwind)(char *);
} sh;

/* ---- readline's ---- */

#define READ_ERROR (-2)
#define STATE_READCMD 0x8
#define FD_LEAST 200 /* above what a script uses by number */

typedef int getc_function(FILE *);
typedef void prep_function(int);
typedef void deprep_function(void);
typedef int hook_function(void);

static struct {
	getc_function **getc;
	prep_function **prep;
	deprep_function **deprep;
	hook_function **signal_hook;
	unsigned long *state;
	int (*set_echoing)(int);
	int (*pending_signal)(void);
	void (*check_signals)(void);
	int (*insert_text)(const char *);
	FILE **in;
	int *prompted;
} rl;

static getc_function *terminal_getc;
static prep_function *terminal_prep;
static deprep_function *terminal_deprep;

static char *fifo_path;
static int fifo = -1; /* while a line is read: no command finds it open */
static int ack = -1;  /* while it is read */
static pid_t owner;
static bool armed;            /* the next line is to come from the FIFO */
static bool active;           /* this one is */
static int echoing, prompted; /* what readline had before */
static int meta;              /* what it was told */
static char text[HR_HOOK_LINE_MAX + 1];
static size_t text_len;

/* A descriptor with a number that scripts do not use. */
static int
fifo_open(int how)
{
	int fd = open(fifo_path, how | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
	struct stat st;
	int high;

	if (fd < 0)
		return -1;
	high = fcntl(fd, F_DUPFD_CLOEXEC, FD_LEAST);
	(void)close(fd);
	if (high >= 0 && (fstat(high, &st) < 0 || !S_ISFIFO(st.st_mode))) {
		(void)close(high);
		high = -1;
	}
	return high;
}

/* Not in a child of the shell. */
static bool
line_begin(void)
{
	if (getpid() != owner || *rl.in == NULL || isatty(fileno(*rl.in)) != 1)
		return false;
	fifo = fifo_open(O_RDONLY);
	return fifo >= 0;
}

/* ---- what readline calls ---- */

static void
line_leave(void)
{
	active = false;
	(void)close(fifo);
	fifo = -1;
	(void)rl.set_echoing(echoing);
	*rl.prompted = prompted;
}

static void
line_prep(int meta_flag)
{
	if (active)
		line_leave(); /* bash left that line by a jump */
	meta = meta_flag;
	if (armed && line_begin()) {
		armed = false;
		active = true;
		text_len = 0;
		echoing = rl.set_echoing(0);
		prompted = *rl.prompted;
		*rl.prompted = 1; /* not even the editing mode */
		return;
	}
	armed = false;
	terminal_prep(meta_flag);
}

static void
line_deprep(void)
{
	if (active)
		line_leave();
	else
		terminal_deprep();
}

static int
read_terminal(FILE *stream)
{
	if (active) {
		line_leave();
		terminal_prep(meta);
	}
	return terminal_getc(stream);
}

/* 1: a whole text; 0: more is to come; -1: there is none to be had. */
static int
read_text(void)
{
	ssize_t n = read(fifo, text + text_len, sizeof(text) - text_len);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (n == 0)
		return -1;
	text_len += (size_t)n;
	if (text[text_len - 1] == '\0')
		return 1;
	return text_len < sizeof(text) ? 0 : -1;
}

/* As rl_getc() has it. EOF or READ_ERROR: readline gives up. */
static int
interrupted(void)
{
	int signo = rl.pending_signal();

	if (signo == SIGHUP || signo == SIGTERM)
		return (*rl.state & STATE_READCMD) != 0 ? READ_ERROR : EOF;
	rl.check_signals();
	if (*rl.signal_hook != NULL)
		(void)(*rl.signal_hook)();
	return 0;
}

static int
line_getc(FILE *stream)
{
	struct pollfd fds[2];
	int r;

	while (active) {
		rl.check_signals();
		fds[0] = (struct pollfd){.fd = fifo, .events = POLLIN};
		fds[1] = (struct pollfd){.fd = fileno(stream), .events = POLLIN};
		if (poll(fds, 2, -1) < 0) {
			if (errno != EINTR)
				break;
			r = interrupted();
			if (r != 0)
				return r;
			continue;
		}
		if ((fds[0].revents & POLLIN) != 0) {
			r = read_text();
			if (r == 0)
				continue;
			if (r < 0 || text[0] == '\0')
				break;
			text_len = 0;
			(void)rl.insert_text(text);
			return '\r';
		}
		break; /* the terminal, or what should not be */
	}
	return read_terminal(stream);
}

/* ---- the builtin ---- */

static bool
find_symbols(void)
{
	const struct {
		const char *name;
		void *to;
	} symbols[] = {{"rl_getc_function", &rl.getc}, {"rl_prep_term_function", &rl.prep},
	    {"rl_deprep_term_function", &rl.deprep}, {"rl_signal_event_hook", &rl.signal_hook},
	    {"rl_readline_state", &rl.state}, {"rl_tty_set_echoing", &rl.set_echoing},
	    {"rl_pending_signal", &rl.pending_signal}, {"rl_check_signals", &rl.check_signals},
	    {"rl_insert_text", &rl.insert_text}, {"rl_instream", &rl.in},
	    {"rl_already_prompted", &rl.prompted}, {"zread", &sh.zread},
	    {"begin_unwind_frame", &sh.begin_unwind}, {"add_unwind_protect", &sh.add_unwind},
	    {"run_unwind_frame", &sh.run_unwind}};
	const char *const *bash = dlsym(RTLD_DEFAULT, "dist_version");
	const int *version = dlsym(RTLD_DEFAULT, "rl_readline_version");
	void *found;
	size_t i;

	/* what was tried */
	if (bash == NULL || strcmp(*bash, "5.2") != 0 || version == NULL || *version != 0x0802)
		return false;
	for (i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		found = dlsym(RTLD_DEFAULT, symbols[i].name);
		if (found == NULL)
			return false;
		memcpy(symbols[i].to, &found, sizeof(found));
	}
	return *rl.getc != NULL && *rl.prep != NULL && *rl.deprep != NULL;
}

static int
set_up(const char *path)
{
	int fd;
	ssize_t n;

	if (fifo_path != NULL || !find_symbols())
		return EXECUTION_FAILURE;
	fifo_path = strdup(path);
	if (fifo_path == NULL)
		return EXECUTION_FAILURE;
	fd = fifo_open(O_WRONLY);
	n = fd >= 0 ? write(fd, HR_HOOK_LINE_HELLO, 1) : -1;
	if (fd >= 0)
		(void)close(fd);
	if (n != 1) {
		free(fifo_path);
		fifo_path = NULL;
		return EXECUTION_FAILURE;
	}
	owner = getpid();
	terminal_getc = *rl.getc;
	terminal_prep = *rl.prep;
	terminal_deprep = *rl.deprep;
	*rl.getc = line_getc;
	*rl.prep = line_prep;
	*rl.deprep = line_deprep;
	return EXECUTION_SUCCESS;
}

static void
ack_close(char *unused)
{
	(void)unused;
	(void)close(ack);
	ack = -1;
}

/* The keeper's short word, read without what a redirection and `read` of a pipe cost. */
static bool
ack_read(const char *path)
{
	static char frame[] = HR_HOOK_LINE_BUILTIN;
	char c = '\0';
	ssize_t n;

	if (fifo_path == NULL)
		return false;
	ack = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
	if (ack < 0)
		return false;
	sh.begin_unwind(frame);
	sh.add_unwind(ack_close, NULL);
	n = sh.zread(ack, &c, 1);
	sh.run_unwind(frame);
	return n == 1 && c == '\n';
}

static int
line_builtin(struct word_list *list)
{
	if (list != NULL && list->next != NULL) {
		armed = ack_read(list->next->word->word);
		return armed ? EXECUTION_SUCCESS : EXECUTION_FAILURE;
	}
	if (list != NULL)
		return set_up(list->word->word);
	armed = fifo_path != NULL;
	return armed ? EXECUTION_SUCCESS : EXECUTION_FAILURE;
}

static const char *const long_doc[] = {"Reads the next command from handrail.", NULL};

extern struct builtin __hr_line_struct;
struct builtin __hr_line_struct = {
    .name = HR_HOOK_LINE_BUILTIN,
    .function = line_builtin,
    .flags = BUILTIN_ENABLED,
    .long_doc = long_doc,
    .short_doc = HR_HOOK_LINE_BUILTIN " [[-] FIFO]",
};
