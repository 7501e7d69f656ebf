/* Builds a tree from libyaml's events. Depth and number are limited; without aliases, nothing can
 * multiply. */
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
bad(struct reader *rd, const char *what)
{
	const yaml_parser_t *p = &rd->parser;

	if (p->error == YAML_MEMORY_ERROR)
		return hr_err_nomem(rd->err);
	return hr_err_set(rd->err, HR_E_INVAL, "not valid YAML: %s in line %zu",
	    p->problem != NULL ? p->problem : what,
	    (p->error == YAML_NO_ERROR ? p->mark.line : p->problem_mark.line) + 1);
}

static int
next(struct reader *rd, yaml_event_t *e)
{
	memset(e, 0, sizeof(*e));
	if (yaml_parser_parse(&rd->parser, e) == 0)
		return bad(rd, "a mistake");
	if (e->type == YAML_ALIAS_EVENT) {
		yaml_event_delete(e);
		return bad(rd, "an alias (\"*name\"), which is not taken here,");
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

static int node(struct reader *rd, yaml_event_t *e, unsigned depth, struct json_object **ret);

static int
sequence(struct reader *rd, unsigned depth, struct json_object *list)
{
	struct json_object *v;
	yaml_event_t e;

	for (;;) {
		if (next(rd, &e) != 0)
			return -1;
		if (e.type == YAML_SEQUENCE_END_EVENT) {
			yaml_event_delete(&e);
			return 0;
		}
		if (node(rd, &e, depth, &v) != 0)
			return -1;
		if (json_object_array_add(list, v) != 0) {
			json_object_put(v);
			return hr_err_nomem(rd->err);
		}
	}
}

static int
mapping(struct reader *rd, unsigned depth, struct json_object *map)
{
	struct json_object *v, *name;
	yaml_event_t e;
	int r;

	for (;;) {
		if (next(rd, &e) != 0)
			return -1;
		if (e.type == YAML_MAPPING_END_EVENT) {
			yaml_event_delete(&e);
			return 0;
		}
		if (e.type != YAML_SCALAR_EVENT) {
			yaml_event_delete(&e);
			return bad(rd, "a key that is not a string");
		}
		name = json_object_new_string_len(
		    (const char *)e.data.scalar.value, (int)e.data.scalar.length);
		yaml_event_delete(&e);
		if (name == NULL)
			return hr_err_nomem(rd->err);
		v = NULL;
		r = next(rd, &e) == 0 ? node(rd, &e, depth, &v) : -1;
		if (r == 0 && json_object_object_add(map, json_object_get_string(name), v) != 0) {
			json_object_put(v);
			r = hr_err_nomem(rd->err);
		}
		json_object_put(name);
		if (r != 0)
			return -1;
	}
}

/* Consumes the event; *ret is set on success only. */
static int
node(struct reader *rd, yaml_event_t *e, unsigned depth, struct json_object **ret)
{
	bool list = e->type == YAML_SEQUENCE_START_EVENT, map = e->type == YAML_MAPPING_START_EVENT;
	bool text = e->type == YAML_SCALAR_EVENT;
	struct json_object *o = NULL;
	int r;

	if (text)
		o = scalar(e);
	yaml_event_delete(e);
	if (++rd->nodes > NODES_MAX || depth >= DEPTH_MAX) {
		json_object_put(o);
		return bad(rd, "too much");
	}
	if (text) {
		*ret = o;
		return 0;
	}
	if (!list && !map)
		return bad(rd, "something unexpected");
	o = list ? json_object_new_array() : json_object_new_object();
	if (o == NULL)
		return hr_err_nomem(rd->err);
	r = list ? sequence(rd, depth + 1, o) : mapping(rd, depth + 1, o);
	if (r == 0)
		*ret = o;
	else
		json_object_put(o);
	return r;
}

int
hr_yaml_read(const char *p, size_t len, struct json_object **ret, struct hr_err *err)
{
	struct reader rd = {.err = err};
	struct json_object *found = NULL;
	yaml_event_t e;
	int r = 0;
	bool more;

	if (yaml_parser_initialize(&rd.parser) == 0)
		return hr_err_nomem(err);
	yaml_parser_set_input_string(&rd.parser, (const unsigned char *)p, len);
	/* skips the start events of stream and document; an empty text has no document */
	for (more = true; r == 0 && more;) {
		r = next(&rd, &e);
		if (r != 0)
			break;
		more = e.type == YAML_STREAM_START_EVENT || e.type == YAML_DOCUMENT_START_EVENT;
		if (more || e.type == YAML_STREAM_END_EVENT)
			yaml_event_delete(&e);
		else
			r = node(&rd, &e, 0, &found);
	}
	yaml_parser_delete(&rd.parser);
	if (r == 0)
		*ret = found;
	return r;
}
