# the page of a sandbox
check_PROGRAMS += %D%/unit/test_signin
TESTS += %D%/unit/test_signin
LONG_TESTS += %D%/e2e/test_www_parts.py
EXTRA_DIST += %D%/e2e/test_www.py %D%/e2e/test_www_page.py %D%/e2e/test_www_parts.py %D%/e2e/lib/webdriver.py %D%/e2e/lib/www.py
t_unit_test_signin_SOURCES = %D%/unit/test_signin.c
t_unit_test_signin_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
t_unit_test_signin_LDADD = libproto.la libbase.la $(CHECK_LIBS)
