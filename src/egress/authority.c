/* The authority of one box. Its key stays in DIR, which only the caller enters; its certificate is
 * in the box's trust store. A key is kept when its certificate is made again, so that a process
 * that is killed between two files leaves no pair that does not match. */
#include "config.h"

#include "egress/edge.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/path.h"
#include "base/text/text.h"
#include "egress/policy.h"

#define DAY_S 86400L
#define CA_DAYS 3650
#define CA_SPARE_DAYS 30 /* an authority that ends sooner is made again */
#define LEAF_DAYS 7
#define SERIAL_BITS 127
#define BUNDLE_MAX (16u << 20)

/* bundles of Debian, Fedora, and Alpine without its package ca-certificates */
static const char *const bundles[] = {"/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem"};

/* A key and its certificate, in the files STEM.key and STEM.crt; NULL: there is none yet. */
struct pair {
	char *key_path, *cert_path;
	EVP_PKEY *key;
	X509 *cert;
};

struct extension {
	int nid;
	const char *value; /* NULL ends a list */
};

static void
pair_done(struct pair *p)
{
	free(p->key_path);
	free(p->cert_path);
	EVP_PKEY_free(p->key);
	X509_free(p->cert);
}

static void
bio_done(BIO **bio)
{
	(void)BIO_free(*bio);
}

/* Fills *err with libcrypto's first error, and forgets the others. Returns -1. */
static int
crypto_failed(struct hr_err *err, const char *doing)
{
	const char *reason = ERR_reason_error_string(ERR_peek_error());

	ERR_clear_error();
	return hr_err_set(err, HR_E_SYS, "cannot %s: %s", doing,
	    reason != NULL ? reason : "libcrypto gives no reason");
}

/* Reads the existing parts of a pair. */
static int
pair_read(struct pair *p, const char *stem, struct hr_err *err)
{
	HR_CLEAN(bio_done) BIO *key = NULL;
	HR_CLEAN(bio_done) BIO *cert = NULL;

	if (hr_text_setf(&p->key_path, err, "%s.key", stem) < 0 ||
	    hr_text_setf(&p->cert_path, err, "%s.crt", stem) < 0)
		return -1;
	key = BIO_new_file(p->key_path, "re");
	cert = BIO_new_file(p->cert_path, "re");
	if (key != NULL)
		p->key = PEM_read_bio_PrivateKey(key, NULL, NULL, NULL);
	if (cert != NULL)
		p->cert = PEM_read_bio_X509(cert, NULL, NULL, NULL);
	ERR_clear_error();
	return 0;
}

/* Writes the key, or else the certificate. */
static int
pair_write(const struct pair *p, bool key, mode_t mode, struct hr_err *err)
{
	HR_CLEAN(bio_done) BIO *bio = BIO_new(BIO_s_secmem());
	char *text;
	long len;

	if (bio == NULL ||
	    (key ? PEM_write_bio_PrivateKey(bio, p->key, NULL, NULL, 0, NULL, NULL)
		 : PEM_write_bio_X509(bio, p->cert)) != 1 ||
	    (len = BIO_get_mem_data(bio, &text)) <= 0)
		return crypto_failed(err, "write a certificate");
	return hr_path_write(key ? p->key_path : p->cert_path, text, (size_t)len, mode, err);
}

/* Makes the key unless it is there. */
static int
pair_need_key(struct pair *p, struct hr_err *err)
{
	EVP_PKEY_CTX *ctx;

	if (p->key != NULL)
		return 0;
	ctx = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
	if (ctx == NULL || EVP_PKEY_keygen_init(ctx) != 1 ||
	    EVP_PKEY_CTX_set_ec_paramgen_curve_nid(ctx, NID_X9_62_prime256v1) != 1 ||
	    EVP_PKEY_CTX_set_ec_param_enc(ctx, OPENSSL_EC_NAMED_CURVE) != 1 ||
	    EVP_PKEY_keygen(ctx, &p->key) != 1)
		(void)crypto_failed(err, "make a key");
	EVP_PKEY_CTX_free(ctx);
	return p->key != NULL ? pair_write(p, true, 0600, err) : -1;
}

/* Returns true if the certificate is of this key, is signed by `issuer`, and holds for so many days
 * more. */
static bool
pair_valid(const struct pair *p, EVP_PKEY *issuer, int days)
{
	time_t then = time(NULL) + days * DAY_S;
	bool good = p->cert != NULL && X509_check_private_key(p->cert, p->key) == 1 &&
		    X509_verify(p->cert, issuer) == 1 &&
		    X509_cmp_time(X509_get0_notAfter(p->cert), &then) > 0 &&
		    X509_cmp_current_time(X509_get0_notBefore(p->cert)) < 0;

	ERR_clear_error();
	return good;
}

static bool
extend(X509 *cert, X509 *issuer, const struct extension *e)
{
	X509V3_CTX ctx;
	X509_EXTENSION *made;
	bool good;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	made = X509V3_EXT_conf_nid(NULL, &ctx, e->nid, e->value);
	good = made != NULL && X509_add_ext(cert, made, -1) == 1;
	X509_EXTENSION_free(made);
	return good;
}

static bool
set_serial(X509 *cert)
{
	BIGNUM *n = BN_new();
	bool good = n != NULL &&
		    BN_rand(n, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
		    BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert)) != NULL;

	BN_free(n);
	return good;
}

/* Replaces the certificate and its file; `issuer` may be the pair itself. */
static int
pair_renew(struct pair *p, const struct pair *issuer, const char *name, int days, mode_t mode,
    const struct extension *list, struct hr_err *err)
{
	X509 *cert = X509_new();
	X509_NAME *subject = cert != NULL ? X509_get_subject_name(cert) : NULL;
	X509 *parent = issuer == p ? cert : issuer->cert;
	/* The certificate holds since an hour ago, for a box whose clock is late. */
	bool good = cert != NULL && X509_set_version(cert, 2) == 1 && set_serial(cert) &&
		    X509_gmtime_adj(X509_getm_notBefore(cert), -3600) != NULL &&
		    X509_gmtime_adj(X509_getm_notAfter(cert), days * DAY_S) != NULL &&
		    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
			(const unsigned char *)name, -1, -1, 0) == 1 &&
		    X509_set_issuer_name(cert, X509_get_subject_name(parent)) == 1 &&
		    X509_set_pubkey(cert, p->key) == 1;

	for (; good && list->value != NULL; list++)
		good = extend(cert, parent, list);
	good = good && X509_sign(cert, issuer->key, EVP_sha256()) != 0;
	X509_free(p->cert);
	p->cert = cert;
	return good ? pair_write(p, false, mode, err) : crypto_failed(err, "make a certificate");
}

/* Writes the machine's bundle with the authority's certificate, unless the file is newer than the
 * bundle. The caller's own bundle (SSL_CERT_FILE, as with OpenSSL) takes the place of the
 * machine's. */
static int
write_trust(const char *path, const char *ca, struct hr_err *err)
{
	HR_BUF(text, BUNDLE_MAX);
	struct stat trust, from = {.st_mtime = 0};
	const size_t n = sizeof(bundles) / sizeof(*bundles);
	const char *bundle = getenv("SSL_CERT_FILE");
	const bool own = bundle != NULL && bundle[0] == '/';
	size_t i = 0;

	while (!own && i < n && stat(bundles[i], &from) != 0)
		i++;
	if (!own)
		bundle = i < n ? bundles[i] : NULL;
	if (!own && stat(path, &trust) == 0 && trust.st_mtime > from.st_mtime)
		return 0;
	if (bundle != NULL && hr_path_read(bundle, &text, err) < 0)
		return -1;
	hr_buf_addc(&text, '\n'); /* The bundle may end within a line. */
	if (hr_path_read(ca, &text, err) < 0)
		return -1;
	return hr_path_write(path, hr_buf_str(&text), text.len, 0644, err);
}

int
egress_authority_make(const char *dir, const char *box, struct hr_err *err)
{
	static const struct extension list[] = {
	    {NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
	    {NID_key_usage, "critical,keyCertSign,cRLSign"}, {NID_subject_key_identifier, "hash"},
	    {0, NULL}};
	HR_CLEAN(pair_done) struct pair ca = {.key = NULL};
	HR_FREE char *text = NULL;
	HR_FREE char *trust = NULL;

	if (hr_text_setf(&trust, err, "%s/trust.pem", dir) < 0 ||
	    hr_text_setf(&text, err, "%s/ca", dir) < 0 || pair_read(&ca, text, err) < 0 ||
	    pair_need_key(&ca, err) < 0)
		return -1;
	if (!pair_valid(&ca, ca.key, CA_SPARE_DAYS)) {
		(void)unlink(trust); /* the file, if it exists, has the old certificate */
		/* A name of a certificate has at most 64 characters. */
		if (hr_text_setf(&text, err, "handrail box %.50s", box) < 0 ||
		    pair_renew(&ca, &ca, text, CA_DAYS, 0644, list, err) < 0)
			return -1;
	}
	return write_trust(trust, ca.cert_path, err);
}

int
egress_authority_certify(const char *dir, const char *name, struct hr_err *err)
{
	struct extension list[] = {{NID_subject_alt_name, NULL},
	    {NID_basic_constraints, "critical,CA:FALSE"},
	    {NID_key_usage, "critical,digitalSignature"}, {NID_ext_key_usage, "serverAuth"},
	    {NID_subject_key_identifier, "hash"}, {NID_authority_key_identifier, "keyid"},
	    {0, NULL}};
	char same[EGRESS_NAME_MAX + 1];
	HR_CLEAN(pair_done) struct pair ca = {.key = NULL};
	HR_CLEAN(pair_done) struct pair leaf = {.key = NULL};
	HR_FREE char *text = NULL;

	/* The name becomes part of a path and of an extension's text. */
	if (!egress_name(name, strlen(name), same) || strcmp(name, same) != 0)
		return hr_err_set(err, HR_E_INVAL, "\"%.80s\" is not a host name", name);
	if (hr_text_setf(&text, err, "%s/ca", dir) < 0 || pair_read(&ca, text, err) < 0)
		return -1;
	if (ca.key == NULL || ca.cert == NULL)
		return hr_err_set(err, HR_E_NOTFOUND, "%s has no authority", dir);
	if (hr_text_setf(&text, err, "%s/certs", dir) < 0 ||
	    hr_path_mkdirs(text, 0700, NULL, err) < 0 ||
	    hr_text_setf(&text, err, "%s/certs/%s", dir, name) < 0 ||
	    pair_read(&leaf, text, err) < 0 || pair_need_key(&leaf, err) < 0)
		return -1;
	if (pair_valid(&leaf, ca.key, 1))
		return 0;
	if (hr_text_setf(&text, err, "DNS:%s", name) < 0)
		return -1;
	list[0].value = text;
	return pair_renew(&leaf, &ca, "host of a handrail box", LEAF_DAYS, 0600, list, err);
}
