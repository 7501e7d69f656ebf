/* Composes the texts for bash. They are immune to set -e, -u, -x, -C and to DEBUG traps that print:
 * the outer group redirects all output, including that of traps and traces, to /dev/null. */
#include "config.h"

#include "session/prompt/hook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/text/quote.h"
#include "base/random.h"

#define TEXT_CAP (1u << 20)

static void
add_quoted(struct hr_buf *b, const char *s)
{
	hr_quote_shell(b, s, strlen(s));
}

/* Makes the text that runs at every prompt. It is short: the rest is in a file, or in the builtin
 * if that is loaded. An array cannot be exported, so no child shell believes that it has the
 * builtin. The backslashes prevent aliases. */
static char *
prompt_command(const struct hr_hook *h, struct hr_err *err)
{
	HR_BUF(b, TEXT_CAP);

	hr_buf_adds(&b, "{ \\builtin \"${__hr_b-.}\" ");
	add_quoted(&b, h->script_path);
	hr_buf_adds(&b, "; } >/dev/null 2>&1 || \\builtin :");
	return hr_buf_end(&b, err);
}

#define FIELD_WORD(name, word) " " word

/* Makes the script. A child bash has no nonce and does not wait for an ack, which might never come;
 * nor does a shell that could not report. Rare tasks are sent with an ack. Most acks are for the
 * builtin alone, which reads them faster. PS1 is emptied only if it is set, and as the last step,
 * since assigning to a read-only variable would end the text there. After a syntax error within [[
 * bash 5.2 trips over the next [[, so none is used here. */
static char *
prompt_script(const struct hr_hook *h, struct hr_err *err)
{
	HR_BUF(b, TEXT_CAP);

	hr_buf_adds(&b, "{ \\builtin printf '%s\\0'" HR_REPORT_FIELDS(FIELD_WORD) " >>");
	add_quoted(&b, h->report_path);
	hr_buf_adds(&b, " && { \\builtin test -z \"${__hr_n-}\" ||"
			" \\builtin " HR_HOOK_LINE_BUILTIN " - ");
	add_quoted(&b, h->ack_path);
	hr_buf_adds(&b, " || { \\builtin read -r __hr_a <");
	add_quoted(&b, h->ack_path);
	hr_buf_adds(&b, "; \\builtin eval \"${__hr_a-}\"; }; };"
			" \\builtin test -z \"${PS1-}${PS2-}\" || PS1= PS2=; } || \\builtin :\n");
	return hr_buf_end(&b, err);
}

/* Makes an unguessable name for a FIFO that everybody can write to, or for the file that names it:
 * only processes that have it in their environment, or can list the directory, find it. */
static char *
random_path(const char *dir, const char *prefix, const char *digits)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "%s%s", prefix, digits);
	return hr_path_join(dir, name);
}

static int
make_secrets(struct hr_hook_secrets *s, struct hr_err *err)
{
	struct hr_hook_secrets made;
	size_t i;

	if (hr_random_hex(made.nonce, HR_HOOK_NONCE_LEN, err) < 0)
		return -1;
	for (i = 0; i < sizeof(made.names) / sizeof(made.names[0]); i++) {
		if (hr_random_hex(made.names[i], HR_HOOK_NAME_LEN, err) < 0)
			return -1;
	}
	*s = made;
	return 0;
}

int
hr_hook_init(
    struct hr_hook *h, const char *dir, struct hr_hook_secrets *secrets, struct hr_err *err)
{
	struct hr_hook_secrets own = {0};

	memset(h, 0, sizeof(*h));
	if (secrets == NULL)
		secrets = &own;
	if (secrets->nonce[0] == '\0' && make_secrets(secrets, err) < 0)
		return -1;
	memcpy(h->nonce, secrets->nonce, sizeof(h->nonce));
	h->report_path = random_path(dir, HR_HOOK_REPORT, secrets->names[0]);
	h->exports_path = random_path(dir, HR_HOOK_EXPORTS, secrets->names[1]);
	h->ack_path = random_path(dir, HR_HOOK_ACK, secrets->names[2]);
	h->line_path = random_path(dir, HR_HOOK_LINE, secrets->names[3]);
	h->script_path = random_path(dir, HR_HOOK_SCRIPT, secrets->names[4]);
	if (h->report_path == NULL || h->exports_path == NULL || h->ack_path == NULL ||
	    h->line_path == NULL || h->script_path == NULL) {
		(void)hr_err_nomem(err);
	} else if ((h->prompt_command = prompt_command(h, err)) != NULL &&
		   (h->script = prompt_script(h, err)) != NULL) {
		/* Lengths count bytes unless the directory's name is unusual: then they never
		 * match, and the shell must always compare. */
		if (asprintf(&h->expected, HR_REPORT_HOOK_FORMAT "%s", strlen(h->prompt_command),
			HR_HOOK_STARTED) >= 0)
			return 0;
		h->expected = NULL;
		(void)hr_err_nomem(err);
	}
	hr_hook_done(h);
	return -1;
}

void
hr_hook_done(struct hr_hook *h)
{
	free(h->report_path);
	free(h->exports_path);
	free(h->ack_path);
	free(h->line_path);
	free(h->script_path);
	free(h->script);
	free(h->prompt_command);
	free(h->expected);
	memset(h, 0, sizeof(*h));
}

/* Adds the set-up. Under set -a, too, the hook's own variables must not be exported. */
static void
add_setup(const struct hr_hook *h, struct hr_buf *out)
{
	hr_buf_adds(out, "PROMPT_COMMAND=");
	add_quoted(out, h->prompt_command);
	hr_buf_addf(out,
	    "; PS0=$'" HR_HOOK_STARTED_QUOTED "'; PS1= PS2=; export PROMPT_COMMAND PS1 PS2;"
	    " __hr_n=%s __hr_p=$PS0$PROMPT_COMMAND; export -n __hr_n __hr_p PS0",
	    h->nonce);
}

void
hr_hook_rcfile(const struct hr_hook *h, bool no_user_files, const char *module, struct hr_buf *out)
{
	if (!no_user_files)
		hr_buf_adds(out, "[[ ! -f ~/.bashrc ]] || . ~/.bashrc\n");
	/* History expansion rewrites commands such as echo "a!b". Handrail's own lines start with a
	 * blank, so that they are not in the history; an assignment to a read-only variable would
	 * end the file. */
	hr_buf_adds(out, "set +H -o emacs\nunset -v PROMPT_COMMAND TMOUT\n"
			 "\\builtin printf -v HISTCONTROL %s "
			 "\"${HISTCONTROL:+$HISTCONTROL:}ignorespace\" 2>/dev/null\n");
	hr_hook_ack_readline(out);
	hr_buf_adds(out, "\n");
	add_setup(h, out);
	hr_buf_adds(out, "\n");
	if (module == NULL)
		return;
	/* If the builtin cannot be loaded the shell works without it. */
	hr_buf_adds(out, "{ \\builtin enable -f ");
	add_quoted(out, module);
	hr_buf_adds(out, " " HR_HOOK_LINE_BUILTIN " && \\builtin " HR_HOOK_LINE_BUILTIN " ");
	add_quoted(out, h->line_path);
	hr_buf_addc(out, ' ');
	add_quoted(out, h->report_path);
	hr_buf_addc(out, ' ');
	add_quoted(out, h->ack_path);
	hr_buf_adds(out, " && __hr_b=(" HR_HOOK_LINE_BUILTIN "); } >/dev/null 2>&1\n");
}

/* Adds the builtin if it was loaded. If the builtin is lost, __hr_b must be empty: a shell that
 * cannot empty it would call the lost builtin for ever, so it exits. */
static void
add_builtin(struct hr_buf *out)
{
	hr_buf_adds(out, "\\unset -n __hr_b; \\unset -v __hr_b; { \\enable " HR_HOOK_LINE_BUILTIN
			 " && { \\builtin printf -v '__hr_b[0]' %s " HR_HOOK_LINE_BUILTIN
			 "; \\builtin test \"${__hr_b-}\" = " HR_HOOK_LINE_BUILTIN "; }; }"
			 " || \\builtin test -z \"${__hr_b-}\" || \\builtin exit \"$__hr_s\"; ");
}

void
hr_hook_heal(const struct hr_hook *h, struct hr_buf *out)
{
	/* Special builtins precede functions of the same name in POSIX mode, which an assignment
	 * alone can enter; that keeps $? as well. printf -v fails on a read-only variable; an
	 * assignment would end the line. */
	hr_buf_adds(out,
	    " { POSIXLY_CORRECT=$?; \\enable unset builtin test printf read eval export"
	    " bind set exit . :; \\unset -f builtin unset export test printf read eval set"
	    " exit . : bind enable; \\builtin printf -v __hr_s %s \"$POSIXLY_CORRECT\";"
	    " \\unset -v POSIXLY_CORRECT PROMPT_COMMAND PS0; ");
	hr_hook_ack_nonce(h, out);
	add_builtin(out);
	hr_buf_adds(out, "\\builtin printf -v PS0 '" HR_HOOK_STARTED_QUOTED "';"
			 " \\builtin printf -v PROMPT_COMMAND %s ");
	add_quoted(out, h->prompt_command);
	hr_buf_adds(out, "; \\builtin printf -v __hr_p %s \"$PS0$PROMPT_COMMAND\";"
			 " \\builtin printf -v PS1 %s ''; \\builtin printf -v PS2 %s '';"
			 " \\builtin export PROMPT_COMMAND PS1 PS2;"
			 " \\builtin export -n __hr_n __hr_p __hr_s PS0;"
			 /* A hook that cannot be restored ends the shell: another shell
			  * replaces it. */
			 " \\builtin test \"$PROMPT_COMMAND\" = ");
	add_quoted(out, h->prompt_command);
	hr_buf_adds(out, " || \\builtin exit \"$__hr_s\"; (\\builtin exit \"$__hr_s\"); }"
			 " >/dev/null 2>&1");
}

void
hr_hook_editing(int status, struct hr_buf *out)
{
	hr_buf_addf(out, " \\set -o emacs; (\\exit %d)\n", status);
}

void
hr_hook_ack_readline(struct hr_buf *out)
{
	/* since bash 5.2, so that a paste is drawn once, not in inverse video and then again */
	hr_buf_adds(out, "\\builtin bind 'set enable-bracketed-paste on'; "
			 "\\builtin bind 'set enable-active-region off' 2>/dev/null; "
			 "\\builtin bind '\"\\C-m\": accept-line'; "
			 "\\builtin bind '\"\\C-v\": quoted-insert'; "
			 "\\builtin bind '\"\\e[200~\": bracketed-paste-begin'; ");
}

void
hr_hook_ack_enter(struct hr_buf *out)
{
	/* `test`: no other spelling is tried (cdspell) */
	hr_buf_adds(out, "{ \\builtin test \"${PWD:0:1}\" = / && \\builtin test -d \"$PWD\" &&"
			 " { \\builtin printf -v __hr_a %s \"${OLDPWD+/$OLDPWD}\";"
			 " \\builtin cd -L -- \"$PWD\";"
			 " { \\builtin test -n \"$__hr_a\" &&"
			 " \\builtin printf -v OLDPWD %s \"${__hr_a:1}\"; } ||"
			 " \\builtin unset -v OLDPWD; }; }; ");
}

/* Removes a command's additions to the hook: they could hide $? of the next command, or not end. */
void
hr_hook_ack_restore(struct hr_buf *out)
{
	hr_buf_addf(out,
	    "\\builtin test \"${PS0-}${PROMPT_COMMAND[*]-}\" = \"${__hr_p-}\" ||"
	    " { \\builtin unset -v PS0 PROMPT_COMMAND;"
	    " \\builtin printf -v PS0 %%s \"${__hr_p:0:%zu}\";"
	    " \\builtin printf -v PROMPT_COMMAND %%s \"${__hr_p:%zu}\";"
	    " \\builtin export PROMPT_COMMAND; }; ",
	    HR_HOOK_STARTED_LEN, HR_HOOK_STARTED_LEN);
}

void
hr_hook_ack_unexport(struct hr_buf *out)
{
	hr_buf_adds(out, "\\builtin export -n __hr_a PS0; ");
}

void
hr_hook_ack_nonce(const struct hr_hook *h, struct hr_buf *out)
{
	hr_buf_addf(out, "\\builtin printf -v __hr_n %%s %s; ", h->nonce);
}

void
hr_hook_ack_snapshot(const struct hr_hook *h, struct hr_buf *out)
{
	hr_buf_adds(out, "{ \\builtin export -p; \\builtin printf '\\0'; } >>");
	add_quoted(out, h->exports_path);
	hr_buf_adds(out, "; ");
}

void
hr_hook_ack_source(const char *path, struct hr_buf *out)
{
	hr_buf_adds(out, "\\builtin . ");
	add_quoted(out, path);
	hr_buf_adds(out, "; ");
}

void
hr_hook_ack_begin(struct hr_buf *out)
{
	hr_buf_addc(out, ' ');
}

void
hr_hook_ack_end(bool line, struct hr_buf *out)
{
	if (line && out->len == 1)
		hr_buf_reset(out);
	else if (line)
		hr_buf_adds(out, "\\builtin " HR_HOOK_LINE_BUILTIN "; ");
	hr_buf_addc(out, '\n');
}
