/* The texts given to bash. Everything is immune to set -e, -u, -x, -C and to DEBUG traps that
 * print: the outer group sends all output, of traps and traces as well, to /dev/null. */
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

/* The text that is read and run at every prompt, so it is short: the rest is in a file, or in the
 * builtin where that is loaded. An array cannot be exported: no child shell takes itself for one
 * that has the builtin. The backslashes keep aliases away. */
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

/* A child bash has no nonce and does not wait for an ack:
 * nobody may be there to give it; nor does who could not report. What is seldom needed comes with
 * an ack. Most acks are for the builtin alone, which reads them faster. PS1 is emptied only where
 * it is set, since assigning to a read-only variable would end the text there: hence last. After a
 * syntax error within [[ bash 5.2 trips over the next [[, which must not be this one. */
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

/* A FIFO that everybody may write to has a name that cannot be guessed, and so has the file that
 * names it: who is not given it in the environment, and cannot list the directory, does not find
 * it. */
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
		/* characters are bytes unless the directory's name is special: then it never
		 * matches, and the shell is always made to compare */
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

/* Also under set -a: what is ours alone is not for the environment. */
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
	/* History expansion rewrites commands such as echo "a!b". Handrail's own lines begin with a
	 * blank, so that they are not in the history; an assignment to what is read-only would end
	 * the file. */
	hr_buf_adds(out, "set +H -o emacs\nunset -v PROMPT_COMMAND TMOUT\n"
			 "\\builtin printf -v HISTCONTROL %s "
			 "\"${HISTCONTROL:+$HISTCONTROL:}ignorespace\" 2>/dev/null\n");
	hr_hook_ack_readline(out);
	hr_buf_adds(out, "\n");
	add_setup(h, out);
	hr_buf_adds(out, "\n");
	if (module == NULL)
		return;
	/* where it cannot be loaded all goes on without it */
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

/* The builtin, where it was loaded. Where it is no more, nothing may call it: a shell that would do
 * so for ever ends. */
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
	/* In POSIX mode special builtins are found before functions of the same name, and the mode
	 * can be entered by an assignment alone, which here keeps $? as well. printf -v fails on a
	 * read-only variable; an assignment would end the line. */
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
			 /* what cannot be put back ends the shell: another takes its place */
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
	/* a paste is drawn once, not in inverse video and then again; since bash 5.2 */
	hr_buf_adds(out, "\\builtin bind 'set enable-bracketed-paste on'; "
			 "\\builtin bind 'set enable-active-region off' 2>/dev/null; "
			 "\\builtin bind '\"\\C-m\": accept-line'; "
			 "\\builtin bind '\"\\C-v\": quoted-insert'; "
			 "\\builtin bind '\"\\e[200~\": bracketed-paste-begin'; ");
}

/* What a command put beside the hook, or in its place, goes: it could hide $? of the next one, or
 * not end. */
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
