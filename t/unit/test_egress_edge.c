/* The configuration of a box's nginx, with values that try to become configuration, and the files
 * of its authority. */
#include "config.h"

#include "egress/edge.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/path.h"
#include "base/strv.h"
#include "egress/edge_text.h"
#include "egress/policy.h"
#include "lines.h"
#include "proto/json.h"
#include "scratch.h"

#define CONFIG_MAX (1u << 20)
#define MARK "ph_000000000000000000000000000000000000"

static const char policy_text[] =
    "{\"allowOut\":[\"api.test\"],\"credentials\":{\"T\":{\"secret\":\"key\",\"hosts\":[\"api."
    "test\"]}},\"rules\":{\"api.test\":[{\"paths\":[\"/a$b;{c}'\\\"d*\"],\"transform\":{"
    "\"headers\":{\"X-Y\":\"z ${secrets.key} $host;\\\" '\"}}}]}}";

/* Composes the configuration of one host with this secret. Returns what egress_edge_config() does.
 */
static int
compose(
    const char *policy, const char *dir, const char *secret, struct hr_buf *ret, struct hr_err *err)
{
	const struct egress_host host = {7, "api.test", 443, true};
	HR_PUT struct json_object *o = json_tokener_parse(policy);
	HR_PUT struct json_object *secrets = json_object_new_object();
	HR_PUT struct json_object *marks = json_object_new_object();
	struct egress_policy *p = egress_policy_read(o, NULL, err);
	int r;

	ck_assert_msg(p != NULL, "%s", err->msg);
	json_object_object_add(marks, "T", json_object_new_string(MARK));
	if (secret != NULL)
		json_object_object_add(secrets, "key", json_object_new_string(secret));
	r = egress_edge_config(p, dir, &host, 1, secrets, marks, ret, err);
	egress_policy_free(p);
	return r;
}

/* Reads the text as nginx does, and counts the words that have an unquoted special character, or a
 * variable that handrail did not put there. */
static void
only_ours(const char *text)
{
	static const char *const ours[] = {"eg_", "http_", "host/", "request_method", "request_uri",
	    "uri\"", "ssl_server_name", "status", "upstream_http_"};
	const char *p;
	bool quoted = false;
	int depth = 0;
	size_t i;

	for (p = text; *p != '\0'; p++) {
		if (*p == '\\' && quoted) {
			p++;
		} else if (*p == '"') {
			quoted = !quoted;
		} else if (*p == '\'' && !quoted) {
			p += 1 + strcspn(p + 1, "'");
			ck_assert_int_eq(*p, '\'');
		} else if (*p == '$') {
			p += p[1] == '{';
			for (i = 0; i < sizeof(ours) / sizeof(*ours) &&
				    strncmp(p + 1, ours[i], strlen(ours[i])) != 0;
			     i++)
				;
			ck_assert_msg(i < sizeof(ours) / sizeof(*ours) || (quoted && p[1] == '"') ||
					  strncmp(p + 1, "1", 1) == 0,
			    "a foreign variable: %.40s", p);
		} else if (!quoted && (*p == '{' || *p == '}')) {
			depth += *p == '{' ? 1 : -1;
			ck_assert_int_ge(depth, 0);
			ck_assert_int_eq(p[1], '\n');
		}
	}
	ck_assert(!quoted);
	ck_assert_int_eq(depth, 0);
}

static const char *const secrets[] = {"\"; } evil { \"", "${request_body}", "$request_body$",
    "\\\"; evil;", "ends with \\", "'\"'\"'\"'\"", "# comment", "{{{{}}}}", "};};};};", "~^(.*.*)$",
    "default x", "\\Q\\E\\E.*", "$eg_r7$$", "%24%7B%22", "\xc3\xa9\xc3\xa8\xff\xfe\xfd\xfc",
    "${eg_dollar"};

START_TEST(values_are_no_configuration)
{
	struct hr_err err = {0};
	HR_BUF(text, CONFIG_MAX);

	ck_assert_msg(
	    compose(policy_text, "/d \"ir\\", secrets[_i], &text, &err) == 0, "%s", err.msg);
	only_ours(hr_buf_str(&text));
	ck_assert_ptr_nonnull(strstr(text.p, "pid \"/d \\\"ir\\\\/nginx.pid\";\n"));
	ck_assert_ptr_nonnull(strstr(text.p, "listen unix:in-7 ssl http2;\n"));
	ck_assert_ptr_nonnull(
	    strstr(text.p, " (?:\\x2Fa\\x24b\\x3B\\x7Bc\\x7D\\x27\\x22d[^ ]* )\" \"a0\";\n"));
}
END_TEST

START_TEST(secrets_that_are_refused)
{
	static const struct {
		const char *secret, *message;
	} cases[] = {{NULL, "is not set"}, {"short77", "must have 8 to"},
	    {"a\r\nX: injected", "must have"}, {"a\tb345678", "must have"},
	    {"\x7f"
	     "12345678",
		"must have"}};
	char big[EGRESS_SECRET_MAX + 2];
	struct hr_err err = {0};
	HR_BUF(text, CONFIG_MAX);

	ck_assert_int_eq(compose(policy_text, "/d", cases[_i].secret, &text, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "the secret \"key\""));
	ck_assert_ptr_nonnull(strstr(err.msg, cases[_i].message));
	if (cases[_i].secret != NULL)
		ck_assert_ptr_null(strstr(err.msg, cases[_i].secret));
	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	hr_buf_reset(&text);
	ck_assert_int_eq(compose(policy_text, "/d", big, &text, &err), -1);
	big[sizeof(big) - 2] = '\0';
	hr_buf_reset(&text);
	ck_assert_msg(compose(policy_text, "/d", big, &text, &err) == 0, "%s", err.msg);
	memset(big, '$', sizeof(big) - 2); /* Quoted, this is longer than a word of nginx. */
	hr_buf_reset(&text);
	ck_assert_int_eq(compose(policy_text, "/d", big, &text, &err), -1);
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
}
END_TEST

START_TEST(other_refusals)
{
	static const char headers[] =
	    "{\"rules\":{\"api.test\":[{\"transform\":{\"headers\":{\"%s\":\"x\"}}}]}}";
	static const char *const names[] = {
	    "Range", "accept-encoding", "If-Range", "X!Y", "X.Y", "#X"};
	struct hr_err err = {0};
	HR_BUF(text, CONFIG_MAX);
	char policy[200];
	size_t i;

	ck_assert_int_eq(compose(policy_text, "/a$b", "12345678", &text, &err), -1);
	ck_assert_int_eq(compose(policy_text, "/a\nb", "12345678", &text, &err), -1);
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		HR_PUT struct json_object *o = NULL;
		struct egress_policy *p;

		(void)snprintf(policy, sizeof(policy), headers, names[i]);
		o = json_tokener_parse(policy);
		p = egress_policy_read(o, NULL, &err);
		egress_policy_free(p);
		if (p == NULL) /* The reader of the rules refuses it already. */
			continue;
		hr_buf_reset(&text);
		ck_assert_msg(compose(policy, "/d", NULL, &text, &err) == -1, "%s", names[i]);
		ck_assert_ptr_nonnull(strstr(err.msg, names[i]));
	}
}
END_TEST

START_TEST(placeholders)
{
	char a[EGRESS_PLACEHOLDER_TEXT], b[EGRESS_PLACEHOLDER_TEXT];
	struct hr_err err = {0};

	ck_assert_int_eq(egress_placeholder(a, &err), 0);
	ck_assert_int_eq(egress_placeholder(b, &err), 0);
	ck_assert_uint_eq(strlen(a), EGRESS_PLACEHOLDER_TEXT - 1);
	ck_assert_int_eq(strncmp(a, "ph_", 3), 0);
	ck_assert_uint_eq(strspn(a + 3, "0123456789abcdef"), strlen(a) - 3);
	ck_assert_str_ne(a, b);
}
END_TEST

START_TEST(patterns)
{
	static const struct {
		const char *pattern, *regex;
	} cases[] = {{"", ""}, {"/a", "\\x2Fa"}, {"*", ".*"}, {"a*", "a.*"}, {"*b", ".*b"},
	    {"a*b*c*", "a(?>.*?b)(?>.*?c).*"}, {"**", "(?>.*?).*"}, {"_9", "_9"}};
	HR_BUF(b, 200);

	edge_add_pattern(&b, cases[_i].pattern, ".");
	ck_assert_str_eq(hr_buf_str(&b), cases[_i].regex);
}
END_TEST

START_TEST(forms)
{
	HR_CLEAN(hr_strv_done) struct hr_strv got = {.v = NULL};
	static const char *const want[] = {"a\"b?~?~?c", "a%22b%3F~%3F~%3Fc", "a\\\"b?~?~?c",
	    "YSJiP34/fj9j", "YSJiP34_fj9j", "EiYj9+P34/Y", "EiYj9-P34_Y", "hImI/fj9+P2",
	    "hImI_fj9-P2", NULL};
	size_t i;

	edge_list_forms(&got, want[0]);
	for (i = 0; want[i] != NULL && i < got.n; i++)
		ck_assert_str_eq(got.v[i], want[i]);
	ck_assert_uint_eq(got.n, sizeof(want) / sizeof(*want) - 1);
}
END_TEST

static void
read_text(const char *path, struct hr_buf *b, mode_t mode)
{
	struct hr_err err = {0};
	struct stat st;

	hr_buf_reset(b);
	ck_assert_msg(hr_path_read(path, b, &err) == 0, "%s", err.msg);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, mode);
}

/* Returns the certificate in the scratch directory's file `name`, for X509_free(). */
static X509 *
certificate(const char *name)
{
	char path[200];
	FILE *f;
	X509 *cert;

	(void)snprintf(path, sizeof(path), "%s/%s", scratch, name);
	f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	cert = PEM_read_X509(f, NULL, NULL, NULL);
	(void)fclose(f);
	ck_assert_ptr_nonnull(cert);
	return cert;
}

/* Clients accept the certificate for its host alone, and it signs no other. */
START_TEST(rights_of_certificates)
{
	struct hr_err err = {0};
	X509 *ca, *leaf;

	ck_assert_int_eq(egress_authority_make(scratch, "box", &err), 0);
	ck_assert_int_eq(egress_authority_certify(scratch, "a.test", &err), 0);
	ca = certificate("ca.crt");
	leaf = certificate("certs/a.test.crt");
	ck_assert_int_eq(X509_check_issued(ca, leaf), X509_V_OK);
	ck_assert_int_eq(X509_check_ca(ca), 1);
	ck_assert_int_eq(X509_get_pathlen(ca), 0);
	ck_assert_uint_eq(X509_get_key_usage(ca), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
	ck_assert_int_eq(X509_check_ca(leaf), 0);
	ck_assert_uint_eq(X509_get_key_usage(leaf), KU_DIGITAL_SIGNATURE);
	ck_assert_uint_eq(X509_get_extended_key_usage(leaf), XKU_SSL_SERVER);
	ck_assert_int_eq(X509_check_host(leaf, "a.test", 0, 0, NULL), 1);
	ck_assert_int_eq(X509_check_host(leaf, "b.test", 0, 0, NULL), 0);
	X509_free(ca);
	X509_free(leaf);
}
END_TEST

START_TEST(authority)
{
	struct hr_err err = {0};
	char paths[5][200];
	static const char *const names[] = {
	    "ca.key", "ca.crt", "certs/a.test.key", "certs/a.test.crt", "trust.pem"};
	static const mode_t modes[] = {0600, 0644, 0600, 0600, 0644};
	HR_BUF(key, CONFIG_MAX);
	HR_BUF(cert, CONFIG_MAX);
	HR_BUF(now, CONFIG_MAX);
	size_t i;

	for (i = 0; i < 5; i++)
		(void)snprintf(paths[i], sizeof(paths[i]), "%s/%s", scratch, names[i]);
	ck_assert_int_eq(egress_authority_certify(scratch, "a.test", &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "has no authority"));
	ck_assert_int_eq(egress_authority_make(scratch,
			     "a-box-with-a-name-that-is-longer-than-a-certificate-allows-it", &err),
	    0);
	ck_assert_int_eq(egress_authority_certify(scratch, "../a", &err), -1);
	ck_assert_int_eq(egress_authority_certify(scratch, "a,DNS:b", &err), -1);
	ck_assert_int_eq(egress_authority_certify(scratch, "A.test", &err), -1);
	ck_assert_int_eq(egress_authority_certify(scratch, "a.test", &err), 0);
	for (i = 0; i < 5; i++)
		read_text(paths[i], &now, modes[i]);
	ck_assert_ptr_nonnull(strstr(now.p, "-----BEGIN CERTIFICATE-----"));
	read_text(paths[1], &cert, 0644);
	ck_assert_ptr_nonnull(strstr(now.p, cert.p)); /* The bundle has it. */

	/* All is kept. */
	read_text(paths[0], &key, 0600);
	ck_assert_int_eq(egress_authority_make(scratch, "b", &err), 0);
	read_text(paths[0], &now, 0600);
	ck_assert_str_eq(now.p, key.p);
	read_text(paths[1], &now, 0644);
	ck_assert_str_eq(now.p, cert.p);
	read_text(paths[3], &cert, 0600);
	ck_assert_int_eq(egress_authority_certify(scratch, "a.test", &err), 0);
	read_text(paths[3], &now, 0600);
	ck_assert_str_eq(now.p, cert.p);

	/* A damaged certificate is made again for its key; one of another authority, too. */
	ck_assert_int_eq(hr_path_write(paths[3], "x", 1, 0600, &err), 0);
	read_text(paths[2], &key, 0600);
	ck_assert_int_eq(egress_authority_certify(scratch, "a.test", &err), 0);
	read_text(paths[2], &now, 0600);
	ck_assert_str_eq(now.p, key.p);
	read_text(paths[3], &cert, 0600);
	ck_assert_int_eq(unlink(paths[0]), 0);
	ck_assert_int_eq(egress_authority_make(scratch, "b", &err), 0);
	ck_assert_int_eq(egress_authority_certify(scratch, "a.test", &err), 0);
	read_text(paths[3], &now, 0600);
	ck_assert_str_ne(now.p, cert.p);
	read_text(paths[1], &cert, 0644);
	read_text(paths[4], &now, 0644);
	ck_assert_ptr_nonnull(strstr(now.p, cert.p));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("egress_edge");
	TCase *t = tcase_create("edge");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, values_are_no_configuration, 0, sizeof(secrets) / sizeof(*secrets));
	tcase_add_loop_test(t, secrets_that_are_refused, 0, 5);
	tcase_add_test(t, other_refusals);
	tcase_add_test(t, placeholders);
	tcase_add_loop_test(t, patterns, 0, 8);
	tcase_add_test(t, forms);
	tcase_add_test(t, authority);
	tcase_add_test(t, rights_of_certificates);
	suite_add_tcase(s, t);
	return lines_run(s);
}
