# the only user of libcurl
noinst_LTLIBRARIES += libhttp.la
libhttp_la_SOURCES = %D%/http.c %D%/http.h
libhttp_la_CFLAGS = $(AM_CFLAGS) $(CURL_CFLAGS)
libhttp_la_LIBADD = $(CURL_LIBS)
