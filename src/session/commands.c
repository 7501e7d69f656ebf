/* Keeps a ring of records of maximum size. */
#include "config.h"

#include "session/commands.h"

#include <string.h>

#include "base/clock.h"

static struct hr_command *
place(struct hr_commands *c, int64_t id)
{
	return &c->ring[id % HR_COMMANDS_MAX];
}

static size_t
keep(char *to, size_t room, struct hr_span s)
{
	size_t n = s.len < room ? s.len : room;

	if (n > 0)
		memcpy(to, s.p, n);
	return n;
}

void
hr_commands_begin(
    struct hr_commands *c, struct hr_span key, struct hr_span text, int64_t now, uint64_t at)
{
	struct hr_command *e;

	if (c->runs) /* the command has no end of its own, since its end was not seen */
		hr_commands_end(c, HR_COMMAND_SHELL_ENDED, -1, now, at);
	e = place(c, ++c->begun);
	e->state = (struct hr_command_state){.id = c->begun,
	    .length = (int64_t)text.len,
	    .end = HR_COMMAND_RUNNING,
	    .exit_code = -1,
	    .log_start = at,
	    .started = hr_wall_ms()};
	e->begun_at = now;
	e->key_len = keep(e->key, sizeof(e->key), key);
	e->text_len = keep(e->text, sizeof(e->text), text);
	c->runs = true;
}

void
hr_commands_end(
    struct hr_commands *c, enum hr_command_end how, int exit_code, int64_t now, uint64_t at)
{
	struct hr_command *e = place(c, c->begun);

	if (!c->runs)
		return;
	c->runs = false;
	e->state.end = how;
	e->state.exit_code = exit_code;
	e->state.log_end = at;
	e->ended_at = now;
}

const struct hr_command_state *
hr_commands_ended(const struct hr_commands *c, int64_t id)
{
	const struct hr_command_state *s;

	if (id <= 0)
		return NULL;
	s = &c->ring[id % HR_COMMANDS_MAX].state;
	return s->id == id && s->end != HR_COMMAND_RUNNING ? s : NULL;
}

const struct hr_command_state *
hr_commands_completed(const struct hr_commands *c, struct hr_span key)
{
	const struct hr_command *e = &c->ring[c->begun % HR_COMMANDS_MAX];

	return c->begun > 0 && e->state.end == HR_COMMAND_COMPLETED && key.len > 0 &&
		       key.len == e->key_len && memcmp(key.p, e->key, key.len) == 0
		   ? &e->state
		   : NULL;
}

size_t
hr_commands_list(const struct hr_commands *c, int64_t now, int64_t printed, uint64_t at,
    struct hr_command_state ret[HR_COMMANDS_MAX])
{
	int64_t id = c->begun > HR_COMMANDS_MAX ? c->begun - HR_COMMANDS_MAX + 1 : 1;
	const struct hr_command *e;
	size_t n = 0;

	for (; id <= c->begun; id++) {
		struct hr_command_state *s = &ret[n++];

		e = &c->ring[id % HR_COMMANDS_MAX];
		*s = e->state;
		s->key = (struct hr_span){e->key, e->key_len};
		s->text = (struct hr_span){e->text, e->text_len};
		if (s->end != HR_COMMAND_RUNNING) {
			s->elapsed = e->ended_at - e->begun_at;
			continue;
		}
		s->log_end = at;
		s->elapsed = now - e->begun_at;
		s->silent = now - (printed > e->begun_at ? printed : e->begun_at);
	}
	return n;
}
