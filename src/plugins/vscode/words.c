/* Composes strings for the VS Code server. */
#include "config.h"

#include "plugins/vscode/words.h"

#include <string.h>

#include "base/text/text.h"

bool
hr_vscode_user_ok(const char *user, const char *extra)
{
	return strcmp(user, "root") == 0 || strcmp(user, "openhands") == 0 ||
	       (extra != NULL && extra[0] != '\0' && strcmp(user, extra) == 0);
}

int
hr_vscode_port(const char *text)
{
	long long port;

	return text != NULL && hr_text_python_int(text, &port) == 0 && port > 0 && port <= 65535
		   ? (int)port
		   : 0;
}

static void
add_trimmed(struct hr_buf *b, const char *path)
{
	size_t len = strlen(path);

	while (len > 0 && path[len - 1] == '/')
		len--;
	if (len > 0 && path[0] != '/')
		hr_buf_addc(b, '/');
	hr_buf_add(b, path, len);
}

void
hr_vscode_base_path(
    struct hr_buf *b, const char *wanted, const char *runtime_url, const char *runtime_id)
{
	const char *path;
	size_t len;

	if (wanted != NULL && wanted[0] != '\0') {
		add_trimmed(b, wanted);
		return;
	}
	if (runtime_url == NULL || runtime_id == NULL || runtime_id[0] == '\0')
		return;
	path = strstr(runtime_url, "://");
	path = path != NULL ? path + 3 : runtime_url;
	path += strcspn(path, "/?#");
	len = strlen(runtime_id);
	if (path[0] == '/' && strncmp(path + 1, runtime_id, len) == 0)
		hr_buf_addf(b, "/%s/vscode", runtime_id);
}

void
hr_vscode_line(struct hr_buf *b, const char *line, const char *token)
{
	size_t len = strlen(token);
	const char *at;

	while (len > 0 && (at = strstr(line, token)) != NULL) {
		hr_buf_add(b, line, (size_t)(at - line));
		hr_buf_adds(b, "...");
		line = at + len;
	}
	hr_buf_adds(b, line);
}
