/* hr_viewpage: makes an HTML page that embeds one image or PDF file. It is generated while it is
 * sent: memory use does not grow with the file. */
#ifndef HR_FILES_VIEWPAGE_H
#define HR_FILES_VIEWPAGE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "proto/httperr.h"

/* Returns the type of a displayable file by its extension, which is appended to ext in lower case;
 * otherwise NULL. path is UTF-8. */
const char *hr_viewpage_type(const char *path, struct hr_buf *ext);
/* Returns the type of a file that begins with these bytes, or NULL if it cannot be shown. */
const char *hr_viewpage_content(const void *head, size_t len);
#define HR_VIEWPAGE_HEAD 16 /* bytes that are examined */
#define HR_VIEWPAGE_TYPES ".pdf, .png, .jpg, .jpeg, .gif"

/* Escapes text for HTML: between tags, and (with quotes) inside an attribute. */
void hr_viewpage_escape(struct hr_buf *b, const char *text, bool quotes);

/* Takes fd, of which the first size bytes are shown. type is one of the above. Returns NULL if out
 * of memory, with fd closed. *ret_length is the number of bytes of the whole page. */
void *hr_viewpage_new(int fd, off_t size, const char *path, const char *type, int64_t *ret_length);
/* Sends the page, for hr_answer_stream(). A file that has become shorter aborts the response. */
int hr_viewpage_send(void *page, struct hr_sink *sink, struct hr_err *err);
void hr_viewpage_free(void *page);

#endif
