/* Freezes a box for its copy. The files of its root become a layer first, which takes the same
 * short time for any number of files. */
#include "config.h"

#include "box/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clean.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/process/hierarchy.h"
#include "box/overlay.h"
#include "box/rest.h"
#include "proto/json.h"

#define FREEZE_PATIENCE_MS 5000
#define FREEZE_TICK_MS 2

/* The files of cgroups of version 2 and version 1: the one to write and its values, the one to read
 * and its text when all processes have stopped. */
static const struct {
	const char *put, *frozen, *thawed, *read, *stopped;
} ways[] = {{"cgroup.freeze", "1", "0", "cgroup.events", "frozen 1"},
    {"freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN"}};

static int
freeze(const char *group, struct hr_err *err)
{
	const size_t way = hr_hierarchy_put(group, ways[0].put, ways[0].frozen, NULL) != 0;
	HR_FREE char *path = hr_path_join(group, ways[way].read);
	struct pollfd events = {.events = POLLPRI};
	HR_CLOSE int fd = -1;
	char text[4096];
	ssize_t n = 0;
	int i;

	if (path == NULL)
		return hr_err_nomem(err);
	if (way == 1 && hr_hierarchy_put(group, ways[1].put, ways[1].frozen, err) < 0)
		return -1;
	events.fd = fd = open(path, O_RDONLY | O_CLOEXEC);
	for (i = 0; fd >= 0 && i < FREEZE_PATIENCE_MS / FREEZE_TICK_MS; i++) {
		n = pread(fd, text, sizeof(text) - 1, 0);
		if (n < 0)
			break;
		text[n] = '\0';
		if (strstr(text, ways[way].stopped) != NULL)
			return 0;
		/* version 1 reports no change */
		(void)poll(&events, 1, FREEZE_TICK_MS);
	}
	if (fd < 0 || n < 0)
		return hr_err_sys(err, errno, "read %s", path);
	return hr_err_set(err, HR_E_TIMEOUT, "the box did not freeze in time: try again");
}

static void
thaw(const char *group)
{
	if (hr_hierarchy_put(group, ways[0].put, ways[0].thawed, NULL) < 0)
		(void)hr_hierarchy_put(group, ways[1].put, ways[1].thawed, NULL);
}

/* Makes the files of the box a layer if nothing depends on their mount. Returns as box_shift(). */
static int
shift(const struct box_snapshot *s, char *why, size_t size, struct hr_err *err)
{
	int r = box_rest(s->group, s->shift.pid, why, size, err);

	return r > 0 ? box_shift(s->copy.from, &s->shift, why, size, err) : r;
}

/* Makes the layer or the copy while the group is frozen. */
static int
shift_and_copy(
    struct box_snapshot *s, bool *ret_shifted, char *why, size_t size, struct hr_err *err)
{
	int r = s->shift.pid > 0 ? shift(s, why, size, err) : 0;

	if (r < 0)
		return -1;
	*ret_shifted = r > 0;
	if (*ret_shifted)
		s->copy.without[s->copy.nwithout++] = BOX_OVERLAY_TOP_OF(s->shift.root);
	return box_copy(&s->copy, err);
}

/* Prints the line of --shift. */
static int
report(bool shifted, const char *why, struct hr_err *err)
{
	HR_BUF(line, 8 * BOX_SHIFT_WHY);

	hr_buf_addf(&line, "{\"shifted\": %s, \"reason\": ", shifted ? "true" : "false");
	(void)hr_json_put_str(&line, why, strlen(why), HR_JSON_REPLACE);
	hr_buf_adds(&line, "}\n");
	return hr_buf_check(&line, err) < 0
		   ? -1
		   : hr_fd_write_full(STDOUT_FILENO, line.p, line.len, err);
}

int
box_snapshot(struct box_snapshot *s, bool *ret_shifted, struct hr_err *err)
{
	char why[BOX_SHIFT_WHY] = "";
	int r;

	*ret_shifted = false;
	/* the reader of the output may be killed, and the group must be thawed then, too */
	(void)signal(SIGPIPE, SIG_IGN);
	r = s->group != NULL ? freeze(s->group, err) : 0;
	if (r == 0)
		r = shift_and_copy(s, ret_shifted, why, sizeof(why), err);
	if (s->group != NULL)
		thaw(s->group);
	return r == 0 && s->shift.pid > 0 ? report(*ret_shifted, why, err) : r;
}
