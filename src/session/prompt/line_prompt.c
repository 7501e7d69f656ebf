/* Handles a prompt of the session's own shell: its report, and the keeper's answer. Bash looks
 * PROMPT_COMMAND up right before it shows a prompt: while its value is the hook's, everything is
 * done there and then, and bash finds nothing to run. Nothing is parsed or redirected, and the
 * user's traps and traces do not see it. If anything is unusual PROMPT_COMMAND runs as usual. */
#include "config.h"

#include "session/prompt/line_int.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "session/prompt/hook.h"

#define ACK_ROOM 4096           /* maximum bytes that the keeper writes */
#define STATE_COMPLETING 0x4000 /* readline's flag: a completed word may name the variable */

static char *report_path, *ack_path;
static dev_t terminal; /* device of the shell's terminal when the shell loaded this module */
static int ack = -1;   /* the FIFO while it is read; otherwise -1 */
static bool looked_up; /* the lookup itself does PROMPT_COMMAND's work */

bool
line_prompt_setup(const char *report, const char *answer)
{
	struct stat st;

	terminal = fstat(STDIN_FILENO, &st) == 0 ? st.st_rdev : 0;
	report_path = strdup(report);
	ack_path = strdup(answer);
	return report_path != NULL && ack_path != NULL;
}

void
line_prompt_forget(void)
{
	free(report_path);
	free(ack_path);
	report_path = ack_path = NULL;
}

/* ---- the answer ---- */

static void
ack_close(char *unused)
{
	(void)unused;
	(void)close(ack);
	ack = -1;
	looked_up = false; /* this call may leave by a jump */
}

/* Opens a FIFO without blocking. A blocking open would wait for ever if the keeper is gone and the
 * signal of its death was handled before. Reads and writes of the open FIFO may block: they end
 * when the keeper is gone. */
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

/* Reads the answer or a part of it. A signal may leave this function by a jump. Avoids the cost of
 * a redirection and of `read` from a pipe. */
static size_t
ack_read(char *p, size_t room)
{
	static char frame[] = HR_HOOK_LINE_BUILTIN;
	ssize_t n;

	line_bash.begin_unwind(frame);
	line_bash.add_unwind(ack_close, NULL);
	n = line_bash.zread(ack, p, room);
	line_bash.run_unwind(frame);
	return n > 0 ? (size_t)n : 0;
}

/* Waits for the answer, which comes from another FIFO than that of the reports. */
int
line_prompt_wait(const char *path)
{
	char c;

	ack = open_to_keeper(path, O_RDONLY);
	line_armed = ack >= 0 && ack_read(&c, 1) == 1 && c == '\n';
	return line_armed ? EXECUTION_SUCCESS : EXECUTION_FAILURE;
}

/* Opens the FIFO and drops an old answer that an interrupt left unread. */
static void
ack_open(void)
{
	char stale[256];

	ack = open(ack_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
	if (ack < 0)
		return;
	while (read(ack, stale, sizeof(stale)) > 0)
		;
	if (fcntl(ack, F_SETFL, O_RDONLY) < 0)
		ack_close(NULL);
}

/* Takes an answer, one line, which the keeper writes at once. The last one counts if there are
 * two. */
static void
ack_take(char answer[ACK_ROOM + 1])
{
	size_t len = ack_read(answer, ACK_ROOM);
	char *before;

	answer[len] = '\0';
	if (len == 0 || answer[len - 1] != '\n') {
		answer[0] = '\0'; /* the keeper has ended */
		return;
	}
	before = memrchr(answer, '\n', len - 1);
	if (before != NULL)
		memmove(answer, before + 1, strlen(before + 1) + 1);
	line_armed = answer[0] == '\n';
	if (line_armed)
		answer[0] = '\0';
}

static int
evaluate(char *command)
{
	struct word_desc word = {.word = command};
	struct word_list list = {.word = &word};

	return line_bash.eval(&list);
}

/* ---- a prompt ---- */

#define REPORT_ROOM 8192 /* most reports fit */

struct text {
	char bytes[REPORT_ROOM];
	size_t len;
	bool full;
};

/* A field: its prefix and its text; NULL is an unset variable, sent as "". */
struct field {
	const char *before, *text;
	char number[24]; /* buffer for the text of a number */
};

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
}

static void
put_fields(struct text *t, const struct field f[REPORT_FIELDS_LOOKED])
{
	int i;

	for (i = 0; i < REPORT_FIELDS_LOOKED; i++) {
		put(t, f[i].before);
		put(t, f[i].text);
		if (!t->full)
			t->bytes[t->len++] = '\0'; /* put() reserved the room */
	}
}

static void
set_number(struct field *f, long long number)
{
	(void)snprintf(f->number, sizeof(f->number), "%lld", number);
	f->text = f->number;
}

/* Sets the field to "=" and the value found; NULL: the value is unknown. */
static void
set_seen(struct field *f, const char *found)
{
	f->before = found != NULL ? "=" : "";
	f->text = found;
}

/* Finds the program as bash does, if nothing unusual interferes. Returns "" if there is none, NULL
 * if the keeper must search. */
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

/* Returns true if `pwd` is the current directory. The keeper would have to check that from outside,
 * with the shell's rights. */
static bool
directory_is(const char *pwd)
{
	char name[PATH_MAX];

	/* Avoid the library's getcwd(), which does more if the directory is gone. */
	return pwd != NULL && syscall(SYS_getcwd, name, sizeof(name)) > 0 && strcmp(name, pwd) == 0;
}

/* Returns true for /dev/tty as well. */
static bool
is_terminal(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
	       (st.st_rdev == terminal || st.st_rdev == makedev(5, 0));
}

/* Returns which output is hidden. While PROMPT_COMMAND's text runs its output is redirected: then
 * the result is unknown. */
static unsigned
hidden(void)
{
	if (!looked_up)
		return HR_HIDES_UNKNOWN;
	return (is_terminal(STDOUT_FILENO) ? 0 : HR_HIDES_OUTPUT) |
	       (is_terminal(STDERR_FILENO) ? 0 : HR_HIDES_ERRORS);
}

/* Makes the script's report (fields.h) and the further fields. Returns false if the script must do
 * it. */
static bool
make_report(struct text *t, const struct variable *hook)
{
	struct field f[REPORT_FIELDS_LOOKED] = {{.text = NULL}};
	char indices[40], python[PATH_MAX];
	HR_FREE char *flags = NULL;

	if (hook == NULL || hook->value == NULL || (hook->attributes & VARIABLE_ARRAYS) != 0)
		return false;
	flags = line_bash.flags();
	(void)snprintf(indices, sizeof(indices), HR_REPORT_HOOK_FORMAT, strlen(hook->value));
	f[REPORT_KIND].text = HR_REPORT_LOOKED;
	f[REPORT_NONCE].text = line_bash.value("__hr_n");
	set_number(&f[REPORT_PID], line_owner);
	set_number(&f[REPORT_STATUS], *line_bash.status);
	if (*line_bash.job != -1)
		set_number(&f[REPORT_JOB], *line_bash.job);
	set_number(&f[REPORT_EUID], geteuid());
	f[REPORT_PWD].text = line_bash.value("PWD");
	f[REPORT_PATH].text = line_bash.value("PATH");
	f[REPORT_HOOK].before = indices;
	f[REPORT_HOOK].text = line_bash.value("PS0");
	f[REPORT_FLAGS].text = flags;
	f[REPORT_OPTIONS].text = line_bash.value("SHELLOPTS");
	set_seen(&f[REPORT_PWD_SEEN], directory_is(f[REPORT_PWD].text) ? "" : NULL);
	set_seen(&f[REPORT_PYTHON],
	    f[REPORT_PATH].text != NULL ? find_python(f[REPORT_PATH].text, python) : NULL);
	set_number(&f[REPORT_TAKEN], line_taken);
	set_number(&f[REPORT_HIDES], hidden());
	put_fields(t, f);
	return !t->full;
}

/* Returns true if the whole report was written. Does not retry an interrupted write; the script's
 * `printf` does not, either. */
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
	const char *value = line_bash.value(variable);

	return value != NULL && value[0] != '\0';
}

/* Returns true if both prompts are set: an unset PS2 could not be distinguished from a PS1. */
static bool
prompts_shown(void)
{
	return is_set("PS1") || is_set("PS2") || line_bash.variable("PS2") == NULL;
}

/* Reports, and waits for the answer: `answer` becomes the code to run, or "" for nothing. Returns
 * false if the script must report. */
static bool
tell(const struct variable *hook, char answer[ACK_ROOM + 1])
{
	struct text t;

	t.len = 0;
	t.full = false;
	line_armed = line_given = false;
	if (getpid() != line_owner || !make_report(&t, hook))
		return false;
	answer[0] = '\0';
	if (is_set("__hr_n"))
		ack_open();
	if (!send_report(&t)) {
		if (ack >= 0)
			ack_close(NULL);
		return true;
	}
	if (ack >= 0)
		ack_take(answer);
	return true;
}

int
line_prompt(struct word_list *list)
{
	static char unset_prompts[] = "PS1= PS2=";
	char answer[ACK_ROOM + 1];

	line_prompt_attach();
	if (!tell(line_bash.variable("PROMPT_COMMAND"), answer))
		return line_bash.source(list);
	if (answer[0] != '\0')
		(void)evaluate(answer);
	if (prompts_shown()) /* comes last, since it may leave by a jump */
		(void)evaluate(unset_prompts);
	return EXECUTION_SUCCESS;
}

/* ---- PROMPT_COMMAND ---- */

/* Sets the code that bash runs instead, as silently as the hook. This is the last step, since an
 * assignment to a read-only variable would end the text there. */
static struct variable *
instead(const char *answer)
{
	static char text[ACK_ROOM + 128];
	static struct variable found = {.name = NULL, .value = text};

	text[0] = '\0';
	if (answer[0] != '\0' || prompts_shown())
		(void)snprintf(text, sizeof(text),
		    "{ %s\\builtin :; %s; } >/dev/null 2>&1 || \\builtin :", answer,
		    prompts_shown() ? "PS1= PS2=" : "\\builtin :");
	return &found;
}

/* Handles a lookup of PROMPT_COMMAND. Bash's own lookup comes when it is about to run the hook:
 * nothing else is in progress then. */
static struct variable *
on_lookup(struct variable *hook)
{
	char answer[ACK_ROOM + 1];
	bool told;

	if (*line_bash.executing != 0 || *line_bash.evaluating != 0 || looked_up ||
	    (*line_bash.reading & STATE_COMPLETING) != 0)
		return hook;
	/* The code would be shown after the report, as the next command's output. */
	if (*line_bash.echoes != 0)
		return hook;
	/* A trap may skip commands: we cannot know whether the shell still runs any. */
	if (*line_bash.debugging != 0)
		return hook;
	looked_up = true;
	told = tell(hook, answer);
	looked_up = false;
	if (!told)
		return hook;
	/* As when the hook runs, drop the rest of an error or an interrupt, which would become
	 * another empty line. */
	line_bash.reset_token();
	return instead(answer);
}

void
line_prompt_attach(void)
{
	struct variable *hook = line_bash.variable("PROMPT_COMMAND");

	/* An array runs each of its elements: only some may be the hook's. */
	if (hook != NULL && (hook->attributes & VARIABLE_ARRAYS) == 0 &&
	    hook->dynamic_value == NULL)
		hook->dynamic_value = on_lookup;
}
