# the only user of libcurl, which is loaded by the first request that needs it
noinst_LTLIBRARIES += libhttp.la
libhttp_la_SOURCES = %D%/answer.c %D%/answer.h %D%/curl.c %D%/curl.h %D%/http.c %D%/http.h %D%/http_int.h %D%/near.c %D%/near.h %D%/request.h
libhttp_la_CFLAGS = $(AM_CFLAGS) $(CURL_CFLAGS)
libhttp_la_LIBADD = $(DL_LIBS)

# connections in both directions: libcurl 7.88 has none that it would call done
noinst_LTLIBRARIES += libws.la
libws_la_SOURCES = %D%/ws.c %D%/ws.h
libws_la_CFLAGS = $(AM_CFLAGS) $(CURL_CFLAGS)
libws_la_LIBADD = libwsframe.la
