/* What the browser says of a page: JSON in place, accessibility trees and their text, properties of
 * elements, HTML and its text, line by line as recorded. */
#include "config.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/browser/page/axtree_int.h"
#include "plugins/browser/page/html.h"
#include "plugins/browser/page/pagetext.h"
#include "plugins/browser/page/props.h"
#include "plugins/browser/page/snapshot.h"
#include "plugins/browser/page/tape.h"

#include "lines.h"

static struct br_tape line; /* of a corpus */
static struct hr_buf text, why;
static struct hr_err err;

static void
setup(void)
{
	hr_buf_init(&text, 1 << 26);
	hr_buf_init(&why, 1 << 20);
}

static void
teardown(void)
{
	hr_buf_done(&text);
	hr_buf_done(&why);
}

static char *
string_at(uint32_t at, const char *name)
{
	return br_tape_strdup(&line, br_tape_at(&line, at, name));
}

/* A value's JSON, on the heap. */
static char *
json_of(uint32_t at, size_t *ret_len)
{
	const char *p = br_tape_raw(&line, at, ret_len);
	char *copy = malloc(*ret_len);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, p, *ret_len);
	return copy;
}

static void
same(const char *what, const char *want, const struct hr_buf *have)
{
	HR_FREE char *name = string_at(0, "name");

	ck_assert_msg(have->fail == HR_OK && strlen(want) == have->len &&
			  memcmp(want, hr_buf_str(have), have->len) == 0,
	    "%s of %s:\n--- want\n%s\n--- have\n%s", what, name, want, hr_buf_str(have));
}

static void
each_line(const char *file, int atleast, void (*play)(void))
{
	FILE *f = lines_open(file);
	HR_FREE char *p = NULL;
	size_t cap = 0;
	int n = 0;

	for (; lines_next(f, &p, &cap); n++) {
		ck_assert_msg(br_tape_parse(&line, p, strlen(p), &err) == 0, "%s", err.msg);
		hr_buf_reset(&text);
		hr_buf_reset(&why);
		play();
		br_tape_done(&line);
	}
	(void)fclose(f);
	ck_assert_int_ge(n, atleast);
}

static void
read_prop(struct br_prop *v, const struct br_tape *t, uint32_t o)
{
	uint32_t bbox = br_tape_at(t, o, "bbox"), i = br_tape_first(t, bbox);
	int k;

	v->visibility = br_tape_number(t, br_tape_at(t, o, "visibility"), NAN);
	v->clickable = br_tape_type(t, br_tape_at(t, o, "clickable")) == BR_TAPE_TRUE;
	v->marked = br_tape_type(t, br_tape_at(t, o, "set_of_marks")) == BR_TAPE_TRUE;
	v->has_bbox = br_tape_count(t, bbox) == 4;
	for (k = 0; v->has_bbox && k < 4; k++, i = br_tape_next(t, bbox, i))
		v->bbox[k] = br_tape_number(t, i, 0);
}

/* As br_props_json() writes them. */
static void
read_props(struct br_props *p, const struct br_tape *t, uint32_t object)
{
	uint32_t key;
	struct br_prop *v;
	char *bid;

	ck_assert_int_eq(br_tape_type(t, object), BR_TAPE_OBJECT);
	for (key = br_tape_first(t, object); key != BR_TAPE_NONE;
	     key = br_tape_next(t, object, key + 1)) {
		bid = br_tape_strdup(t, key);
		ck_assert_ptr_nonnull(bid);
		v = br_props_put(p, bid);
		ck_assert_ptr_nonnull(v);
		free(bid);
		read_prop(v, t, key + 1);
	}
}

/* ---- the text of a tree ---- */

static void
play_axtree(void)
{
	struct br_ax *ax = br_ax_new();
	struct br_props props;
	char *json;
	HR_FREE char *want = string_at(0, "text");
	HR_FREE char *error = string_at(0, "error");
	size_t len;
	int done;

	br_props_init(&props);
	json = json_of(br_tape_at(&line, 0, "axtree"), &len);
	ck_assert_int_eq(br_ax_add_take(ax, NULL, json, len, &err), 0);
	read_props(&props, &line, br_tape_at(&line, 0, "extra"));
	done = br_ax_text(ax, &props, &text, &why);
	if (error != NULL) {
		ck_assert_int_eq(done, 1);
		same("error", error, &why);
	} else {
		ck_assert_msg(done == 0, "%s", hr_buf_str(&why));
		same("text", want, &text);
	}
	br_props_done(&props);
	br_ax_free(ax);
}

START_TEST(trees)
{
	each_line("browser/axtree.jsonl", 75, play_axtree);
	each_line("browser/axtree_2.jsonl", 74, play_axtree);
}
END_TEST

/* ---- the whole way ---- */

static struct br_ax *
merged(void)
{
	struct br_ax *ax = br_ax_new();
	uint32_t by_frame = br_tape_at(&line, 0, "axtrees"),
		 describe = br_tape_at(&line, 0, "describe");
	char *json, *frame, backend[32];
	HR_FREE char **frames = NULL;
	size_t n, i, len;
	int64_t id;

	json = json_of(br_tape_at(&line, 0, "frame_tree"), &len);
	ck_assert_int_eq(br_ax_frames(json, len, &frames, &n, &err), 0);
	free(json);
	for (i = 0; i < n; i++) {
		json = json_of(br_tape_at(&line, by_frame, frames[i]), &len);
		ck_assert_msg(br_ax_add_take(ax, frames[i], json, len, &err) == 0, "%s", err.msg);
		free(frames[i]);
	}
	for (i = 0; (id = br_ax_iframe(ax, i)) >= 0; i++) {
		(void)snprintf(backend, sizeof(backend), "%lld", (long long)id);
		frame = string_at(describe, backend);
		br_ax_join(ax, i, frame);
		free(frame);
	}
	return ax;
}

static void
check_nodes(const struct br_ax *ax, uint32_t expect)
{
	uint32_t order = br_tape_at(&line, expect, "node_order"), o = br_tape_first(&line, order);
	uint32_t bids = br_tape_at(&line, expect, "bids"), b = br_tape_first(&line, bids);
	const struct br_tape *t;
	size_t i;
	char *want;

	ck_assert_uint_eq(ax->n, br_tape_count(&line, order));
	for (i = 0; i < ax->n; i++) {
		t = &ax->frames[ax->nodes[i].frame].tape;
		hr_buf_reset(&text);
		br_tape_str(t, br_tape_at(t, ax->nodes[i].value, "nodeId"), &text);
		ck_assert(br_tape_is(&line, o, hr_buf_str(&text)));
		want = br_tape_strdup(&line, b);
		ck_assert_pstr_eq(ax->nodes[i].bid, want);
		free(want);
		o = br_tape_next(&line, order, o);
		b = br_tape_next(&line, bids, b);
	}
}

static bool
near(double a, double b)
{
	return (isnan(a) && isnan(b)) || fabs(a - b) < 1e-9;
}

static void
check_props(const struct br_props *have, uint32_t expect)
{
	const struct br_prop *h, *w;
	struct br_props want, again;
	struct br_tape t;
	size_t i, k;

	br_props_init(&want);
	read_props(&want, &line, br_tape_at(&line, expect, "extra_element_properties"));
	/* as an observation has them, and back */
	hr_buf_reset(&text);
	br_props_json(&text, have);
	ck_assert_int_eq(br_tape_parse(&t, text.p, text.len, &err), 0);
	br_props_init(&again);
	read_props(&again, &t, 0);
	ck_assert_uint_eq(again.n, want.n);
	for (i = 0; i < want.n; i++) {
		w = &want.v[i];
		h = &again.v[i];
		ck_assert_str_eq(w->bid, h->bid);
		ck_assert_ptr_nonnull(br_props_find(have, w->bid));
		ck_assert_msg(near(w->visibility, h->visibility), "%s", w->bid);
		ck_assert_int_eq(w->has_bbox, h->has_bbox);
		ck_assert_int_eq(w->clickable, h->clickable);
		ck_assert_int_eq(w->marked, h->marked);
		for (k = 0; w->has_bbox && k < 4; k++)
			ck_assert(near(w->bbox[k], h->bbox[k]));
	}
	br_props_done(&want);
	br_props_done(&again);
	br_tape_done(&t);
}

/* The tree of an observation gives the same text. */
static void
check_json(const struct br_ax *ax, const struct br_props *props, const char *want)
{
	struct br_ax *again = br_ax_new();
	HR_BUF(json, 1 << 26);
	size_t len;
	char *copy;

	br_ax_json(ax, &json);
	len = json.len;
	copy = hr_buf_take(&json);
	ck_assert_int_eq(br_ax_add_take(again, NULL, copy, len, &err), 0);
	hr_buf_reset(&text);
	ck_assert_int_eq(br_ax_text(again, props, &text, &why), 0);
	same("tree of the JSON", want, &text);
	br_ax_free(again);
}

/* The page as HTML, and the text of that. */
static void
check_text(const struct br_snapshot *s, uint32_t expect)
{
	HR_FREE char *html = string_at(expect, "html");
	HR_FREE char *want = string_at(expect, "page_text");

	hr_buf_reset(&text);
	ck_assert_int_eq(br_snapshot_html(s, &text, &err), 0);
	same("HTML", html, &text);
	hr_buf_reset(&text);
	br_page_text(&text, html, strlen(html));
	same("page text", want, &text);
}

static void
play_extract(void)
{
	uint32_t expect = br_tape_at(&line, 0, "expect");
	struct br_ax *ax = merged();
	struct br_snapshot *s;
	struct br_props props;
	HR_FREE char *want = NULL;
	size_t len;
	HR_FREE char *json = json_of(br_tape_at(&line, 0, "snapshot"), &len);

	s = br_snapshot_new(json, len, &err);
	ck_assert_msg(s != NULL, "%s", err.msg);
	br_props_init(&props);
	ck_assert_int_eq(br_snapshot_props(s, &props, &err), 0);
	check_nodes(ax, expect);
	check_props(&props, expect);
	hr_buf_reset(&text);
	ck_assert_int_eq(br_ax_text(ax, &props, &text, &why), 0);
	want = string_at(expect, "axtree_text");
	same("tree", want, &text);
	check_json(ax, &props, want);
	check_text(s, expect);
	br_props_done(&props);
	br_snapshot_free(s);
	br_ax_free(ax);
}

START_TEST(pages)
{
	each_line("browser/extract.jsonl", 57, play_extract);
}
END_TEST

/* ---- what no page says ---- */

static int
tree_of(const char *json)
{
	struct br_ax *ax = br_ax_new();
	struct br_props props;
	int done;

	hr_buf_reset(&text);
	hr_buf_reset(&why);
	br_props_init(&props);
	ck_assert_int_eq(br_ax_add_take(ax, NULL, strdup(json), strlen(json), &err), 0);
	done = br_ax_text(ax, &props, &text, &why);
	br_props_done(&props);
	br_ax_free(ax);
	return done;
}

START_TEST(odd_trees)
{
	ck_assert_int_eq(tree_of("{\"nodes\":[{\"role\":{\"value\":\"x\"}}]}"), 1);
	ck_assert_str_eq(hr_buf_str(&why), "KeyError: 'nodeId'");
	ck_assert_int_eq(tree_of("{\"nodes\":[{\"nodeId\":\"1\"}]}"), 1);
	ck_assert_str_eq(hr_buf_str(&why), "KeyError: 'role'");
	ck_assert_int_eq(tree_of("{\"nodes\":[{\"nodeId\":\"1\",\"role\":{\"value\":\"x\"}}]}"), 1);
	ck_assert_str_eq(hr_buf_str(&why), "KeyError: 'childIds'");
	/* each is the other's child */
	ck_assert_int_eq(
	    tree_of(
		"{\"nodes\":[{\"nodeId\":\"1\",\"role\":{\"value\":\"x\"},\"childIds\":[\"2\"]},"
		"{\"nodeId\":\"2\",\"role\":{\"value\":\"x\"},\"childIds\":[\"1\"]}]}"),
	    1);
	ck_assert_msg(strncmp(hr_buf_str(&why), "RecursionError: maximum recursion depth", 39) == 0,
	    "%s", hr_buf_str(&why));
}
END_TEST

/* Markup made at random, tidied and turned into text by the original. */
static void
play_html(void)
{
	HR_FREE char *markup = string_at(0, "markup");
	HR_FREE char *html = string_at(0, "html");
	HR_FREE char *want = string_at(0, "text");

	ck_assert_int_eq(br_html_tidy(markup, strlen(markup), &text, &err), 0);
	same("HTML", html, &text);
	hr_buf_reset(&text);
	br_page_text(&text, html, strlen(html));
	same("text", want, &text);
}

START_TEST(markup_at_random)
{
	each_line("browser/html_more.jsonl", 300, play_html);
}
END_TEST

/* A document of nodes: what the browser calls a snapshot. */
static const char *
text_of(const char *nodes, const char *strings)
{
	struct br_snapshot *s;
	HR_BUF(json, 1 << 16);
	HR_BUF(page, 1 << 16);

	hr_buf_addf(&json, "{\"documents\":[{\"nodes\":{%s}}],\"strings\":[%s]}", nodes, strings);
	s = br_snapshot_new(json.p, json.len, &err);
	ck_assert_msg(s != NULL, "%s", err.msg);
	ck_assert_int_eq(br_snapshot_html(s, &page, &err), 0);
	hr_buf_reset(&text);
	br_page_text(&text, hr_buf_str(&page), page.len);
	br_snapshot_free(s);
	return hr_buf_str(&text);
}

START_TEST(lists_in_lists)
{
	ck_assert_str_eq(
	    text_of("\"parentIndex\":[-1,0,1,2,3,4,2,6],\"nodeType\":[9,1,1,1,1,3,1,3],"
		    "\"nodeName\":[0,1,2,3,4,5,4,5],"
		    "\"nodeValue\":[-1,-1,-1,-1,-1,6,-1,7],"
		    "\"attributes\":[[],[],[],[],[],[],[],[]]",
		"\"#document\",\"HTML\",\"UL\",\"OL\",\"LI\",\"#text\",\"in\",\"behind\""),
	    "    1. in \n  * behind \n\n\n");
}
END_TEST

/* With less room than it takes it fails, and says so: nothing comes out that is not whole. */
static void
play_short(void)
{
	HR_FREE char *markup = string_at(0, "markup");
	HR_FREE char *html = string_at(0, "html");
	HR_FREE char *want = string_at(0, "text");
	struct hr_buf b;
	size_t cap;

	for (cap = 0; cap < strlen(html) + 64; cap += 3) {
		hr_buf_init(&b, cap);
		if (br_html_tidy(markup, strlen(markup), &b, &err) == 0)
			same("HTML", html, &b);
		hr_buf_done(&b);
		hr_buf_init(&b, cap);
		br_page_text(&b, html, strlen(html));
		if (b.fail == HR_OK)
			same("text", want, &b);
		hr_buf_done(&b);
	}
}

START_TEST(short_of_room)
{
	each_line("browser/html_more.jsonl", 300, play_short);
}
END_TEST

/* Parents that come later, or are none: such nodes are left out, and nothing goes round. */
START_TEST(odd_snapshots)
{
	ck_assert_str_eq(text_of("\"parentIndex\":[-1,2,1,3,0],\"nodeType\":[1,1,1,1,3],"
				 "\"nodeName\":[0,0,0,0,0],\"nodeValue\":[-1,-1,-1,-1,1],"
				 "\"attributes\":[[],[],[],[],[]],"
				 "\"contentDocumentIndex\":{\"index\":[0,4],\"value\":[0,9]}",
			     "\"P\",\"x\""),
	    "x \n");
	ck_assert_str_eq(text_of("", ""), "\n");
}
END_TEST

static void
is_json(const char *json, bool good)
{
	struct br_tape t;
	char *copy = malloc(strlen(json) + 1); /* nothing may be read behind it */
	int done;

	memcpy(copy, json, strlen(json) + 1);
	done = br_tape_parse(&t, copy, strlen(json), &err);
	ck_assert_msg((done == 0) == good, "%s: %s", json, done < 0 ? err.msg : "taken");
	if (done == 0)
		br_tape_done(&t);
	free(copy);
}

START_TEST(json)
{
	static const char *const good[] = {"[]", " {} ", "1", "\"\"", "[1,[2,{\"a\":[]}],\"x\"]",
	    "{\"a\":null,\"b\":true}", "\"\\u00e9\\ud83c\\udf0d\\n\""};
	static const char *const bad[] = {"", "[", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "[1 2]",
	    "]", "[}", "\"", "\"\\", "\"\\u12\"", "\"\\x\"", "tru", "[1]]", "{\"a\":1,}", "nul",
	    "\"a\nb\"", "\xFF", "{\"a\":1}{"};
	struct br_tape t;
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		is_json(good[i], true);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is_json(bad[i], false);
	hr_buf_adds(&text,
	    "{\"a\":\"x\\ud83c\\udf0d\\\"\\ud83c\",\"n\":-12,\"f\":1.5e1,\"a\\u0062\":[1,2]}");
	ck_assert_int_eq(br_tape_parse(&t, text.p, text.len, &err), 0);
	br_tape_str(&t, br_tape_at(&t, 0, "a"), &why);
	ck_assert_str_eq(why.p, "x\xF0\x9F\x8C\x8D\"\xED\xA0\xBC");
	ck_assert_int_eq(br_tape_int(&t, br_tape_at(&t, 0, "n"), 7), -12);
	ck_assert_int_eq(br_tape_int(&t, br_tape_at(&t, 0, "f"), 7), 7);
	ck_assert(br_tape_number(&t, br_tape_at(&t, 0, "f"), 7) == 15);
	ck_assert_uint_eq(br_tape_count(&t, br_tape_at(&t, 0, "ab")), 2);
	ck_assert_uint_eq(br_tape_at(&t, 0, "none"), BR_TAPE_NONE);
	ck_assert_uint_eq(br_tape_at(&t, BR_TAPE_NONE, "a"), BR_TAPE_NONE);
	br_tape_done(&t);
}
END_TEST

/* ---- pages that would hold the loop ---- */

static void
repeat(struct hr_buf *b, const char *what, size_t n)
{
	while (n-- > 0)
		hr_buf_adds(b, what);
	ck_assert_int_eq(b->fail, HR_OK);
}

static void
props_of(struct br_props *ret, const struct hr_buf *snapshot)
{
	struct br_snapshot *s = br_snapshot_new(snapshot->p, snapshot->len, &err);

	ck_assert_msg(s != NULL, "%s", err.msg);
	br_props_init(ret);
	ck_assert_int_eq(br_snapshot_props(s, ret, &err), 0);
	br_snapshot_free(s);
}

/* One long string is a value of many nodes. */
START_TEST(shared_strings)
{
	const size_t nodes = 200000;
	struct br_props props;

	hr_buf_adds(
	    &text, "{\"documents\":[{\"nodes\":{\"attributes\":[[0,3,1,4],[0,4],[0,5,1,6,2,6]");
	repeat(&text, ",[1,7,2,7]", nodes);
	hr_buf_adds(&text, "]}}],\"strings\":[\"bid\",\"browsergym_visibility_ratio\","
			   "\"browsergym_set_of_marks\",\"a\",\"0.25\",\"b\",\"\\u0031\",\"\\n");
	repeat(&text, "7", 1 << 20);
	hr_buf_adds(&text, "\"]}");
	props_of(&props, &text);
	ck_assert_uint_eq(props.n, 3);
	ck_assert(br_props_find(&props, "a")->visibility == 0.25);
	ck_assert_ptr_nonnull(br_props_find(&props, "0.25"));
	ck_assert(br_props_find(&props, "b")->visibility == 1);
	ck_assert_int_eq(br_props_find(&props, "b")->marked, 1);
	br_props_done(&props);
}
END_TEST

/* A bid of 1024 bytes is taken, and a longer one not; so it is with 32 bytes of a ratio. */
START_TEST(long_values)
{
	struct br_props props;

	hr_buf_adds(&text,
	    "{\"documents\":[{\"nodes\":{\"attributes\":[[0,2,1,4],[0,3,1,4],[0,6,1,5]]}}],"
	    "\"strings\":[\"bid\",\"browsergym_visibility_ratio\",\"");
	repeat(&text, "x", 1024);
	hr_buf_adds(&text, "\",\"");
	repeat(&text, "y", 1025);
	hr_buf_adds(&text, "\",\"");
	repeat(&text, "0", 31);
	hr_buf_adds(&text, "1\",\"");
	repeat(&text, "0", 32);
	hr_buf_adds(&text, "1\",\"z\"]}");
	props_of(&props, &text);
	ck_assert_uint_eq(props.n, 2);
	ck_assert_uint_eq(strlen(props.v[0].bid), 1024);
	ck_assert(props.v[0].visibility == 1);
	ck_assert(isnan(br_props_find(&props, "z")->visibility));
	br_props_done(&props);
}
END_TEST

/* Each frame's place is that of its element, which is one of many. */
START_TEST(many_frames)
{
	const int n = 100000;
	struct br_props props;
	const struct br_prop *p;
	int i;

	hr_buf_adds(&text, "{\"strings\":[\"bid\",\"a\"],\"documents\":[{\"layout\":{\"bounds\":[");
	for (i = 0; i < n; i++)
		hr_buf_addf(&text, "%s[%d,7,1,1]", i > 0 ? "," : "", i);
	hr_buf_adds(&text, "],\"nodeIndex\":[0");
	for (i = 1; i < n; i++)
		hr_buf_addf(&text, ",%d", i);
	hr_buf_adds(&text, "]},\"nodes\":{\"attributes\":[[]");
	repeat(&text, ",[]", (size_t)n - 1);
	hr_buf_adds(&text, "],\"contentDocumentIndex\":{\"index\":[0");
	for (i = 1; i < n; i++)
		hr_buf_addf(&text, ",%d", i);
	hr_buf_adds(&text, "],\"value\":[1");
	for (i = 1; i < n; i++)
		hr_buf_addf(&text, ",%d", i + 1);
	hr_buf_adds(&text, "]}}}");
	repeat(&text, ",{}", (size_t)n - 1);
	hr_buf_adds(&text, ",{\"nodes\":{\"attributes\":[[0,1]]},\"layout\":{\"nodeIndex\":[0],"
			   "\"bounds\":[[1,2,3,4]],\"clientRects\":[[1,2,3,4]]}}]}");
	props_of(&props, &text);
	p = br_props_find(&props, "a");
	ck_assert_ptr_nonnull(p);
	ck_assert(p->has_bbox && p->bbox[0] == n && p->bbox[1] == 9);
	br_props_done(&props);
}
END_TEST

/* Bids with equal hashes in the table, if the table began with the same number in each process. */
START_TEST(bids_that_collide)
{
	const size_t n = 1024;
	struct br_props props;
	size_t i, k, h, run = 0, longest = 0;
	char bid[32];

	br_props_init(&props);
	for (i = 0; props.n < n; i++) {
		(void)snprintf(bid, sizeof(bid), "%zu", i);
		for (h = 2166136261u, k = 0; bid[k] != '\0'; k++)
			h = (h ^ (unsigned char)bid[k]) * 16777619u;
		if (h % (2 * n) == 0)
			ck_assert_ptr_nonnull(br_props_put(&props, bid));
	}
	for (i = 0; i < props.n_slots; i++) {
		run = props.slots[i] != 0 ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	ck_assert_uint_lt(longest, n / 2);
	for (i = 0; i < n; i++)
		ck_assert_ptr_eq(br_props_find(&props, props.v[i].bid), &props.v[i]);
	br_props_done(&props);
}
END_TEST

START_TEST(many_abbreviations)
{
	HR_BUF(page, 1 << 24);
	int i;

	for (i = 0; i < 100000; i++)
		hr_buf_addf(&page, "<abbr title=\"t%d\">%06d</abbr>", i, i);
	hr_buf_adds(&page, "<abbr title=\"again\">000007</abbr>");
	br_page_text(&text, hr_buf_str(&page), page.len);
	ck_assert_int_eq(text.fail, HR_OK);
	ck_assert_ptr_nonnull(strstr(text.p, "099999"));
	ck_assert_ptr_nonnull(strstr(text.p, "*[000007]: again\n"));
	ck_assert_ptr_nonnull(strstr(text.p, "*[000999]: t999\n"));
	ck_assert_ptr_null(strstr(text.p, "*[001000]"));
}
END_TEST

/* Many end tags do not fit to any of many open elements. */
START_TEST(unmatched_tags)
{
	HR_BUF(markup, 1 << 24);

	repeat(&markup, "<b>", 900);
	repeat(&markup, "</i>", 1000);
	ck_assert_int_eq(br_html_tidy(markup.p, markup.len, &text, &err), 0);
	hr_buf_reset(&markup);
	hr_buf_reset(&text);
	hr_buf_adds(&markup, "<pre>");
	repeat(&markup, "<b>", 50000);
	repeat(&markup, "</i>", 50000);
	ck_assert_int_lt(br_html_tidy(markup.p, markup.len, &text, &err), 0);
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
}
END_TEST

/* Texts are left out that the name of their parent contains, until a GiB was searched for them. */
START_TEST(texts_of_a_long_name)
{
	const size_t len = 4 << 20, left_out = ((size_t)1 << 30) / len;
	size_t i, n = left_out + 2;
	HR_BUF(tree, 1 << 24);
	const char *p;

	hr_buf_adds(&tree, "{\"nodes\":[{\"nodeId\":\"0\",\"role\":{\"value\":\"x\"},"
			   "\"childIds\":[\"1\"");
	for (i = 2; i <= n; i++)
		hr_buf_addf(&tree, ",\"%zu\"", i);
	hr_buf_adds(&tree, "],\"name\":{\"value\":\"");
	repeat(&tree, "a", len - 2);
	hr_buf_adds(&tree, "bc\"}}");
	for (i = 1; i <= n; i++)
		hr_buf_addf(&tree,
		    ",{\"nodeId\":\"%zu\",\"role\":{\"value\":\"StaticText\"},"
		    "\"name\":{\"value\":\"bc\"},\"childIds\":[]}",
		    i);
	hr_buf_adds(&tree, "]}");
	ck_assert_int_eq(tree.fail, HR_OK);
	ck_assert_int_eq(tree_of(tree.p), 0);
	p = strchr(hr_buf_str(&text), '\n');
	ck_assert_ptr_nonnull(p);
	ck_assert_str_eq(p, "\n\tStaticText 'bc'\n\tStaticText 'bc'");
}
END_TEST

/* A page that nests too deeply is refused with the reason. */
START_TEST(deep_page)
{
	struct br_snapshot *s;
	HR_BUF(given, 1 << 16);
	HR_BUF(page, 1 << 20);
	int i;

	hr_buf_adds(&given, "{\"documents\":[{\"nodes\":{\"nodeType\":[9");
	repeat(&given, ",1", 1200);
	hr_buf_adds(&given, "],\"nodeName\":[0");
	repeat(&given, ",1", 1200);
	hr_buf_adds(&given, "],\"nodeValue\":[-1");
	repeat(&given, ",-1", 1200);
	hr_buf_adds(&given, "],\"attributes\":[[]");
	repeat(&given, ",[]", 1200);
	hr_buf_adds(&given, "],\"parentIndex\":[-1");
	for (i = 0; i < 1200; i++)
		hr_buf_addf(&given, ",%d", i);
	hr_buf_adds(&given, "]}}],\"strings\":[\"#document\",\"B\"]}");
	s = br_snapshot_new(given.p, given.len, &err);
	ck_assert_msg(s != NULL, "%s", err.msg);
	ck_assert_int_eq(br_snapshot_html(s, &page, &err), -1);
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
	ck_assert_ptr_nonnull(strstr(err.msg, "nests more than 1000 elements"));
	br_snapshot_free(s);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("browser_page");
	TCase *t = tcase_create("page");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, json);
	tcase_add_test(t, trees);
	tcase_add_test(t, odd_trees);
	tcase_add_test(t, pages);
	tcase_add_test(t, markup_at_random);
	tcase_add_test(t, lists_in_lists);
	tcase_add_test(t, odd_snapshots);
	tcase_add_test(t, short_of_room);
	tcase_add_test(t, shared_strings);
	tcase_add_test(t, long_values);
	tcase_add_test(t, many_frames);
	tcase_add_test(t, bids_that_collide);
	tcase_add_test(t, many_abbreviations);
	tcase_add_test(t, unmatched_tags);
	tcase_add_test(t, deep_page);
	tcase_add_test(t, texts_of_a_long_name);
	suite_add_tcase(s, t);
	return lines_run(s);
}
