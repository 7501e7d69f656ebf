/* Checks what a box needs on this machine, and what the kernel enforces. */
#include "config.h"

#include "host/box/box_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/path.h"
#include "base/text/text.h"
#include "host/common/exam.h"
#include "host/common/module.h"
#include "host/config/settings.h"
#include "proto/json.h"

/* Reports the lines that handrail-box --check prints after those of the document. */
static void
report_lines(const char *text, hr_finding_fn *fn, void *arg)
{
	static const char last[] = "\nIt runs "; /* start of the last line of the document */
	const char *line = strstr(text, last), *end;

	for (line = line != NULL ? strchrnul(line + 1, '\n') : ""; *line != '\0'; line = end) {
		line++;
		end = strchrnul(line, '\n');
		if (end > line)
			hr_exam_say(fn, arg, true, "box", "%.*s", (int)(end - line), line);
	}
}

/* Checks a document with an empty storage. */
static int
check(const char *storage, const char *network, struct hr_buf *out, struct hr_err *err)
{
	static const char *const argv[] = {"/bin/true", NULL};
	HR_PUT struct json_object *o =
	    hr_json_texts(err, "name", "doctor", "storage", storage, "network", network, NULL);

	return hr_json_set(o, "argv", hr_json_list(NULL, argv), err) < 0
		   ? -1
		   : hr_box_check(o, out, err);
}

/* Checks whether a box can have a network with rules. */
static void
examine_egress(const char *storage, hr_finding_fn *fn, void *arg)
{
	HR_FREE char *broker = hr_module_path("handrail-egress", NULL);
	HR_BUF(out, 1u << 16);
	struct hr_err e = {0};

	if (broker == NULL || access(broker, X_OK) != 0)
		hr_exam_say(fn, arg, false, "egress",
		    "box.network=egress needs handrail-egress, and %s cannot be executed",
		    broker != NULL ? broker : "it");
	else if (check(storage, "egress", &out, &e) < 0)
		hr_exam_say(fn, arg, false, "egress", "box.network=egress: %s", e.msg);
	else
		fn(arg, true, "egress",
		    "box.network=egress works: a box reaches what sandbox.network allows");
}

int
hr_box_doctor(void *self, hr_finding_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_box *b = self;
	const char *const *env = b->h->environ;
	const char *given = hr_env_get(env, "HANDRAIL_SERVER");
	const char *tmp = hr_env_get(env, "TMPDIR");
	HR_FREE char *launcher = NULL;
	HR_FREE char *storage = NULL;
	HR_BUF(out, 1u << 16);
	struct hr_err e = {0};

	hr_exam_file(fn, arg, "handraild", given != NULL ? given : HR_SBINDIR "/handraild",
	    "Debian: apt-get install handrail-runtime; or name it in HANDRAIL_SERVER.");
	launcher = hr_box_program(HR_BOX_LAUNCHER, &e);
	fn(arg, launcher != NULL, "handrail-box", launcher != NULL ? launcher : e.msg);
	hr_exam_program(fn, arg, env, "bash", "Debian: apt-get install bash");
	if (launcher == NULL)
		return 0;
	if (hr_text_setf(&storage, err, "%s/handrail-doctor-XXXXXX", tmp != NULL ? tmp : "/tmp") !=
	    0)
		return -1;
	if (mkdtemp(storage) == NULL)
		return hr_err_sys(err, errno, "create %s", storage);
	if (check(storage, "none", &out, &e) == 0) {
		report_lines(hr_buf_str(&out), fn, arg);
		examine_egress(storage, fn, arg);
	} else {
		fn(arg, false, "box", e.msg);
	}
	return hr_path_remove(storage, err);
}
