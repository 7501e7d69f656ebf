/* Makes one allocation of a test fail. The program is linked with $(nomem_wraps). */
#ifndef T_FUSE_H
#define T_FUSE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
int __real_vasprintf(char **ret, const char *fmt, va_list ap);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
int __wrap_vasprintf(char **ret, const char *fmt, va_list ap);

static long fuse = -1; /* allocations until one fails; below 0: none does */

static bool
burnt(void)
{
	return fuse >= 0 && fuse-- == 0;
}

void *
__wrap_malloc(size_t size)
{
	return burnt() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return burnt() ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t size)
{
	return burnt() ? NULL : __real_realloc(p, size);
}

void *
__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return burnt() ? NULL : __real_reallocarray(p, n, size);
}

char *
__wrap_strdup(const char *s)
{
	return burnt() ? NULL : __real_strdup(s);
}

char *
__wrap_strndup(const char *s, size_t n)
{
	return burnt() ? NULL : __real_strndup(s, n);
}

int
__wrap_vasprintf(char **ret, const char *fmt, va_list ap)
{
	return burnt() ? -1 : __real_vasprintf(ret, fmt, ap);
}

#endif
