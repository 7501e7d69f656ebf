#include "config.h"

#include "worker/e2b/mime.h"

#include <string.h>
#include <strings.h>

#include "base/path.h"

#define UTF8 "; charset=utf-8"
#define OCTETS "application/octet-stream"

static const struct {
	const char *extension, *type;
} by_extension[] = {
    {"avif", "image/avif"},
    {"bmp", "image/bmp"},
    {"bz2", "application/x-bzip"},
    {"c", "text/x-csrc" UTF8},
    {"css", "text/css" UTF8},
    {"csv", "text/csv" UTF8},
    {"doc", "application/msword"},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"h", "text/x-chdr" UTF8},
    {"htm", "text/html" UTF8},
    {"html", "text/html" UTF8},
    {"ico", "image/vnd.microsoft.icon"},
    {"ics", "text/calendar" UTF8},
    {"java", "text/x-java" UTF8},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript" UTF8},
    {"json", "application/json"},
    {"log", "text/plain" UTF8},
    {"md", "text/markdown" UTF8},
    {"mjs", "text/javascript" UTF8},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"ogg", "audio/ogg"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"ppt", "application/vnd.ms-powerpoint"},
    {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {"py", "text/x-python" UTF8},
    {"rtf", "application/rtf"},
    {"sh", "application/x-sh"},
    {"svg", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"tgz", "application/x-gtar-compressed"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"ts", "video/mp2t"},
    {"tsv", "text/tab-separated-values" UTF8},
    {"txt", "text/plain" UTF8},
    {"wasm", "application/wasm"},
    {"wav", "audio/x-wav"},
    {"webm", "video/webm"},
    {"webp", "image/webp"},
    {"xls", "application/vnd.ms-excel"},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"xml", "text/xml" UTF8},
    {"zip", "application/zip"},
};

const char *
hr_mime_by_name(const char *path)
{
	const char *dot = strrchr(hr_path_leaf(path), '.');
	size_t i;

	for (i = 0; dot != NULL && i < sizeof(by_extension) / sizeof(*by_extension); i++)
		if (strcasecmp(by_extension[i].extension, dot + 1) == 0)
			return by_extension[i].type;
	return NULL;
}

/* Beginnings of files; those of markup are compared without case and end with a blank or ">". */
static const struct {
	const char *bytes;
	size_t len;
	const char *type;
} magic[] = {
#define MAGIC(bytes, type)                                                                         \
	{                                                                                          \
		bytes, sizeof(bytes) - 1, type                                                     \
	}
    MAGIC("%PDF-", "application/pdf"),
    MAGIC("%!PS-Adobe-", "application/postscript"),
    MAGIC("\xfe\xff", "text/plain; charset=utf-16be"),
    MAGIC("\xff\xfe", "text/plain; charset=utf-16le"),
    MAGIC("\xef\xbb\xbf", "text/plain" UTF8),
    MAGIC("\0\0\1\0", "image/x-icon"),
    MAGIC("BM", "image/bmp"),
    MAGIC("GIF87a", "image/gif"),
    MAGIC("GIF89a", "image/gif"),
    MAGIC("\x89PNG\r\n\x1a\n", "image/png"),
    MAGIC("\xff\xd8\xff", "image/jpeg"),
    MAGIC("ID3", "audio/mpeg"),
    MAGIC("OggS\0", "application/ogg"),
    MAGIC("\x1a\x45\xdf\xa3", "video/webm"),
    MAGIC("\0asm", "application/wasm"),
    MAGIC("\x1f\x8b\x08", "application/x-gzip"),
    MAGIC("PK\3\4", "application/zip"),
    MAGIC("Rar!\x1a\x07", "application/x-rar-compressed"),
};

static const char *const html[] = {"<!DOCTYPE HTML", "<HTML", "<HEAD", "<SCRIPT", "<IFRAME", "<H1",
    "<DIV", "<FONT", "<TABLE", "<A", "<STYLE", "<TITLE", "<B", "<BODY", "<BR", "<P", "<!--"};

/* Returns true for a tag that begins an HTML document. */
static bool
is_html(const char *p, size_t len)
{
	size_t i, n;

	for (i = 0; i < sizeof(html) / sizeof(*html); i++) {
		n = strlen(html[i]);
		if (len > n && strncasecmp(p, html[i], n) == 0 && (p[n] == ' ' || p[n] == '>'))
			return true;
	}
	return false;
}

static bool
is_binary(unsigned char ch)
{
	return ch <= 0x08 || ch == 0x0b || (ch >= 0x0e && ch <= 0x1a) || (ch >= 0x1c && ch <= 0x1f);
}

const char *
hr_mime_by_content(const char *p, size_t len)
{
	size_t i, at = 0;

	len = len > HR_MIME_SNIFF ? HR_MIME_SNIFF : len;
	while (at < len && memchr("\t\n\f\r ", p[at], 5) != NULL)
		at++;
	if (is_html(p + at, len - at))
		return "text/html" UTF8;
	if (len - at >= 5 && memcmp(p + at, "<?xml", 5) == 0)
		return "text/xml" UTF8;
	for (i = 0; i < sizeof(magic) / sizeof(*magic); i++)
		if (len >= magic[i].len && memcmp(p, magic[i].bytes, magic[i].len) == 0)
			return magic[i].type;
	if (len >= 14 && memcmp(p, "RIFF", 4) == 0 && memcmp(p + 8, "WEBPVP", 6) == 0)
		return "image/webp";
	if (len >= 12 && memcmp(p, "RIFF", 4) == 0 && memcmp(p + 8, "WAVE", 4) == 0)
		return "audio/wave";
	for (; at < len; at++)
		if (is_binary((unsigned char)p[at]))
			return OCTETS;
	return "text/plain" UTF8;
}

static bool
is_token(unsigned char ch)
{
	return ch > ' ' && ch < 0x7f && strchr("()<>@,;:\\\"/[]?=", ch) == NULL;
}

void
hr_mime_put_disposition(struct hr_buf *b, const char *name)
{
	const char *p;
	bool token = true, plain = true;

	for (p = name; *p != '\0'; p++) {
		token = token && is_token((unsigned char)*p);
		plain = plain && ((*p >= ' ' && *p <= '~') || *p == '\t');
	}
	hr_buf_adds(b, "inline; filename");
	if (!plain) {
		hr_buf_adds(b, "*=utf-8''");
		for (p = name; *p != '\0'; p++) {
			if (is_token((unsigned char)*p) && strchr("*'%", *p) == NULL)
				hr_buf_addc(b, *p);
			else
				hr_buf_addf(b, "%%%02X", (unsigned char)*p);
		}
	} else if (token) {
		hr_buf_addf(b, "=%s", name);
	} else {
		hr_buf_adds(b, "=\"");
		for (p = name; *p != '\0'; p++) {
			if (*p == '"' || *p == '\\')
				hr_buf_addc(b, '\\');
			hr_buf_addc(b, *p);
		}
		hr_buf_addc(b, '"');
	}
}
