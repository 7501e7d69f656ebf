/* What clients of the fleet send. To build an image (what begins with "-"): a form cut anywhere
 * makes the same of it, and no name gets through that is not below the prefix. To start a sandbox:
 * it is refused with words, or has a factor that is allowed, plugins that are texts, and a shape,
 * which is the same each time and does not know who asks or what is in the environment. A text of a
 * client of the E2B API (what begins with "?"): no pair of metadata has a null character, and no
 * path that would leave its prefix is called harmless, however it is encoded. A query of a URL of a
 * file (what begins with "&"): no token has signed it, but for the one whose signature is put
 * there, and that one no other operation. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/text/percent.h"
#include "fleet/build/buildform.h"
#include "fleet/e2b/e2b.h"
#include "fleet/request.h"
#include "proto/json.h"
#include "fuzz.h"

#define PREFIX "r.example/a"

/* What came of it: refused while it came, or by the look at the whole. */
static int
take_form(struct hr_fleet_form *f, int fd, const char *p, size_t len, size_t step)
{
	struct hr_err err = {0};
	int r = hr_fleet_form_init(f, "multipart/form-data; boundary=B", fd, &err);

	must(r == 0);
	for (; r == 0 && len > 0; p += step, len -= step) {
		step = step < len ? step : len;
		r = hr_fleet_form_feed(f, p, step, &err);
	}
	if (r == 0)
		r = hr_fleet_form_check(f, PREFIX, &err) == 0 ? 0 : -2;
	must(r == 0 || err.msg[0] != '\0');
	return r;
}

static void
one_form(const char *p, size_t len)
{
	int fds[2] = {memfd_create("whole", MFD_CLOEXEC), memfd_create("cut", MFD_CLOEXEC)};
	struct hr_fleet_form whole, cut;
	int r = take_form(&whole, fds[0], p, len, SIZE_MAX);

	must(take_form(&cut, fds[1], p, len, 1 + len % 7) == r);
	if (r == 0) {
		size_t i;

		must(whole.written == cut.written && whole.names.n == cut.names.n);
		for (i = 0; i < whole.names.n; i++) {
			must(strcmp(whole.names.v[i], cut.names.v[i]) == 0);
			must(strncmp(whole.names.v[i], PREFIX "/", strlen(PREFIX) + 1) == 0);
			must(strpbrk(whole.names.v[i], " &?%\r\n\"") == NULL);
		}
	}
	hr_fleet_form_done(&whole);
	hr_fleet_form_done(&cut);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static bool
one_pair(void *arg, const char *key, const char *value)
{
	must(strlen(key) + strlen(value) <= *(size_t *)arg);
	return true;
}

static void
one_text(const char *p, size_t len)
{
	char *text = malloc(len + 1), key[64], sum[HR_E2B_SIGNATURE];
	struct hr_buf b;

	must(text != NULL);
	memcpy(text, p, len);
	text[len] = '\0';
	(void)hr_e2b_metadata(p, len, one_pair, &len);
	must(hr_e2b_time(text) >= -1);
	must(strlen(hr_e2b_key(text, key)) <= len || hr_e2b_key(text, key) != key);
	hr_e2b_sign(text, "read", "", "token", text, sum);
	must(sum[0] == '\0' || strlen(sum) == 46);
	hr_buf_init(&b, 1u << 20);
	hr_percent_decode(&b, text, strcspn(text, "?"), false);
	if (!hr_e2b_leads_out(text)) {
		must(b.p[0] == '/' && strlen(hr_buf_str(&b)) == b.len);
		must(strstr(b.p, "/../") == NULL);
	}
	if (!hr_e2b_is_closed(text))
		must(b.len > 0 && strcasecmp(hr_buf_str(&b), "/init") != 0);
	hr_buf_done(&b);
	(void)hr_e2b_template_wrong(text);
	free(text);
}

static bool
is_signed(const char *method, const char *uri, const char *token)
{
	const struct hr_fleet_request q = {.method = method, .uri = uri};
	HR_CLEAN(hr_e2b_signed_done) struct hr_e2b_signed s;

	hr_e2b_signed_read(&q, &s);
	return hr_e2b_signed_by(&s, token);
}

/* Signs the values that were read, as a client does, and sends them in its way. */
static void
one_signature(const char *p, size_t len)
{
	char sum[HR_E2B_SIGNATURE];
	HR_BUF(uri, 1u << 20);
	HR_BUF(whole, 1u << 20);
	HR_CLEAN(hr_e2b_signed_done) struct hr_e2b_signed s;

	hr_buf_adds(&uri, "/files?");
	hr_buf_add(&uri, p, strnlen(p, len));
	must(!is_signed("GET", hr_buf_str(&uri), "token"));
	hr_e2b_signed_read(
	    &(struct hr_fleet_request){.method = "POST", .uri = hr_buf_str(&uri)}, &s);
	hr_e2b_sign(hr_buf_str(&s.path), s.operation, hr_buf_str(&s.user), "token",
	    hr_buf_str(&s.expiry), sum);
	if (sum[0] == '\0')
		return;
	hr_buf_adds(&whole, "/files?path=");
	hr_percent_encode(&whole, hr_buf_str(&s.path), "/");
	hr_buf_adds(&whole, "&username=");
	hr_percent_encode(&whole, hr_buf_str(&s.user), "");
	hr_buf_adds(&whole, "&signature_expiration=");
	hr_percent_encode(&whole, hr_buf_str(&s.expiry), "");
	hr_buf_adds(&whole, "&signature=");
	hr_percent_encode(&whole, sum, "");
	must(is_signed("POST", hr_buf_str(&whole), "token"));
	must(!is_signed("GET", hr_buf_str(&whole), "token"));
	must(!is_signed("POST", hr_buf_str(&whole), "tokem"));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char first[HR_FLEET_SHAPE], again[HR_FLEET_SHAPE];
	HR_PUT struct json_object *request = NULL;
	struct hr_json_error why;
	struct hr_strv plugins = {0};
	struct hr_err err = {0};
	const char *wrong;
	size_t i;

	if (size > 0 && *data == '-') {
		one_form((const char *)data, size);
		return 0;
	}
	if (size > 0 && *data == '?') {
		one_text((const char *)data + 1, size - 1);
		return 0;
	}
	if (size > 0 && *data == '&') {
		one_signature((const char *)data + 1, size - 1);
		return 0;
	}
	if (hr_json_decode((const char *)data, size, &request, &why) != 0)
		return 0;
	wrong = hr_fleet_request_wrong(request);
	must(wrong == NULL || *wrong != '\0');
	if (wrong == NULL) {
		must(hr_fleet_request_factor(request) >= 1 &&
		     hr_fleet_request_factor(request) <= HR_FLEET_FACTOR_MOST);
		hr_fleet_request_plugins(request, &plugins);
		for (i = 0; i < plugins.n; i++)
			must(strncmp(plugins.v[i], "--", 2) != 0);
		must(hr_fleet_request_shape(request, "x:1", first, &err) == 0);
		json_object_object_del(request, "environment");
		must(json_object_object_add(
			 request, "session_id", json_object_new_string("other")) == 0);
		must(hr_fleet_request_shape(request, "x:1", again, &err) == 0);
		must(strlen(first) == sizeof(first) - 1 && strcmp(first, again) == 0);
	}
	hr_strv_done(&plugins);
	return 0;
}
