/* Returns the connections of the sandbox that were refused (doc/live.md). */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "proto/json.h"
#include "worker/worker.h"

#define TAIL_MAX (64u << 10) /* bytes that are read at most, the last ones */

/* Reads the end of the file, from the start of a line. Returns false with errno. */
static bool
read_tail(const char *path, struct hr_buf *text)
{
	HR_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	off_t at;
	size_t n;

	if (fd < 0 || fstat(fd, &st) != 0)
		return errno == ENOENT;
	at = st.st_size > (off_t)TAIL_MAX ? st.st_size - (off_t)TAIL_MAX : 0;
	n = (size_t)(st.st_size - at);
	if (n == 0)
		return true;
	if (hr_buf_reserve(text, n) == NULL || hr_fd_pread_full(fd, text->p, n, at) != 0)
		return false;
	hr_buf_grew(text, n);
	if (at > 0)
		hr_buf_drop_front(text, strcspn(text->p, "\n") + 1);
	return true;
}

/* Appends the refusal of a line "TIME TARGET SENTENCE". */
static void
put_line(struct hr_buf *b, char *line, bool first)
{
	char *target = strchr(line, ' '), *sentence = NULL;

	if (target != NULL)
		sentence = strchr(target + 1, ' ');
	if (sentence == NULL)
		return;
	*target++ = '\0';
	*sentence++ = '\0';
	hr_buf_addf(b, "%s{\"time\":%lld,\"target\":", first ? "" : ",", strtoll(line, NULL, 10));
	(void)hr_json_put_str(b, target, strlen(target), HR_JSON_REPLACE);
	hr_buf_adds(b, ",\"text\":");
	(void)hr_json_put_str(b, sentence, strlen(sentence), HR_JSON_REPLACE);
	hr_buf_addc(b, '}');
}

void
hr_handle_live_network(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	HR_BUF(text, TAIL_MAX);
	char *rest, *line;
	size_t start;

	(void)r;
	if (w->network_log == NULL || w->network_log[0] == '\0') {
		hr_buf_adds(&ret->body, "{\"rules\":false,\"refused\":[]}");
		return;
	}
	if (!read_tail(w->network_log, &text)) {
		hr_answer_generic(ret);
		return;
	}
	hr_buf_adds(&ret->body, "{\"rules\":true,\"refused\":[");
	start = ret->body.len;
	for (rest = text.p; rest != NULL && (line = strsep(&rest, "\n")) != NULL;)
		put_line(&ret->body, line, ret->body.len == start);
	hr_buf_adds(&ret->body, "]}");
}
