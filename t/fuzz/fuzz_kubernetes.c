/* Reads the bytes of an API server, a kubeconfig, a program that gives credentials, and a WebSocket
 * of either side: no crash, and an error says something. The first byte chooses the reader. */
#include "config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "host/kubernetes/kube.h"
#include "host/kubernetes/login.h"
#include "host/kubernetes/quantity.h"
#include "host/kubernetes/status.h"
#include "host/kubernetes/why.h"
#include "http/wsframe.h"
#include "proto/json.h"
#include "fuzz.h"

static void
need_error(const struct hr_err *err)
{
	if (err->code == HR_OK || err->msg[0] == '\0')
		abort();
}

static void
try_status(const char *p, size_t len)
{
	struct hr_kube_status s;
	struct hr_err err = {0};

	hr_kube_status_read(&s, 403, p, len);
	if (hr_kube_status_error(&s, &err) != -1)
		abort();
	need_error(&err);
	if (strpbrk(err.msg, "\n\r\x1b") != NULL)
		abort();
}

static void
try_watch(const char *p, size_t len)
{
	enum hr_kube_event event = HR_KUBE_LIST;
	HR_PUT struct json_object *o = NULL;
	struct hr_kube_status s;
	struct hr_kube_why why;
	char version[128] = "";
	int r = hr_kube_watch_line(p, len, &event, &o, version, sizeof(version), &s);

	if ((r == 1) != (o != NULL) ||
	    (r == 1 && event != HR_KUBE_THERE && event != HR_KUBE_DELETED))
		abort();
	hr_kube_why(&why, o);
	if (strpbrk(why.text, "\n\r\x1b") != NULL)
		abort();
}

static int
on_message(void *arg, enum hr_ws_op op, const char *p, size_t len)
{
	size_t *total = arg;

	if (op == 0 || (op >= HR_WS_CLOSE && len > HR_WS_CONTROL_MAX) || (len > 0 && p == NULL))
		abort();
	*total += len;
	return 0;
}

static void
try_frames(const char *p, size_t len, size_t piece, bool server)
{
	struct hr_err err = {0};
	struct hr_wsframes f;
	size_t total = 0, n, at;
	int r = 0;

	hr_wsframes_init(&f);
	f.server = server;
	for (at = 0; r == 0 && at < len; at += n) {
		n = len - at < piece ? len - at : piece;
		r = hr_wsframes_feed(&f, p + at, n, on_message, &total, &err);
	}
	if (total > len || r == 1 || (r != 0 && err.msg[0] == '\0'))
		abort();
	hr_wsframes_done(&f);
}

static void
try_kubeconfig(const char *p, size_t len)
{
	HR_PUT struct json_object *merged = NULL;
	HR_CLEAN(hr_kube_login_done) struct hr_kube_login l = {0};
	struct hr_err err = {0};

	if (hr_kube_login_merge(&merged, p, len, "/nonexistent", &err) != 0)
		need_error(&err);
	else if (hr_kube_login_choose(&l, merged, NULL, &err) != 0)
		need_error(&err);
	else if (l.server == NULL)
		abort();
}

static void
try_credential(const char *p, size_t len)
{
	HR_CLEAN(hr_kube_login_done) struct hr_kube_login l = {0};
	struct hr_err err = {0};

	if (hr_kube_login_take(&l, p, len, 1000, &err) != 0)
		need_error(&err);
	else if (l.expires_in < 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data + 1;
	char text[64];

	if (size == 0 || size > 100000)
		return 0;
	switch (data[0] % 6) {
	case 0: try_status(p, size - 1); break;
	case 1: try_watch(p, size - 1); break;
	case 2: try_frames(p, size - 1, 1 + data[0] / 6, data[0] / 6 % 2 == 1); break;
	case 3: try_kubeconfig(p, size - 1); break;
	case 4: try_credential(p, size - 1); break;
	default:
		memcpy(text, p, size - 1 < sizeof(text) ? size - 1 : sizeof(text) - 1);
		text[size - 1 < sizeof(text) - 1 ? size - 1 : sizeof(text) - 1] = '\0';
		if (hr_kube_quantity(text) < 0)
			abort();
		break;
	}
	return 0;
}
