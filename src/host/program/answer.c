/* Parses the lines of a program back-end. Pure. */
#include "config.h"

#include "host/program/answer.h"

#include <stdio.h>
#include <string.h>

#include "base/text/quote.h"
#include "host/cloud/cloud.h"
#include "proto/json.h"

#define WHO "the program"
#define MESSAGE_MAX 400

static const struct {
	const char *word;
	enum hr_errc code;
} codes[] = {{"not-found", HR_E_NOTFOUND}, {"gone", HR_E_NO_SANDBOX}, {"denied", HR_E_PERMISSION},
    {"unavailable", HR_E_UNAVAILABLE}, {"unsupported", HR_E_UNSUPPORTED}, {"invalid", HR_E_INVAL},
    {"canceled", HR_E_GONE}, {"failed", HR_E_RUNTIME}};

static const struct {
	const char *word;
	enum hr_program_can can;
} abilities[] = {{"wait", HR_PROGRAM_WAIT}, {"pause", HR_PROGRAM_PAUSE},
    {"resume", HR_PROGRAM_RESUME}, {"stats", HR_PROGRAM_STATS}, {"keep", HR_PROGRAM_KEEP},
    {"shell", HR_PROGRAM_SHELL}, {"server", HR_PROGRAM_SERVER}};

int
hr_program_word(struct json_object *o, const char *subject, const char *name, size_t max,
    const char **ret, struct hr_err *err)
{
	struct json_object *v;
	const char *text;
	size_t len, i;

	if (hr_field_of(WHO, subject, o, name, json_type_string, &v, err) != 0)
		return -1;
	text = hr_json_str(v, &len);
	if (len == 0 || len > max)
		return hr_err_set(err, HR_E_PROTO, WHO ": \"%s\" of %s has %zu bytes, not 1 to %zu",
		    name, subject, len, max);
	for (i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F)
			return hr_err_set(err, HR_E_PROTO,
			    WHO ": \"%s\" of %s has control characters", name, subject);
	*ret = text;
	return 0;
}

static int
read_data(struct hr_program_answer *a, struct json_object *v, const char *name, struct hr_err *err)
{
	const char *text;
	size_t len;

	if (!json_object_is_type(v, json_type_string))
		return hr_err_set(err, HR_E_PROTO, WHO ": \"%s\" of its answer is not text", name);
	text = hr_json_str(v, &len);
	if (!hr_quote_unbase64(&a->data, text, len))
		return hr_err_set(
		    err, HR_E_PROTO, WHO ": \"%s\" of its answer is not base64", name);
	return hr_buf_check(&a->data, err);
}

static int
read_error(struct hr_program_answer *a, struct json_object *o, const char *const *secrets,
    struct hr_err *err)
{
	struct json_object *message;
	const char *code, *text;
	HR_BUF(plain, 3 * HR_PROGRAM_LINE_MAX);
	HR_BUF(b, 4 * MESSAGE_MAX);
	size_t len, i;

	if (hr_program_word(o, "its error", "code", 100, &code, err) != 0 ||
	    hr_field_of(WHO, "its error", o, "message", json_type_string, &message, err) != 0)
		return -1;
	a->error.code = HR_E_RUNTIME;
	for (i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		if (strcmp(codes[i].word, code) == 0)
			a->error.code = codes[i].code;
	text = hr_json_str(message, &len);
	hr_cloud_hide(&plain, secrets, text, len);
	hr_quote_text(&b, hr_buf_str(&plain), plain.len < MESSAGE_MAX ? plain.len : MESSAGE_MAX);
	if (hr_buf_check(&plain, err) == 0 && hr_buf_check(&b, err) == 0)
		(void)hr_err_set(&a->error, a->error.code, "%s", hr_buf_str(&b));
	return a->error.msg[0] != '\0' || len == 0 ? 0 : -1;
}

static int
read_object(
    struct hr_program_answer *a, struct json_object *v, const char *name, struct hr_err *err)
{
	if (!json_object_is_type(v, json_type_object))
		return hr_err_set(
		    err, HR_E_PROTO, WHO ": \"%s\" of its answer is not an object", name);
	a->body = json_object_get(v);
	return 0;
}

/* An answer has exactly one of these members. */
static const struct {
	const char *name;
	enum hr_program_kind kind;
	int stream;
} members[] = {{"ok", HR_PROGRAM_OK, 0}, {"error", HR_PROGRAM_ERROR, 0},
    {"data", HR_PROGRAM_DATA, 0}, {"out", HR_PROGRAM_DATA, 1}, {"err", HR_PROGRAM_DATA, 2},
    {"sandbox", HR_PROGRAM_FOUND, 0}};

static int
read_members(struct hr_program_answer *a, struct json_object *o, const char *const *secrets,
    struct hr_err *err)
{
	struct json_object *id, *v = NULL, *is;
	const char *name = NULL;
	size_t i;

	if (hr_field_of(WHO, "its answer", o, "id", json_type_int, &id, err) != 0)
		return -1;
	a->id = json_object_get_int64(id);
	for (i = 0; i < sizeof(members) / sizeof(*members); i++) {
		if (!json_object_object_get_ex(o, members[i].name, &is))
			continue;
		if (name != NULL)
			return hr_err_set(err, HR_E_PROTO,
			    WHO ": its answer has both \"%s\" and \"%s\"", name, members[i].name);
		name = members[i].name;
		v = is;
		a->kind = members[i].kind;
		a->stream = members[i].stream;
	}
	if (name == NULL)
		return hr_err_set(err, HR_E_PROTO, WHO ": its answer has no \"ok\" or \"error\"");
	if (a->kind == HR_PROGRAM_DATA)
		return read_data(a, v, name, err);
	return a->kind == HR_PROGRAM_ERROR ? read_error(a, v, secrets, err)
					   : read_object(a, v, name, err);
}

int
hr_program_read(const char *line, size_t len, const char *const *secrets,
    struct hr_program_answer *ret, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	struct hr_json_error why = {0};
	int r;

	*ret = (struct hr_program_answer){0};
	hr_buf_init(&ret->data, HR_PROGRAM_LINE_MAX);
	if (len > HR_PROGRAM_LINE_MAX)
		return hr_err_set(err, HR_E_TOOLARGE,
		    WHO ": a line of its output has more than %u bytes", HR_PROGRAM_LINE_MAX);
	if (hr_json_decode_foreign(line, len, &o, &why) < 0)
		return hr_json_err(err, HR_E_PROTO, &why, WHO ": its answer is not JSON");
	if (json_object_is_type(o, json_type_object))
		r = read_members(ret, o, secrets, err);
	else
		r = hr_err_set(err, HR_E_PROTO, WHO ": its answer is not a JSON object");
	return r;
}

void
hr_program_answer_done(struct hr_program_answer *a)
{
	hr_buf_done(&a->data);
	hr_json_drop(&a->body);
}

/* Ignores unknown abilities, which a later version may define. */
static int
read_abilities(struct json_object *list, unsigned *ret, struct hr_err *err)
{
	size_t i;

	for (i = 0; i < hr_json_count(list); i++) {
		const char *word = hr_json_text(hr_json_entry(list, i));
		size_t k;

		if (word == NULL)
			return hr_err_set(
			    err, HR_E_PROTO, WHO ": an entry of \"can\" of its hello is not text");
		for (k = 0; k < sizeof(abilities) / sizeof(*abilities); k++)
			if (strcmp(abilities[k].word, word) == 0)
				*ret |= (unsigned)abilities[k].can;
	}
	return 0;
}

int
hr_program_hello(struct json_object *ok, struct hr_program_about *ret, struct hr_err *err)
{
	static const char hello[] = "its hello";
	const char *title = "", *lacks = "";
	struct hr_program_about about = {0};
	struct json_object *can;
	int64_t protocol;

	if (hr_field_int(WHO, hello, ok, "protocol", &protocol, err) != 0)
		return -1;
	if (protocol != HR_PROGRAM_PROTOCOL)
		return hr_err_set(err, HR_E_INVAL,
		    WHO
		    " speaks version %lld of the protocol, handrail speaks %d: update one of them",
		    (long long)protocol, HR_PROGRAM_PROTOCOL);
	if (hr_field_of(WHO, hello, ok, "can", json_type_array, &can, err) != 0 ||
	    read_abilities(can, &about.can, err) != 0)
		return -1;
	if (hr_json_at(ok, "title") != NULL &&
	    hr_program_word(ok, hello, "title", HR_PROGRAM_TITLE_MAX, &title, err) != 0)
		return -1;
	if (hr_json_at(ok, "lacks") != NULL &&
	    hr_program_word(ok, hello, "lacks", HR_PROGRAM_WORD_MAX, &lacks, err) != 0)
		return -1;
	(void)snprintf(about.title, sizeof(about.title), "%s", title);
	(void)snprintf(about.lacks, sizeof(about.lacks), "%s", lacks);
	*ret = about;
	return 0;
}
