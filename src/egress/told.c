/* Writes the sentences. A line is "TIME TARGET SENTENCE"; TARGET is what `handrail net allow`
 * takes. */
#include "config.h"

#include "egress/told.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "egress/policy.h"

#define SIZE_MAX_BYTES (64 << 10) /* a file that has them is replaced by a new one */
#define LINES_MAX 20              /* maximum in a second */
#define PATH_SHOWN 200
#define LINE_MAX_BYTES 2048

static int
open_new(const char *dir, int flags)
{
	char path[4096];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, EGRESS_TOLD_FILE);
	fd = hr_path_open_own(path, O_WRONLY | O_CREAT | O_APPEND | flags, 0644, NULL);
	/* the box reads it by its own accounts, whatever the caller's mask is */
	if (fd >= 0 && fchmod(fd, 0644) != 0)
		hr_fd_close(&fd);
	return fd;
}

void
egress_told_open(struct egress_told *t, const char *dir)
{
	struct stat st;

	*t = (struct egress_told){.dir = dir, .fd = open_new(dir, 0)};
	if (t->fd < 0)
		hr_log(HR_LOG_WARNING, "cannot list refusals for the sandbox: %s", strerror(errno));
	else
		t->size = fstat(t->fd, &st) == 0 ? st.st_size : 0;
}

void
egress_told_close(struct egress_told *t)
{
	hr_fd_close(&t->fd);
}

/* Puts a new file in the place of a full one, which a reader may have open. */
static void
renew(struct egress_told *t)
{
	int old = t->fd; /* stays open meanwhile, so that the new file has another number */
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/%s", t->dir, EGRESS_TOLD_FILE);
	t->fd = unlink(path) == 0 || errno == ENOENT ? open_new(t->dir, O_EXCL) : -1;
	t->size = 0;
	hr_fd_close(&old);
}

/* Appends text that the box or a rule chose, without blanks or characters that end a line. */
static void
add_text(struct hr_buf *b, const char *text, size_t most, bool blanks)
{
	size_t i;

	for (i = 0; text[i] != '\0' && i < most; i++)
		hr_buf_addc(b, (text[i] > ' ' && text[i] < 0x7F) || (blanks && text[i] == ' ')
				   ? text[i]
				   : '?');
	if (text[i] != '\0')
		hr_buf_adds(b, "...");
}

static void
add_target(struct hr_buf *b, const struct egress_event *e)
{
	char address[INET_ADDRSTRLEN] = "?";

	if (e->name != NULL)
		add_text(b, e->name, EGRESS_NAME_MAX, false);
	else
		hr_buf_adds(b, inet_ntop(AF_INET, &e->address, address, sizeof(address)));
}

void
egress_told_add(struct egress_told *t, const struct egress_event *e)
{
	int64_t now = hr_now_ms();
	HR_BUF(b, LINE_MAX_BYTES);

	if (now - t->second >= 1000) {
		t->second = now;
		t->lines = 0;
	}
	if (t->fd < 0 || t->lines++ >= LINES_MAX)
		return;
	hr_buf_addf(&b, "%lld ", (long long)(hr_wall_ms() / 1000));
	add_target(&b, e);
	hr_buf_addf(&b, ":%d ", e->port);
	if (e->method != NULL) {
		add_text(&b, e->method, PATH_SHOWN, false);
		hr_buf_addc(&b, ' ');
	}
	add_target(&b, e);
	if (e->path != NULL)
		add_text(&b, e->path, PATH_SHOWN, false);
	else
		hr_buf_addf(&b, ":%d", e->port);
	hr_buf_adds(&b, " was refused: ");
	add_text(&b, e->rule != NULL ? e->rule : "no rule", PATH_SHOWN, true);
	hr_buf_addc(&b, '\n');
	if (hr_buf_check(&b, NULL) < 0)
		return;
	if (t->size + (off_t)b.len > SIZE_MAX_BYTES)
		renew(t);
	if (t->fd >= 0 && hr_fd_write_full(t->fd, b.p, b.len, NULL) == 0)
		t->size += (off_t)b.len;
}
