/* worker/repeat: which of two equal requests of one client gets the other one's answer. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "connection.h"
#include "handle.h"
#include "lines.h"
#include "worker/repeat.h"
#include "worker/request/key.h"

/* A worker's request, with the client's connection to nginx. */
struct side {
	struct hr_worker w;
	struct hr_answer answer;
	struct hr_request r;
	struct hr_buf key;
	char text[128], id[HR_UNREAD_ID + 1];
	int client, server;
};

static struct handle h; /* the board */
static int listener;
static struct side a, b;

static void
side_init(struct side *s, char name, size_t slot)
{
	memset(s, 0, sizeof(*s));
	hr_worker_init(&s->w, h.dir, h.work_dir, h.board, &h.board->slots[slot]);
	hr_answer_init(&s->answer);
	hr_buf_init(&s->key, HR_KEY_MAX);
	memset(s->id, name, HR_UNREAD_ID);
	s->server = connection_open(listener, &s->client, s->text);
	s->r = request_blank("POST", "/execute_action");
	s->r.request_id = s->id;
	s->r.connection = s->text;
	hr_buf_adds(&s->w.body, "{\"action\":\"run\"}");
}

static void
side_done(struct side *s)
{
	(void)close(s->client);
	(void)close(s->server);
	hr_buf_done(&s->key);
	hr_answer_done(&s->answer);
	hr_worker_done(&s->w);
}

static void
setup(void)
{
	handle_init(&h, "");
	listener = connection_listener();
	side_init(&a, 'a', 1);
	side_init(&b, 'b', 2);
}

static void
teardown(void)
{
	side_done(&a);
	side_done(&b);
	(void)close(listener);
	handle_done(&h);
}

/* The request enters; the id of the request whose answer it gets is compared with that of `first`.
 */
static void
enters(struct side *s, const struct side *first)
{
	char want[HR_UNREAD_ID + 3];

	hr_buf_reset(&s->key);
	hr_buf_addf(&s->key, "%c:%s", HR_KEY_OF_NGINX, s->id);
	ck_assert(hr_repeat_enter(&s->w, &s->r, NULL, &s->key, &s->answer));
	(void)snprintf(want, sizeof(want), "%c:%s", HR_KEY_OF_NGINX, first->id);
	ck_assert_str_eq(hr_buf_str(&s->key), want);
}

static bool
answered(struct side *s)
{
	hr_repeat_answering(&s->w);
	return hr_repeat_sent(&s->w, true);
}

/* The client has the answer, closes its connection and sends the same again while the first worker
 * has not freed the place yet. */
START_TEST(read_and_sent_again)
{
	enters(&a, &a);
	hr_repeat_answering(&a.w);
	(void)shutdown(a.client, SHUT_RDWR);
	enters(&b, &b);
	ck_assert(hr_repeat_sent(&a.w, true));
	ck_assert(answered(&b));
}
END_TEST

START_TEST(left_before_the_answer)
{
	enters(&a, &a);
	(void)shutdown(a.client, SHUT_RDWR);
	enters(&b, &a);
	ck_assert_msg(!answered(&a), "the client had left");
	ck_assert(answered(&b));
}
END_TEST

/* A place stays where the answer reached nobody: the client had left, or nginx did not take it. */
START_TEST(kept_for_the_next)
{
	enters(&a, &a);
	if (_i == 0) {
		(void)shutdown(a.client, SHUT_RDWR);
		ck_assert(!answered(&a));
	} else {
		hr_repeat_answering(&a.w);
		ck_assert(!hr_repeat_sent(&a.w, false));
		(void)shutdown(a.client, SHUT_RDWR);
	}
	enters(&b, &a);
	ck_assert(answered(&b));
}
END_TEST

START_TEST(both_wait)
{
	enters(&a, &a);
	enters(&b, &b);
	ck_assert(answered(&b));
	ck_assert(answered(&a));
}
END_TEST

/* nginx itself sends the request to another worker, on the same connection. */
START_TEST(sent_by_nginx)
{
	enters(&a, &a);
	memcpy(b.id, a.id, HR_UNREAD_ID);
	b.r.connection = a.text;
	enters(&b, &a);
	ck_assert_msg(!answered(&a), "another worker has its place");
	ck_assert(answered(&b));
}
END_TEST

/* Requests that differ in what they ask for, or in who asks. */
START_TEST(not_equal)
{
	static const char *const what[] = {
	    "body", "uri", "session", "agent", "key", "token", "forwarded"};

	if (_i == 7) { /* the last character alone, or where one part ends and the next begins */
		a.r.user_agent = "agent1";
		b.r.user_agent = "agent2";
	} else if (_i == 8) {
		a.r.user_agent = "ab";
		a.r.session_key = "c";
		b.r.user_agent = "a";
		b.r.session_key = "bc";
	}
	enters(&a, &a);
	(void)shutdown(a.client, SHUT_RDWR);
	if (_i == 0)
		hr_buf_adds(&b.w.body, " ");
	else if (_i == 1)
		b.r.uri = "/other";
	else if (_i == 3)
		b.r.user_agent = what[_i];
	else if (_i == 4)
		b.r.session_key = what[_i];
	else if (_i == 5)
		b.r.authorization = what[_i];
	else if (_i == 6)
		b.r.forwarded_for = what[_i];
	if (_i == 2) {
		hr_buf_addf(&b.key, "%c:%s", HR_KEY_OF_NGINX, b.id);
		ck_assert(hr_repeat_enter(&b.w, &b.r, what[_i], &b.key, &b.answer));
		ck_assert_int_eq(hr_buf_str(&b.key)[2], 'b');
	} else {
		enters(&b, &b);
	}
	ck_assert(answered(&b));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("repeat");
	TCase *c = tcase_create("repeat");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, read_and_sent_again);
	tcase_add_test(c, left_before_the_answer);
	tcase_add_loop_test(c, kept_for_the_next, 0, 2);
	tcase_add_test(c, both_wait);
	tcase_add_test(c, sent_by_nginx);
	tcase_add_loop_test(c, not_equal, 0, 9);
	suite_add_tcase(s, c);
	return lines_run(s);
}
