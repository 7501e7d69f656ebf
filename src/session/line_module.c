/* A builtin for bash, loaded by `enable -f` into the session's own shell: readline takes a command
 * from a FIFO in one piece, instead of byte by byte from the terminal, and leaves the terminal
 * alone meanwhile; and a prompt is reported in a third of the time that a script takes.
 *
 *   __hr_line FIFO REPORT ACK   sets it up; prints nothing, fails where this is no bash that we
 *                               know
 *   __hr_line          the next line that readline reads is to come from the FIFO
 *   __hr_line - ACK    waits for a byte in this one: the end of a line says the same; fails on any
 *                      other, which is gone then: the rest is for `read`
 *   __hr_line SCRIPT   what the script of the hook does; it is run where something is unusual
 *
 * The first FIFO holds texts ended by a NUL. A text becomes the line as if pasted and accepted; an
 * empty one says that readline shall read from the terminal after all. So does whatever is not as
 * it should be: then all is as if this had not been loaded. All of readline's and of bash's is
 * looked up by name; beside that the layout of a builtin (since bash 2.0), of a word list and of a
 * variable is relied on.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/hook.h"
#include "session/report.h"

/* ---- bash's ---- */

struct word_desc {
	char *word;
	int flags;
};

struct word_list {
	struct word_list *next;
	struct word_desc *word;
};

typedef int builtin_function(struct word_list *);

struct builtin {
	const char *name;
	builtin_function *function;
	int flags;
	const char *const *long_doc;
	const char *short_doc;
	char *handle;
};

struct variable {
	char *name;
	char *value;
	char *exported;
	void *dynamic_value;
	void *assign;
	int attributes;
	int context;
};

#define VARIABLE_ARRAYS 0x44 /* indexed, associative */
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
	builtin_function *source, *eval;
	struct variable *(*variable)(const char *);
	char *(*value)(const char *);
	char *(*flags)(void); /* $-, to be freed */
	volatile int *status; /* $? */
	volatile pid_t *job;  /* $!, -1: none */
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

static char *fifo_path, *report_path, *ack_path;
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

/* ---- set-up ---- */

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
	    {"run_unwind_frame", &sh.run_unwind}, {"source_builtin", &sh.source},
	    {"eval_builtin", &sh.eval}, {"find_variable", &sh.variable},
	    {"get_string_value", &sh.value}, {"which_set_flags", &sh.flags},
	    {"last_command_exit_value", &sh.status}, {"last_asynchronous_pid", &sh.job}};
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

static void
forget_paths(void)
{
	free(fifo_path);
	free(report_path);
	free(ack_path);
	fifo_path = report_path = ack_path = NULL;
}

static int
set_up(const char *line, const char *report, const char *answer)
{
	int fd;
	ssize_t n = -1;

	if (fifo_path != NULL || !find_symbols())
		return EXECUTION_FAILURE;
	fifo_path = strdup(line);
	report_path = strdup(report);
	ack_path = strdup(answer);
	fd =
	    fifo_path != NULL && report_path != NULL && ack_path != NULL ? fifo_open(O_WRONLY) : -1;
	if (fd >= 0) {
		n = write(fd, HR_HOOK_LINE_HELLO, 1);
		(void)close(fd);
	}
	if (n != 1) {
		forget_paths();
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

/* An open that waited for the other end would wait for ever where the keeper is gone, and the
 * signal that says so was taken before. A read or a write after it does not. */
static int
open_to_keeper(const char *path, int how)
{
	int fd = open(path, how | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);

	if (fd >= 0 && fcntl(fd, F_SETFL, how) < 0) {
		(void)close(fd);
		fd = -1;
	}
	return fd;
}

/* Up to `room` bytes and no more than a line of what the keeper answers: nearly always one. Read
 * without what a redirection and `read` of a pipe cost. */
static size_t
ack_read(const char *path, char *p, size_t room)
{
	static char frame[] = HR_HOOK_LINE_BUILTIN;
	size_t len = 0;
	ssize_t n;

	ack = open_to_keeper(path, O_RDONLY);
	if (ack < 0)
		return 0;
	sh.begin_unwind(frame);
	sh.add_unwind(ack_close, NULL);
	do {
		n = sh.zread(ack, p + len, 1);
		len += n == 1 ? 1 : 0;
	} while (n == 1 && len < room && p[len - 1] != '\n');
	sh.run_unwind(frame);
	return len;
}

static int
wait_for_ack(const char *path)
{
	char c;

	armed = fifo_path != NULL && ack_read(path, &c, 1) == 1 && c == '\n';
	return armed ? EXECUTION_SUCCESS : EXECUTION_FAILURE;
}

static int
evaluate(char *command)
{
	struct word_desc word = {.word = command};
	struct word_list list = {.word = &word};

	return sh.eval(&list);
}

/* ---- a prompt ---- */

#define REPORT_ROOM 8192 /* of most */
#define ACK_ROOM 4096    /* the keeper writes no more */

struct text {
	char bytes[REPORT_ROOM];
	size_t len;
	bool full;
};

/* A field and its NUL. NULL: a variable that is not set, "" as well. */
static void
put(struct text *t, const char *field)
{
	size_t n = field != NULL ? strlen(field) : 0;

	if (t->full || n >= sizeof(t->bytes) - t->len) {
		t->full = true;
		return;
	}
	if (n > 0)
		memcpy(t->bytes + t->len, field, n);
	t->len += n;
	t->bytes[t->len++] = '\0';
}

static void
put_number(struct text *t, long long number)
{
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%lld", number);
	put(t, digits);
}

/* "=" and what was found; NULL: nothing can be said. */
static void
put_seen(struct text *t, const char *found)
{
	put(t, found != NULL ? "=" : "");
	if (found == NULL || t->full)
		return;
	t->len--; /* and behind it */
	put(t, found);
}

/* As bash finds the program, where there is nothing unusual in its way; "": there is none, NULL:
 * the keeper is to look. */
static const char *
find_python(const char *path, char name[PATH_MAX])
{
	static const char python[] = "/python";
	const char *end;
	struct stat st;
	size_t n;

	for (;; path = end + 1) {
		end = strchrnul(path, ':');
		n = (size_t)(end - path);
		if (path[0] != '/' || n > PATH_MAX - sizeof(python))
			return NULL;
		memcpy(name, path, n);
		n -= name[n - 1] == '/';
		memcpy(name + n, python, sizeof(python));
		if (stat(name, &st) == 0)
			break;
		if (*end == '\0')
			return "";
	}
	return S_ISREG(st.st_mode) && faccessat(AT_FDCWD, name, X_OK, AT_EACCESS) == 0 ? name
										       : NULL;
}

/* What the keeper would have to look up from outside, with the shell's rights. */
static void
put_looked(struct text *t, const char *pwd, const char *path)
{
	char name[PATH_MAX];

	/* not the library's: that does more where the directory is gone */
	put_seen(
	    t, pwd != NULL && syscall(SYS_getcwd, name, sizeof(name)) > 0 && strcmp(name, pwd) == 0
		   ? ""
		   : NULL);
	put_seen(t, path != NULL ? find_python(path, name) : NULL);
}

/* See prompt_script() in hook.c. False: it is for the script to make. */
static bool
make_report(struct text *t)
{
	const struct variable *hook = sh.variable("PROMPT_COMMAND");
	char indices[40], *flags;

	if (hook == NULL || hook->value == NULL || (hook->attributes & VARIABLE_ARRAYS) != 0)
		return false;
	flags = sh.flags();
	put(t, HR_REPORT_LOOKED);
	put(t, sh.value("__hr_n"));
	put_number(t, owner);
	put_number(t, *sh.status);
	if (*sh.job == -1)
		put(t, "");
	else
		put_number(t, *sh.job);
	put_number(t, geteuid());
	put(t, sh.value("PWD"));
	put(t, sh.value("PATH"));
	(void)snprintf(indices, sizeof(indices), "0:%zu:", strlen(hook->value));
	put(t, indices);
	t->len--; /* and behind it */
	put(t, sh.value("PS0"));
	put(t, flags);
	put(t, sh.value("SHELLOPTS"));
	free(flags);
	put_looked(t, sh.value("PWD"), sh.value("PATH"));
	return !t->full;
}

/* Whether all of it is written: an interrupted `printf` does not try again either. */
static bool
send_report(const struct text *t)
{
	int fd = open_to_keeper(report_path, O_WRONLY | O_APPEND);
	size_t at = 0;
	ssize_t n = 0;

	if (fd < 0)
		return false;
	for (; at < t->len && n >= 0; at += n > 0 ? (size_t)n : 0)
		n = write(fd, t->bytes + at, t->len - at);
	(void)close(fd);
	return at == t->len;
}

static bool
is_set(const char *variable)
{
	const char *value = sh.value(variable);

	return value != NULL && value[0] != '\0';
}

static int
prompt(struct word_list *list)
{
	static char unset_prompts[] = "PS1= PS2=";
	char answer[ACK_ROOM + 1];
	struct text t;
	size_t len;

	t.len = 0;
	t.full = false;
	armed = false;
	if (getpid() != owner || !make_report(&t))
		return sh.source(list);
	if (send_report(&t) && is_set("__hr_n")) {
		len = ack_read(ack_path, answer, ACK_ROOM);
		armed = len > 0 && answer[0] == '\n';
		answer[len] = '\0';
		if (len > 0 && !armed)
			(void)evaluate(answer);
	}
	if (is_set("PS1") || is_set("PS2")) /* last: it may be left by a jump */
		(void)evaluate(unset_prompts);
	return EXECUTION_SUCCESS;
}

/* ---- the builtin ---- */

static int
line_builtin(struct word_list *list)
{
	if (list == NULL) {
		armed = fifo_path != NULL;
		return armed ? EXECUTION_SUCCESS : EXECUTION_FAILURE;
	}
	if (list->next == NULL)
		return fifo_path != NULL ? prompt(list) : EXECUTION_FAILURE;
	if (list->next->next == NULL)
		return wait_for_ack(list->next->word->word);
	return set_up(list->word->word, list->next->word->word, list->next->next->word->word);
}

static const char *const long_doc[] = {"Reads the next command from handrail.", NULL};

extern struct builtin __hr_line_struct;
struct builtin __hr_line_struct = {
    .name = HR_HOOK_LINE_BUILTIN,
    .function = line_builtin,
    .flags = BUILTIN_ENABLED,
    .long_doc = long_doc,
    .short_doc = HR_HOOK_LINE_BUILTIN " [FIFO REPORT ACK | - ACK | SCRIPT]",
};
