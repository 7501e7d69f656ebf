/* edge_text: quotes foreign text for nginx's configuration, and finds secrets in other forms. Text
 * is in a configuration in two ways only: as edge_add_text() quotes it, or as a regular expression
 * of letters, digits, '_' and \xHH. */
#ifndef HR_EGRESS_EDGE_TEXT_H
#define HR_EGRESS_EDGE_TEXT_H

#include <stddef.h>

#include "base/buf.h"
#include "base/strv.h"

#define EDGE_WORD_MAX 4000 /* nginx reads no longer word */
#define EDGE_UNRESERVED "-_.~"

/* Appends text for a word in double quotes in which nginx replaces variables. There is no escape
 * for a dollar sign, so the variable $eg_dollar has it as its value. */
void edge_add_text(struct hr_buf *b, const char *p, size_t len);
/* Appends a regular expression for these bytes. */
void edge_add_regex(struct hr_buf *b, const char *p, size_t len);
/* Appends a regular expression for a pattern, in which '*' stands for bytes that `any` matches. */
void edge_add_pattern(struct hr_buf *b, const char *pattern, const char *any);

/* Appends two quoted words, as a line of a map; a word that is too long spoils `to`. */
void edge_add_line(struct hr_buf *to, const struct hr_buf *key, const struct hr_buf *value);
/* Appends a line that puts `to` in place of the last `from` after the expression `start`. */
void edge_add_replacement(struct hr_buf *b, const char *start, const char *from, const char *to);
/* Appends lines that replace `from` by `to` in "Basic BASE64", for `from` as the password of any
 * user, or as the user without a password or with "x-oauth-basic". */
void edge_add_basic(struct hr_buf *b, const char *from, const char *to);

/* Lists the forms of a secret that are looked for in answers. */
void edge_list_forms(struct hr_strv *forms, const char *secret);

#endif
