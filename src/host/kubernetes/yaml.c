/* From libyaml's events to a tree. Depth and number of what comes are bounded: there are no aliases
 * that could make more of it. */
#include "config.h"

#include "host/kubernetes/yaml.h"

#include <string.h>

#include <json-c/json_object.h>
#include <yaml.h>

#include "base/err.h"

#define DEPTH_MAX 40
#define NODES_MAX 200000

struct reader {
	yaml_parser_t parser;
	unsigned nodes;
	struct hr_err *err;
};

static int
bad(struct reader *r, const char *what)
{
	const yaml_parser_t *p = &r->parser;

	if (p->error == YAML_MEMORY_ERROR)
		return hr_err_nomem(r->err);
	return hr_err_set(r->err, HR_E_INVAL, "no YAML: %s in line %zu",
	    p->problem != NULL ? p->problem : what,
	    (p->error == YAML_NO_ERROR ? p->mark.line : p->problem_mark.line) + 1);
}

static int
next(struct reader *r, yaml_event_t *e)
{
	memset(e, 0, sizeof(*e));
	if (yaml_parser_parse(&r->parser, e) == 0)
		return bad(r, "a mistake");
	if (e->type == YAML_ALIAS_EVENT) {
		yaml_event_delete(e);
		return bad(r, "an alias (\"*name\"), which is not taken here,");
	}
	return 0;
}

static struct json_object *
scalar(const yaml_event_t *e)
{
	const char *p = (const char *)e->data.scalar.value;
	size_t len = e->data.scalar.length;
	bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

	if (plain && (len == 0 || strcmp(p, "~") == 0 || strcmp(p, "null") == 0))
		return NULL;
	return json_object_new_string_len(p, (int)len);
}

static int node(struct reader *r, yaml_event_t *e, unsigned depth, struct json_object **ret);

static int
sequence(struct reader *r, unsigned depth, struct json_object *list)
{
	struct json_object *v;
	yaml_event_t e;

	for (;;) {
		if (next(r, &e) != 0)
			return -1;
		if (e.type == YAML_SEQUENCE_END_EVENT) {
			yaml_event_delete(&e);
			return 0;
		}
		if (node(r, &e, depth, &v) != 0)
			return -1;
		if (json_object_array_add(list, v) != 0) {
			json_object_put(v);
			return hr_err_nomem(r->err);
		}
	}
}

static int
mapping(struct reader *r, unsigned depth, struct json_object *map)
{
	struct json_object *v, *name;
	yaml_event_t e;
	int rc;

	for (;;) {
		if (next(r, &e) != 0)
			return -1;
		if (e.type == YAML_MAPPING_END_EVENT) {
			yaml_event_delete(&e);
			return 0;
		}
		if (e.type != YAML_SCALAR_EVENT) {
			yaml_event_delete(&e);
			return bad(r, "a key that is no text");
		}
		name = json_object_new_string_len(
		    (const char *)e.data.scalar.value, (int)e.data.scalar.length);
		yaml_event_delete(&e);
		if (name == NULL)
			return hr_err_nomem(r->err);
		v = NULL;
		rc = next(r, &e) == 0 ? node(r, &e, depth, &v) : -1;
		if (rc == 0 && json_object_object_add(map, json_object_get_string(name), v) != 0) {
			json_object_put(v);
			rc = hr_err_nomem(r->err);
		}
		json_object_put(name);
		if (rc != 0)
			return -1;
	}
}

/* Takes the event; *ret is set on success only. */
static int
node(struct reader *r, yaml_event_t *e, unsigned depth, struct json_object **ret)
{
	bool list = e->type == YAML_SEQUENCE_START_EVENT, map = e->type == YAML_MAPPING_START_EVENT;
	bool text = e->type == YAML_SCALAR_EVENT;
	struct json_object *o = NULL;
	int rc;

	if (text)
		o = scalar(e);
	yaml_event_delete(e);
	if (++r->nodes > NODES_MAX || depth >= DEPTH_MAX) {
		json_object_put(o);
		return bad(r, "too much");
	}
	if (text) {
		*ret = o;
		return 0;
	}
	if (!list && !map)
		return bad(r, "something unexpected");
	o = list ? json_object_new_array() : json_object_new_object();
	if (o == NULL)
		return hr_err_nomem(r->err);
	rc = list ? sequence(r, depth + 1, o) : mapping(r, depth + 1, o);
	if (rc == 0)
		*ret = o;
	else
		json_object_put(o);
	return rc;
}

int
hr_yaml_read(const char *p, size_t len, struct json_object **ret, struct hr_err *err)
{
	struct reader r = {.err = err};
	struct json_object *found = NULL;
	yaml_event_t e;
	int rc = 0;

	if (yaml_parser_initialize(&r.parser) == 0)
		return hr_err_nomem(err);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)p, len);
	/* the starts of the stream and of the document; an empty text has no document */
	for (bool more = true; rc == 0 && more;) {
		rc = next(&r, &e);
		if (rc != 0)
			break;
		more = e.type == YAML_STREAM_START_EVENT || e.type == YAML_DOCUMENT_START_EVENT;
		if (more || e.type == YAML_STREAM_END_EVENT)
			yaml_event_delete(&e);
		else
			rc = node(&r, &e, 0, &found);
	}
	yaml_parser_delete(&r.parser);
	if (rc == 0)
		*ret = found;
	return rc;
}
