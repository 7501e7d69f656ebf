/* hr_viewpage: a page that shows one image or PDF file, which is in the page itself. It is made
 * while it is sent: memory does not grow with the file. */
#ifndef HR_FILES_VIEWPAGE_H
#define HR_FILES_VIEWPAGE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "proto/httperr.h"

/* The type of what can be shown, by the extension, which is appended to ext in lower case; NULL: it
 * cannot. path is UTF-8. */
const char *hr_viewpage_type(const char *path, struct hr_buf *ext);
/* The type of a file that begins with these bytes; NULL: it cannot be shown. */
const char *hr_viewpage_content(const void *head, size_t len);
#define HR_VIEWPAGE_HEAD 16 /* bytes that suffice */
#define HR_VIEWPAGE_TYPES ".pdf, .png, .jpg, .jpeg, .gif"

/* Text for HTML: between tags, and (with quotes) inside of an attribute. */
void hr_viewpage_escape(struct hr_buf *b, const char *text, bool quotes);

/* Takes fd, of which the first size bytes are shown. type is of one of these. NULL: no
 * memory, and fd is closed. *ret_length: of the whole page. */
void *hr_viewpage_new(int fd, off_t size, const char *path, const char *type, int64_t *ret_length);
/* For hr_answer_stream(). A file that has become shorter breaks the page off. */
int hr_viewpage_send(void *page, struct hr_sink *sink, struct hr_err *err);
void hr_viewpage_free(void *page);

#endif
