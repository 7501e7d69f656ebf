/* What holds the streams of pages: the bytes of a source without a gap that is not told, texts told
 * once, and a page that reads slowly, is new, or comes from before a new count. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "proto/frame.h"
#include "worker/hub_page.h"
#include "worker/stay.h"
#include "worker/worker.h"

static struct hr_source *source;
static struct hr_told told[HR_HUB_TOLD];
static struct hr_hub_page *page;
static int peer;
static struct hr_buf raw; /* behind the last whole record */
static struct hr_buf got; /* what the page was sent, without its records */
static bool ended;

static void
begin(uint64_t at)
{
	int pair[2];

	page = hr_hub_page_new(source, at);
	ck_assert_ptr_nonnull(page);
	page->request_id = 0x0102;
	ck_assert_int_eq(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	page->fd = pair[0];
	peer = pair[1];
	ended = false;
}

static void
leave(void)
{
	hr_hub_page_free(page);
	page = NULL;
	hr_fd_close(&peer);
}

static void
make(void)
{
	size_t i;

	source = hr_source_new("default");
	ck_assert_ptr_nonnull(source);
	for (i = 0; i < HR_HUB_TOLD; i++)
		hr_told_init(&told[i]);
	hr_buf_init(&raw, 1u << 20);
	hr_buf_init(&got, 64u << 20);
}

static void
drop(void)
{
	size_t i;

	if (page != NULL)
		leave();
	hr_source_free(source);
	for (i = 0; i < HR_HUB_TOLD; i++)
		hr_told_done(&told[i]);
	hr_buf_done(&raw);
	hr_buf_done(&got);
}

static int
takes(uint64_t offset, const char *p, size_t len)
{
	const struct hr_output_piece piece = {.offset = offset, .bytes = {p, len}};

	return hr_source_take(source, &piece);
}

/* All records that are there whole, into got. */
static void
hear(void)
{
	const unsigned char *h;
	ssize_t n;
	char piece[65536];

	while ((n = read(peer, piece, sizeof(piece))) > 0)
		hr_buf_add(&raw, piece, (size_t)n);
	ck_assert(n == 0 || errno == EAGAIN);
	while (raw.len >= 8) {
		size_t len;

		h = (const unsigned char *)raw.p;
		len = (size_t)h[4] << 8 | h[5];
		if (raw.len < 8 + len)
			break;
		ck_assert_msg(h[0] == 1 && h[2] == 1 && h[3] == 2 && h[6] == 0, "a wrong record");
		ck_assert(!ended);
		ended = h[1] == 3;
		if (!ended) {
			ck_assert_uint_eq(h[1], 6);
			hr_buf_add(&got, raw.p + 8, len);
		}
		hr_buf_drop_front(&raw, 8 + len);
	}
}

/* Sends and reads until it knows all. */
static void
settle(void)
{
	int r;

	do {
		r = hr_hub_page_send(page, told);
		ck_assert_int_ge(r, 0);
		hear();
	} while (r > 0);
}

static void
tell(struct hr_told *t, const char *event, const char *data)
{
	HR_BUF(b, 1024);

	hr_buf_adds(&b, data);
	hr_told_set(t, event, &b);
}

static void
expect(const char *text)
{
	ck_assert_str_eq(hr_buf_str(&got), text);
	hr_buf_reset(&got);
}

START_TEST(told_once)
{
	begin(0);
	tell(&told[HR_HUB_SERVER], "server", "{\"a\":1}");
	tell(&told[HR_HUB_SERVER], "server", "{\"a\":1}");
	ck_assert_uint_eq(told[HR_HUB_SERVER].turn, 1);
	settle();
	expect("event: server\ndata: {\"a\":1}\n\n");
	tell(&told[HR_HUB_SERVER], "server", "{\"a\":2}");
	tell(&told[HR_HUB_SERVER], "server",
	    "{\"a\":3}"); /* the one between is of no use any more */
	tell(&source->state, "shell", "{}");
	settle();
	expect("event: shell\ndata: {}\n\nevent: server\ndata: {\"a\":3}\n\n");
	tell(&told[HR_HUB_LOG], "log", "{\"next\":2}");
	settle();
	expect("event: log\ndata: {\"next\":2}\n\n");
	settle();
	expect("");
	hr_hub_page_end(page);
	hear();
	ck_assert(ended);
}
END_TEST

START_TEST(too_much_is_not_told)
{
	HR_BUF(b, 8);

	begin(0);
	tell(&told[HR_HUB_SAMPLE], "sample", "{}");
	hr_buf_adds(&b, "more than that");
	hr_told_set(&told[HR_HUB_SAMPLE], "sample", &b);
	hr_buf_done(&b);
	ck_assert_uint_eq(told[HR_HUB_SAMPLE].turn, 1);
	ck_assert(told[HR_HUB_SAMPLE].lost); /* and it was logged once */
	tell(&told[HR_HUB_SAMPLE], "sample", "{}");
	ck_assert(!told[HR_HUB_SAMPLE].lost);
	settle();
	expect("event: sample\ndata: {}\n\n");
}
END_TEST

START_TEST(bytes_and_gaps)
{
	begin(0);
	ck_assert_int_eq(takes(0, "abc", 3), 0);
	settle();
	expect("event: output\nid: 3\ndata: {\"offset\":0,\"base64\":\"YWJj\"}\n\n");
	/* the keeper has lost some */
	ck_assert_int_eq(takes(10, "xyz", 3), 0);
	ck_assert_uint_eq(hr_source_end(source), 13);
	settle();
	expect("event: gap\nid: 10\ndata: {\"from\":3,\"to\":10}\n\n"
	       "event: output\nid: 13\ndata: {\"offset\":10,\"base64\":\"eHl6\"}\n\n");
	/* it counts anew: that is another source */
	ck_assert_int_eq(takes(5, "x", 1), -1);
	leave();
	begin(11); /* one that comes back behind its last byte */
	settle();
	expect("event: output\nid: 13\ndata: {\"offset\":11,\"base64\":\"eXo=\"}\n\n");
	leave();
	begin(20); /* before its place: those come */
	settle();
	expect("");
	leave();
	begin(20);
	page->anew = true; /* its place is of a count before this */
	settle();
	expect("event: gap\nid: 10\ndata: {\"from\":20,\"to\":10}\n\n"
	       "event: output\nid: 13\ndata: {\"offset\":10,\"base64\":\"eHl6\"}\n\n");
}
END_TEST

/* Offsets of all outputs and gaps that were heard follow each other; returns the last. */
static uint64_t
follow(uint64_t at, unsigned *ret_gaps)
{
	const char *p = hr_buf_str(&got), *e;
	unsigned long long from, to;

	*ret_gaps = 0;
	for (; *p != '\0'; p = e + 2) {
		e = strstr(p, "\n\n");
		ck_assert_ptr_nonnull(e);
		if (sscanf(p, "event: gap\nid: %*u\ndata: {\"from\":%llu,\"to\":%llu}", &from,
			&to) == 2)
			++*ret_gaps;
		else
			ck_assert_int_eq(
			    sscanf(
				p, "event: output\nid: %llu\ndata: {\"offset\":%llu,", &to, &from),
			    2);
		ck_assert_uint_eq(from, at);
		ck_assert_uint_gt(to, from);
		at = to;
	}
	return at;
}

/* 12 MB beside a page that reads nothing: the memory is bounded, and the page is told what it lost.
 */
START_TEST(one_that_does_not_read)
{
	static char block[65536];
	uint64_t at = 0;
	unsigned gaps;
	int r = 0;

	begin(0);
	memset(block, 'x', sizeof(block));
	while (at < 12u << 20) {
		ck_assert_int_eq(takes(at, block, sizeof(block)), 0);
		at += sizeof(block);
		r = hr_hub_page_send(page, told);
		ck_assert_int_ge(r, 0);
		ck_assert_uint_le(page->out.len, 65536);
		ck_assert_uint_le(source->ring.len, HR_SOURCE_RING + HR_SOURCE_SLACK);
	}
	ck_assert_int_eq(r, 1);
	settle();
	ck_assert_uint_eq(follow(0, &gaps), at);
	ck_assert_uint_eq(gaps, 1);
}
END_TEST

START_TEST(one_that_left)
{
	begin(0);
	ck_assert(signal(SIGPIPE, SIG_IGN) != SIG_ERR); /* as a worker does */
	hr_fd_close(&peer);
	ck_assert_int_eq(takes(0, "abc", 3), 0);
	ck_assert_int_eq(hr_hub_page_send(page, told), -1);
}
END_TEST

START_TEST(when_to_look)
{
	ck_assert(!hr_source_due(source, 1000));
	hr_source_printed(source, 1000);
	ck_assert(!hr_source_due(source, 1099));
	hr_source_printed(source, 1099); /* does not put the first look off */
	ck_assert(hr_source_due(source, 1100));
	ck_assert(!hr_source_due(source, 2098));
	ck_assert(hr_source_due(source, 2099)); /* a second behind the last byte */
	ck_assert(!hr_source_due(source, 100000));
}
END_TEST

START_TEST(over_with_its_sign_in)
{
	HR_FREE struct hr_worker *w = calloc(1, sizeof(*w));
	HR_FREE struct hr_scoreboard *board = calloc(1, sizeof(*board));
	struct hr_stay key = {.signed_in = false}, over = {.signed_in = true}, lasts = over;

	ck_assert_ptr_nonnull(w);
	ck_assert_ptr_nonnull(board);
	w->board = board;
	memset(over.by.cookie, 1, sizeof(over.by.cookie));
	memset(lasts.by.cookie, 2, sizeof(lasts.by.cookie));
	over.by.until_ns = hr_now_ns();
	lasts.by.until_ns = over.by.until_ns + INT64_C(3600) * HR_NS_PER_S;
	ck_assert(hr_signin_add(&board->signins, &over.by, over.by.until_ns - 1));
	ck_assert(hr_signin_add(&board->signins, &lasts.by, over.by.until_ns - 1));
	ck_assert(hr_stay_lasts(w, &key));
	ck_assert(hr_stay_lasts(w, &lasts));
	ck_assert(!hr_stay_lasts(w, &over)); /* nobody ended it but the time */
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("hub");
	TCase *t = tcase_create("streams");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, make, drop);
	tcase_add_test(t, told_once);
	tcase_add_test(t, too_much_is_not_told);
	tcase_add_test(t, bytes_and_gaps);
	tcase_add_test(t, one_that_does_not_read);
	tcase_add_test(t, one_that_left);
	tcase_add_test(t, when_to_look);
	tcase_add_test(t, over_with_its_sign_in);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
