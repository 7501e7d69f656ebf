/* supervisor/template and nginx: places, what must not get into a configuration, the log's form. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "supervisor/edge/nginxconf.h"
#include "supervisor/edge/nginxline.h"
#include "supervisor/server.h"
#include "base/text/template.h"

static struct hr_err err;
static struct hr_buf out;

static void
setup(void)
{
	memset(&err, 0, sizeof(err));
	hr_buf_init(&out, 1 << 20);
}

static void
teardown(void)
{
	hr_buf_done(&out);
}

static int
fill(const char *text)
{
	static const struct hr_place places[] = {{"one", "1", false}, {"two_words", "a/b:c", false},
	    {"line", "user x; # {}", true}, {"bad", "a b", false}, {"empty", "", false}};

	hr_buf_reset(&out);
	return hr_template_fill(&out, text, strlen(text), places, 5, &err);
}

START_TEST(places_are_filled)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
	    {"", ""},
	    {"plain", "plain"},
	    {"@one@", "1"},
	    {"x@one@@two_words@y", "x1a/b:cy"},
	    {"@line@", "user x; # {}"},
	    {"[@empty@]", "[]"},
	    {"location @named { } = @other;", "location @named { } = @other;"},
	    {"a@@b", "a@b"},
	    {"@", "@"},
	    {"@one", "@one"},
	    {"mail@host.example @one@", "mail@host.example 1"},
	};

	ck_assert_int_eq(fill(rows[_i].text), 0);
	ck_assert_str_eq(hr_buf_str(&out), rows[_i].want);
}
END_TEST

START_TEST(an_unknown_place_is_named)
{
	ck_assert_int_eq(fill("x @three@"), -1);
	ck_assert_str_eq(err.msg, "no value for @three@");
}
END_TEST

START_TEST(a_value_cannot_break_out)
{
	static const char *const values[] = {
	    "a b", "a;b", "a{", "a}", "a\"", "a'", "a$b", "a#b", "a\\b", "a\nb", "a\tb", "a\x7f"};
	const struct hr_place place = {"p", values[_i], false};

	ck_assert_int_eq(hr_template_fill(&out, "@p@", 3, &place, 1, &err), -1);
	ck_assert_int_eq(strncmp(err.msg, "p: ", 3), 0);
}
END_TEST

START_TEST(a_small_buffer_is_an_error_not_a_cut)
{
	HR_BUF(tiny, 5);
	const struct hr_place place = {"p", "0123456789", false};

	ck_assert_int_eq(hr_template_fill(&tiny, "@p@", 3, &place, 1, &err), -1);
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
}
END_TEST

static struct hr_server server;

static void
server_like_one(const char *run_dir, const char *listen)
{
	static char path[128], user[] = "www-data", group[] = "www-group";
	const char *top = getenv("srcdir");
	static char data[512];

	hr_server_init(&server);
	ck_assert_int_eq(hr_settings_init(&server.ctx.settings, NULL), 0);
	server.ctx.settings.port = 3000;
	(void)snprintf(path, sizeof(path), "%s", run_dir);
	(void)snprintf(data, sizeof(data), "%s/conf", top != NULL ? top : ".");
	server.ctx.run.path = path;
	server.ctx.datadir = data;
	server.ctx.id.nginx_user = user;
	server.ctx.id.nginx_group = group;
	ck_assert_int_eq(hr_settings_set(&server.ctx.settings, "listen", listen, &err), 0);
	ck_assert_int_eq(
	    hr_listen_choose(&server.site.listen, &server.ctx.settings, true, &err), 0);
}

static bool
has(const char *text)
{
	return strstr(hr_buf_str(&out), text) != NULL;
}

START_TEST(the_whole_configuration)
{
	server_like_one("/run/handrail/3000", "::1");
	ck_assert_int_eq(
	    hr_settings_set(&server.ctx.settings, "action_workers_max", "17", NULL), 0);
	ck_assert_int_eq(
	    hr_settings_set(&server.ctx.settings, "access_log", "/var/log/a.log", NULL), 0);
	ck_assert_msg(
	    hr_nginx_compose(&out, "all", &server.site, &server.ctx.settings, NULL, &err) == 0,
	    "%s", err.msg);
	ck_assert(has("listen [::1]:3000 backlog=4096 default_server;"));
	ck_assert(has("user www-data www-group;"));
	ck_assert(has("server unix:/run/handrail/3000/fcgi/action.sock max_fails=0;"));
	ck_assert(has("limit_conn handrail_action 17;"));
	ck_assert(has("access_log /var/log/a.log handrail;"));
	ck_assert(has("fastcgi_read_timeout 604800s;"));
	ck_assert(has("fastcgi_pass_request_headers off;"));
	ck_assert(has("location @handrail_control {"));
	ck_assert(!has("@run_dir@"));
	ck_assert(!has("rewrite "));
	hr_settings_done(&server.ctx.settings);
}
END_TEST

START_TEST(the_parts_for_another_nginx)
{
	server_like_one("/run/handrail/3000", "127.0.0.1");
	ck_assert_int_eq(
	    hr_nginx_compose(&out, "http", &server.site, &server.ctx.settings, NULL, &err), 0);
	ck_assert(has("upstream handrail_control {"));
	ck_assert(!has("location "));
	hr_buf_reset(&out);
	ck_assert_int_eq(
	    hr_nginx_compose(&out, "server", &server.site, &server.ctx.settings, NULL, &err), 0);
	ck_assert(has("location = /execute_action {"));
	ck_assert(!has("\nupstream "));
	ck_assert(!has("listen "));
	hr_settings_done(&server.ctx.settings);
}
END_TEST

START_TEST(all_connections_are_taken)
{
	static const struct {
		const char *text;
		long long full;
	} rows[] = {{"12#12: *4567 2048 worker_connections are not enough while connecting", 2048},
	    {"12#12: 64 worker_connections are not enough, reusing connections", 64},
	    {"12#12: *7 limiting connections, dry run, by zone \"handrail_many_1024\", client: a",
		1024},
	    {"12#12: *7 limiting connections, dry run, by zone \"handrail_many_", 0},
	    {"12#12: *7 limiting connections by zone \"handrail_open\", client: a", 0},
	    {"12#12: *4 2048 worker_connections", 0},
	    {"12#12: *4 worker_connections are not enough", 0},
	    {"12#12: *4 open() \"/2048 worker_connections are not enough\" failed", 0},
	    {"12#12: *", 0}, {"12#12: 20", 0}, {"12#12:", 0}, {" ", 0}, {"", 0}};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_msg(
		    hr_nginx_line_full(rows[i].text, strlen(rows[i].text)) == rows[i].full, "%s",
		    rows[i].text);
}
END_TEST

/* One key it compares itself, and only a nginx of ours that can; where there is none nobody is
 * asked. */
START_TEST(who_gets_in)
{
	struct hr_key one[2] = {{.sum = {0}}};
	struct hr_keys keys = {.count = 1, .v = one};
	char program[] = "/tmp/test-nginx-XXXXXX";
	int fd = mkstemp(program);

	ck_assert_int_ge(fd, 0);
	server_like_one("/run/handrail/3000", "127.0.0.1");
	ck_assert_int_eq(hr_settings_set(&server.ctx.settings, "nginx", program, NULL), 0);
	hr_edgekey_sum(keys.salt, "a key", 5, one[0].edge);
	ck_assert_int_eq(
	    hr_nginx_compose(&out, "all", &server.site, &server.ctx.settings, &keys, &err), 0);
	ck_assert(has("\n\tauth_request /-/auth;\n") && !has("secure_link"));
	ck_assert_int_eq(hr_fd_write_full(fd, "\1secure_link_md5\0", 17, NULL), 0);
	(void)close(fd);
	hr_buf_reset(&out);
	ck_assert_int_eq(
	    hr_nginx_compose(&out, "all", &server.site, &server.ctx.settings, &keys, &err), 0);
	ck_assert(has("\tsecure_link LrL8T6WhjKkodPu1qoVAew;\n\tsecure_link_md5 \"0000"));
	ck_assert(has("\t\treturn 204;\n\t}\n\tfastcgi_pass_request_body off;\n"));
	keys.count = 0;
	hr_buf_reset(&out);
	ck_assert_int_eq(
	    hr_nginx_compose(&out, "all", &server.site, &server.ctx.settings, &keys, &err), 0);
	ck_assert(!has("\n\tauth_request /-/auth;\n") && !has("secure_link"));
	hr_buf_reset(&out);
	ck_assert_int_eq(
	    hr_nginx_compose(&out, "all", &server.site, &server.ctx.settings, NULL, &err), 0);
	ck_assert(has("\n\tauth_request /-/auth;\n") && !has("secure_link"));
	ck_assert_int_eq(unlink(program), 0);
	hr_settings_done(&server.ctx.settings);
}
END_TEST

static void
set(const char *key, const char *value)
{
	ck_assert_int_eq(hr_settings_set(&server.ctx.settings, key, value, NULL), 0);
}

START_TEST(what_one_client_may_ask_for)
{
	server_like_one("/run/handrail/3000", "127.0.0.1");
	ck_assert_int_eq(
	    hr_nginx_compose(&out, "all", &server.site, &server.ctx.settings, NULL, &err), 0);
	ck_assert(!has("limit_req_zone"));
	ck_assert(!has("ssl"));
	ck_assert(has("\tlimit_conn handrail_action 128;\n\tlimit_conn_status 503;\n"));
	hr_buf_reset(&out);
	set("address_requests_per_minute", "90");
	set("address_burst", "7");
	set("key_connections", "3");
	ck_assert_int_eq(
	    hr_nginx_compose(&out, "http", &server.site, &server.ctx.settings, NULL, &err), 0);
	ck_assert(
	    has("limit_req_zone $binary_remote_addr zone=handrail_address_rate:2m rate=90r/m;"));
	ck_assert(has("limit_conn_zone $http_x_session_api_key zone=handrail_key_connections:2m;"));
	ck_assert(!has("handrail_key_rate"));
	ck_assert(!has("handrail_address_connections"));
	hr_buf_reset(&out);
	ck_assert_int_eq(
	    hr_nginx_compose(&out, "server", &server.site, &server.ctx.settings, NULL, &err), 0);
	ck_assert(has("limit_req zone=handrail_address_rate burst=7 nodelay;"));
	ck_assert(has("\nlimit_conn handrail_key_connections 3;"));
	ck_assert(has("\tlimit_conn handrail_action 128;\n"
		      "\tlimit_conn handrail_key_connections 3;\n\tlimit_conn_status 498;\n"));
	ck_assert(has("\tlimit_conn handrail_live 16;\n"
		      "\tlimit_conn handrail_key_connections 3;\n\tlimit_conn_status 429;\n"));
	hr_settings_done(&server.ctx.settings);
}
END_TEST

/* From 1.25.1 on nginx warns about the parameter of listen; its program contains the warning. */
START_TEST(http2_as_nginx_wants_it)
{
	static const char warning[] = "\1the \"listen ... http2\" directive is deprecated, use "
				      "the \"http2\" directive instead";
	char program[] = "/tmp/test-nginx-XXXXXX";
	int fd = mkstemp(program);

	ck_assert_int_ge(fd, 0);
	server_like_one("/run/handrail/3000", "127.0.0.1");
	set("nginx", program);
	set("tls_certificate", "/etc/a.pem");
	set("tls_certificate_key", "/etc/a.key");
	ck_assert_int_eq(
	    hr_nginx_compose(&out, "site", &server.site, &server.ctx.settings, NULL, &err), 0);
	ck_assert(has("default_server ssl http2;") && !has("http2 on;"));
	ck_assert_int_eq(hr_fd_write_full(fd, warning, sizeof(warning), NULL), 0);
	(void)close(fd);
	hr_buf_reset(&out);
	ck_assert_int_eq(
	    hr_nginx_compose(&out, "site", &server.site, &server.ctx.settings, NULL, &err), 0);
	ck_assert(has("default_server ssl;") && has("\thttp2 on;\n"));
	set("http2", "false");
	hr_buf_reset(&out);
	ck_assert_int_eq(
	    hr_nginx_compose(&out, "site", &server.site, &server.ctx.settings, NULL, &err), 0);
	ck_assert(has("default_server ssl;") && !has("http2"));
	ck_assert_int_eq(unlink(program), 0);
	hr_settings_done(&server.ctx.settings);
}
END_TEST

START_TEST(certificates)
{
	server_like_one("/run/handrail/3000", "127.0.0.1");
	set("nginx", "/nonexistent/nginx");
	set("tls_certificate", "/etc/a.pem");
	set("tls_certificate_key", "/etc/a.key");
	ck_assert_int_eq(
	    hr_nginx_compose(&out, "all", &server.site, &server.ctx.settings, NULL, &err), 0);
	ck_assert(has("listen 127.0.0.1:3000 backlog=4096 default_server ssl http2;"));
	ck_assert(has("ssl_certificate /etc/a.pem;"));
	ck_assert(has("ssl_certificate_key /etc/a.key;"));
	ck_assert(has("ssl_protocols TLSv1.2 TLSv1.3;"));
	ck_assert(has("ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256:"));
	ck_assert(has("ssl_prefer_server_ciphers off;"));
	ck_assert(has("ssl_ecdh_curve X25519:prime256v1:secp384r1;"));
	ck_assert(!has("ssl_verify_client"));
	hr_buf_reset(&out);
	set("tls_client_ca", "/etc/ca.pem");
	set("tls_min_version", "1.3");
	set("tls_ciphers", "HIGH");
	set("http2", "false");
	ck_assert_int_eq(
	    hr_nginx_compose(&out, "all", &server.site, &server.ctx.settings, NULL, &err), 0);
	ck_assert(has("default_server ssl;"));
	ck_assert(has("ssl_client_certificate /etc/ca.pem;"));
	ck_assert(has("ssl_verify_client on;"));
	ck_assert(has("ssl_protocols TLSv1.3;"));
	ck_assert(has("ssl_ciphers HIGH;"));
	hr_buf_reset(&out);
	ck_assert_int_eq(
	    hr_nginx_compose(&out, "server", &server.site, &server.ctx.settings, NULL, &err), 0);
	ck_assert(!has("ssl"));
	set("tls_ciphers", "A; B");
	ck_assert_int_eq(
	    hr_nginx_compose(&out, "all", &server.site, &server.ctx.settings, NULL, &err), -1);
	ck_assert_int_eq(strncmp(err.msg, "tls_ciphers: ", 13), 0);
	hr_settings_done(&server.ctx.settings);
}
END_TEST

START_TEST(an_impossible_run_directory)
{
	server_like_one("/run/with blank", "127.0.0.1");
	ck_assert_int_eq(
	    hr_nginx_compose(&out, "all", &server.site, &server.ctx.settings, NULL, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "run_dir"));
	hr_settings_done(&server.ctx.settings);
}
END_TEST

START_TEST(levels_of_nginx_lines)
{
	static const struct {
		const char *line;
		int level;
		const char *text;
	} rows[] = {
	    {"2026/11/20 13:38:13 [notice] 9#9: hello", HR_LOG_DEBUG, "9#9: hello"},
	    {"2026/11/20 13:38:13 [error] 9#9: *1 bad [x]", HR_LOG_ERROR, "9#9: *1 bad [x]"},
	    {"2026/11/20 13:38:13 [warn] 9#9: hm", HR_LOG_WARNING, "9#9: hm"},
	    {"2026/11/20 13:38:13 [info] 9#9: x", HR_LOG_DEBUG, "9#9: x"},
	    {"nginx: [emerg] no such thing", HR_LOG_ERROR, "no such thing"},
	    {"nginx: [alert]", HR_LOG_ERROR, ""},
	    {"nginx says [error] itself", HR_LOG_INFO, "nginx says [error] itself"},
	    {"something else [error] far away from the start", HR_LOG_INFO,
		"something else [error] far away from the start"},
	    {"[strange] x", HR_LOG_INFO, "[strange] x"},
	    {"[error", HR_LOG_INFO, "[error"},
	    {"", HR_LOG_INFO, ""},
	};
	size_t skip = 99;

	ck_assert_int_eq(
	    hr_nginx_line(rows[_i].line, strlen(rows[_i].line), &skip), rows[_i].level);
	ck_assert_str_eq(rows[_i].line + skip, rows[_i].text);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("nginx_conf");
	TCase *tc = tcase_create("nginx_conf");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, places_are_filled, 0, 11);
	tcase_add_test(tc, an_unknown_place_is_named);
	tcase_add_loop_test(tc, a_value_cannot_break_out, 0, 12);
	tcase_add_test(tc, a_small_buffer_is_an_error_not_a_cut);
	tcase_add_test(tc, the_whole_configuration);
	tcase_add_test(tc, the_parts_for_another_nginx);
	tcase_add_test(tc, who_gets_in);
	tcase_add_test(tc, all_connections_are_taken);
	tcase_add_test(tc, what_one_client_may_ask_for);
	tcase_add_test(tc, http2_as_nginx_wants_it);
	tcase_add_test(tc, certificates);
	tcase_add_test(tc, an_impossible_run_directory);
	tcase_add_loop_test(tc, levels_of_nginx_lines, 0, 11);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
