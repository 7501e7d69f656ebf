/* Implements a builtin for bash, loaded by `enable -f` into the session's own shell: readline takes
 * a command from a FIFO in one piece, instead of byte by byte from the terminal, and leaves the
 * terminal alone meanwhile; and a prompt is reported in a third of the time that a script takes.
 * __hr_line FIFO REPORT ACK sets the builtin up; it prints nothing, and fails in an unknown bash.
 * __hr_line makes readline read its next line from the FIFO. __hr_line - ACK waits for a byte in
 * ACK: a line end means the same; it fails on any other byte, which is consumed: the rest is for
 * `read`. __hr_line -r FILE... removes files. __hr_line SCRIPT does the work of the hook's script,
 * and runs the script if anything is unusual. The first FIFO has texts, each with its NUL. A text
 * becomes the line as if pasted and accepted; an empty one sends readline to the terminal after
 * all. So does any error: the shell then works as if this module had not been loaded. Functions and
 * variables of readline and bash are found by name; the module also depends on the layouts of a
 * builtin (since bash 2.0), of a word list and of a variable. */
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
#include <unistd.h>

#include "session/prompt/hook.h"
#include "session/prompt/line_int.h"

/* ---- names of bash ---- */

struct builtin {
	const char *name;
	builtin_function *function;
	int flags;
	const char *const *long_doc;
	const char *short_doc;
	char *handle;
};

#define BUILTIN_ENABLED 0x1

struct line_bash line_bash;
pid_t line_owner;
bool line_armed, line_given;
int line_taken;

/* ---- names of readline ---- */

#define FD_LEAST 200 /* lowest descriptor, above the numbers that scripts use */

typedef int getc_function(FILE *);
typedef void prep_function(int);
typedef void deprep_function(void);
typedef int hook_function(void);

static struct {
	getc_function **getc;
	prep_function **prep;
	deprep_function **deprep;
	hook_function **signal_hook;
	int (*set_echoing)(int);
	int (*set_signals)(void);
	int *catch_signals, *catch_winch;
	int (*insert_text)(const char *);
	FILE **in;
	int *prompted, *paste;
} rl;

static getc_function *terminal_getc;
static prep_function *terminal_prep;
static deprep_function *terminal_deprep;

static char *fifo_path;
static int fifo = -1; /* open only while a line is read, so that no command inherits it */
static bool active;   /* the line comes from the FIFO */
static int echoing, prompted, catch_signals, catch_winch; /* former settings of readline */
static int meta;                                          /* former setting of readline */
static bool marked; /* the module has marked that readline has the terminal */
static char text[HR_HOOK_LINE_MAX + 1];
static size_t text_len;

/* Opens a descriptor with a number that scripts do not use. */
static int
fifo_open(int how)
{
	int fd = open(fifo_path, how | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
	int high;

	if (fd < 0)
		return -1;
	high = fcntl(fd, F_DUPFD_CLOEXEC, FD_LEAST);
	(void)close(fd);
	return high;
}

/* Returns false in a child of the shell. */
static bool
line_begin(void)
{
	if (getpid() != line_owner || *rl.in == NULL || isatty(fileno(*rl.in)) != 1)
		return false;
	fifo = fifo_open(O_RDONLY);
	return fifo >= 0;
}

/* ---- called by readline ---- */

static void
line_leave(void)
{
	active = false;
	(void)close(fifo);
	fifo = -1;
	(void)rl.set_echoing(echoing);
	*rl.prompted = prompted;
	*rl.catch_signals = catch_signals;
	*rl.catch_winch = catch_winch;
}

/* Reports that bash has parsed a part of a command and needs more: the keeper must not take that
 * for a command that reads a line with readline, nor for a prompt without a report. */
static void
tell_more(void)
{
	if (!line_given || *line_bash.executing != 0 || *line_bash.evaluating != 0 ||
	    *line_bash.prompt == NULL || *line_bash.prompt != *line_bash.ps2)
		return;
	/* if this fails readline is not visible either */
	if (write(STDERR_FILENO, HR_HOOK_MORE, strlen(HR_HOOK_MORE)) < 0)
		line_given = false;
}

/* Marks that readline takes and leaves the terminal. Readline itself does so by turning bracketed
 * paste on and off, unless it considers the terminal dumb. The keeper needs the mark in any
 * case. */
static void
mark(bool on)
{
	static const char taken[] = HR_READLINE_TAKES, left[] = HR_READLINE_LEAVES;
	ssize_t n = 0;

	if (on && *rl.paste == 0 && getpid() == line_owner)
		n = write(STDERR_FILENO, taken, sizeof(taken) - 1);
	else if (!on && marked)
		n = write(STDERR_FILENO, left, sizeof(left) - 1);
	marked = on && n > 0;
}

static void
line_prep(int meta_flag)
{
	if (active)
		line_leave(); /* bash left the previous line by a jump */
	line_place_note();
	meta = meta_flag;
	if (line_armed && line_begin()) {
		line_armed = false;
		active = true;
		text_len = 0;
		echoing = rl.set_echoing(0);
		prompted = *rl.prompted;
		*rl.prompted = 1; /* not even the editing mode is shown */
		/* bash's own handlers suffice: readline would set and remove its own for every
		 * line */
		catch_signals = *rl.catch_signals;
		catch_winch = *rl.catch_winch;
		*rl.catch_signals = *rl.catch_winch = 0;
		return;
	}
	line_armed = false;
	tell_more();
	terminal_prep(meta_flag);
	mark(true);
}

static void
line_deprep(void)
{
	line_place_return();
	if (active) {
		line_leave();
		return;
	}
	mark(false);
	terminal_deprep();
}

static int
read_terminal(FILE *stream)
{
	if (active) {
		line_leave();
		terminal_prep(meta);
		mark(true);
		(void)rl.set_signals();
	}
	return terminal_getc(stream);
}

/* Returns 1 for a whole text; 0: the text is incomplete; -1: reading failed. */
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

/* Acts on signals as readline does: runs a trap, leaves by a jump after an interrupt, ends the
 * shell after a hang-up. */
static void
act_on_signals(void)
{
	line_bash.set_event_hook();
	(void)(*rl.signal_hook)();
}

static bool
signal_waits(void)
{
	return *line_bash.interrupted != 0 || *line_bash.terminating != 0 ||
	       line_bash.pending_trap() >= 0;
}

/* Polls, without sleeping over a signal that came after the last handling. A signal that bash does
 * not handle stays pending: it is examined once. */
static int
wait_for_input(struct pollfd fds[2], bool *looked)
{
	sigset_t all, before;
	int r = -1, why = EINTR;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	*looked = !*looked && signal_waits();
	if (!*looked) {
		r = ppoll(fds, 2, NULL, &before);
		why = errno;
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	errno = why;
	return r;
}

static int
line_getc(FILE *stream)
{
	struct pollfd fds[2];
	bool looked = false;
	int r;

	for (act_on_signals(); active; act_on_signals()) {
		fds[0] = (struct pollfd){.fd = fifo, .events = POLLIN};
		fds[1] = (struct pollfd){.fd = fileno(stream), .events = POLLIN};
		if (wait_for_input(fds, &looked) < 0) {
			if (errno != EINTR)
				break;
			continue;
		}
		/* A signal may have come right before: an interrupt must not lose a line. */
		act_on_signals();
		if (!active)
			break;
		if ((fds[0].revents & POLLIN) != 0) {
			r = read_text();
			if (r == 0)
				continue;
			if (r < 0 || text[0] == '\0')
				break;
			text_len = 0;
			(void)rl.insert_text(text);
			*line_bash.ps0 = NULL; /* PS0 stays unset until the next prompt */
			line_given = true;
			line_taken = line_taken < INT_MAX ? line_taken + 1 : 0;
			return '\r';
		}
		break; /* readline goes to the terminal, or the read failed */
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
	    {"rl_tty_set_echoing", &rl.set_echoing}, {"rl_set_signals", &rl.set_signals},
	    {"rl_catch_signals", &rl.catch_signals}, {"rl_catch_sigwinch", &rl.catch_winch},
	    {"rl_insert_text", &rl.insert_text}, {"rl_instream", &rl.in},
	    {"rl_already_prompted", &rl.prompted}, {"_rl_enable_bracketed_paste", &rl.paste},
	    {"zread", &line_bash.zread}, {"begin_unwind_frame", &line_bash.begin_unwind},
	    {"add_unwind_protect", &line_bash.add_unwind},
	    {"run_unwind_frame", &line_bash.run_unwind}, {"source_builtin", &line_bash.source},
	    {"eval_builtin", &line_bash.eval}, {"find_variable", &line_bash.variable},
	    {"get_string_value", &line_bash.value}, {"which_set_flags", &line_bash.flags},
	    {"last_command_exit_value", &line_bash.status},
	    {"last_asynchronous_pid", &line_bash.job}, {"executing", &line_bash.executing},
	    {"parse_and_execute_level", &line_bash.evaluating},
	    {"rl_readline_state", &line_bash.reading}, {"echo_input_at_read", &line_bash.echoes},
	    {"debugging_mode", &line_bash.debugging}, {"interrupt_state", &line_bash.interrupted},
	    {"terminating_signal", &line_bash.terminating},
	    {"first_pending_trap", &line_bash.pending_trap},
	    {"reset_readahead_token", &line_bash.reset_token},
	    {"bashline_set_event_hook", &line_bash.set_event_hook}, {"ps0_prompt", &line_bash.ps0},
	    {"ps2_prompt", &line_bash.ps2}, {"current_prompt_string", &line_bash.prompt}};
	const char *const *bash = dlsym(RTLD_DEFAULT, "dist_version");
	const int *version = dlsym(RTLD_DEFAULT, "rl_readline_version");
	void *found;
	size_t i;

	/* only these versions are tested */
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
	line_prompt_forget();
	free(fifo_path);
	fifo_path = NULL;
}

static int
set_up(const char *line, const char *report, const char *answer)
{
	int fd = -1;
	ssize_t n = -1;

	if (fifo_path != NULL || !find_symbols())
		return EXECUTION_FAILURE;
	fifo_path = strdup(line);
	if (line_prompt_setup(report, answer) && fifo_path != NULL)
		fd = fifo_open(O_WRONLY);
	if (fd >= 0) {
		n = write(fd, HR_HOOK_LINE_HELLO, 1);
		(void)close(fd);
	}
	if (n != 1) {
		forget_paths();
		return EXECUTION_FAILURE;
	}
	line_owner = getpid();
	line_place_setup();
	terminal_getc = *rl.getc;
	terminal_prep = *rl.prep;
	terminal_deprep = *rl.deprep;
	*rl.getc = line_getc;
	*rl.prep = line_prep;
	*rl.deprep = line_deprep;
	line_prompt_attach();
	return EXECUTION_SUCCESS;
}

/* ---- the builtin ---- */

/* Removes files, and directories that are empty then. A branch of a box does that with the state of
 * its shell, for which a process takes 2 ms of processor time. */
static int
remove_all(const struct word_list *list)
{
	int r = EXECUTION_SUCCESS;

	for (; list != NULL; list = list->next)
		if (unlink(list->word->word) != 0 && rmdir(list->word->word) != 0)
			r = EXECUTION_FAILURE;
	return r;
}

/* Makes a directory that others cannot enter, whatever the umask is, unless there is one. */
static int
make_directory(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) == 0)
		return chmod(path, 0700) == 0 ? EXECUTION_SUCCESS : EXECUTION_FAILURE;
	return errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? EXECUTION_SUCCESS
									      : EXECUTION_FAILURE;
}

static int
line_builtin(struct word_list *list)
{
	if (list == NULL) {
		line_armed = fifo_path != NULL;
		return line_armed ? EXECUTION_SUCCESS : EXECUTION_FAILURE;
	}
	if (strcmp(list->word->word, "-r") == 0)
		return remove_all(list->next);
	if (list->next == NULL)
		return fifo_path != NULL ? line_prompt(list) : EXECUTION_FAILURE;
	if (strcmp(list->word->word, "-d") == 0)
		return make_directory(list->next->word->word);
	if (list->next->next == NULL)
		return fifo_path != NULL ? line_prompt_wait(list->next->word->word)
					 : EXECUTION_FAILURE;
	return set_up(list->word->word, list->next->word->word, list->next->next->word->word);
}

static const char *const long_doc[] = {"Reads the next command from handrail.", NULL};

extern struct builtin __hr_line_struct;
struct builtin __hr_line_struct = {
    .name = HR_HOOK_LINE_BUILTIN,
    .function = line_builtin,
    .flags = BUILTIN_ENABLED,
    .long_doc = long_doc,
    .short_doc =
	HR_HOOK_LINE_BUILTIN " [FIFO REPORT ACK | - ACK | SCRIPT | -r FILE... | -d DIRECTORY]",
};
