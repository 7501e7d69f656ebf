/* handrail-agent-server: runs as the plugin for the agent server of OpenHands (handrail-plugin(5)).
 * It becomes the Python of that server, or answers for it if the server is not installed. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/path.h"
#include "http/serve.h"

#define USUAL_PYTHON "/agent-server/.venv/bin/python"
#define BODY_MAX (64u << 20)
#define NOT_INSTALLED                                                                              \
	"{\"detail\":\"The agent server is not installed in this sandbox: install the package "    \
	"openhands-agent-server with Python 3.12 or later, or name its Python in "                 \
	"HANDRAIL_AGENT_SERVER_PYTHON\"}"

enum { READY_FD = 3, HTTP_FD = 5 };

/* Returns the interpreter of a script on PATH, which the caller frees; NULL: there is none. */
static char *
script_python(const char *name)
{
	const char *dirs = getenv("PATH");
	HR_FREE char *path = dirs != NULL ? hr_path_which(dirs, name) : NULL;
	FILE *f = path != NULL ? fopen(path, "re") : NULL;
	char line[4096], *ret = NULL;

	if (f == NULL)
		return NULL;
	if (fgets(line, sizeof(line), f) != NULL && strncmp(line, "#!/", 3) == 0 &&
	    strstr(line, "/python") != NULL) {
		line[strcspn(line, " \n")] = '\0';
		ret = strdup(line + 2);
	}
	(void)fclose(f);
	return ret;
}

/* Returns the Python that has the server, which the caller frees; NULL: there is none. */
static char *
choose_python(void)
{
	const char *wanted = getenv("HANDRAIL_AGENT_SERVER_PYTHON");
	char *found =
	    wanted != NULL && wanted[0] != '\0' ? strdup(wanted) : script_python("agent-server");

	if (found == NULL)
		found = strdup(USUAL_PYTHON);
	if (found != NULL && access(found, X_OK) == 0)
		return found;
	free(found);
	return NULL;
}

/* Answers a request. The process ends once the server is there: the next request starts it. The
 * loop sends the answer before the timer fires; to stop at once would drop the answer. */
static void
answer(void *arg, struct hr_serve_request *q)
{
	HR_FREE char *python = choose_python();

	hr_serve_answer(q, 501, "application/json", NOT_INSTALLED, strlen(NOT_INSTALLED));
	if (python != NULL)
		(void)hr_watch_arm(arg, 0, NULL); /* if it fails, the next request tries again */
}

static void
stop(void *arg)
{
	hr_loop_stop(arg);
}

static int
answer_all(struct hr_err *err)
{
	struct hr_loop *loop = hr_loop_new(err);
	struct hr_watch *term = NULL, *end = NULL;
	struct hr_serve *http = NULL;
	int ready = READY_FD, r = -1;

	if (loop != NULL)
		term = hr_loop_signal(loop, SIGTERM, stop, loop, err);
	if (term != NULL)
		end = hr_loop_timer(loop, stop, loop, err);
	if (end != NULL)
		http = hr_serve_open(loop, HTTP_FD, BODY_MAX, answer, end, err);
	if (http != NULL && hr_fd_write_full(ready, "ready\n", 6, err) == 0) {
		hr_fd_close(&ready);
		r = hr_loop_run(loop, err);
	}
	hr_serve_close(http);
	hr_watch_free(end);
	hr_watch_free(term);
	hr_loop_free(loop);
	return r;
}

int
main(int argc, char **argv)
{
	HR_FREE char *python = choose_python();
	struct hr_err err = {0};

	/* the clients' keys pass through here, and the sandbox's commands have the same account */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return EXIT_FAILURE;
	hr_log_setup("agent-server", HR_LOG_CHILD, HR_LOG_INFO);
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc != 2 || getenv("HANDRAIL_STATE_DIR") == NULL) {
		(void)fprintf(stderr, "handrail-agent-server: is started by handraild\n");
		return EXIT_FAILURE;
	}
	if (python != NULL) {
		(void)execl(python, python, argv[1], (char *)NULL);
		hr_log(HR_LOG_ERROR, "%s cannot be started", python);
		return EXIT_FAILURE;
	}
	if (answer_all(&err) == 0)
		return EXIT_SUCCESS;
	hr_log(HR_LOG_ERROR, "%s", err.msg);
	return EXIT_FAILURE;
}
