# Each program runs its scenarios while one call after the other fails; see engine.c.
EXTRA_DIST += %D%/README
FAULT_DRIVERS = %D%/drive_keeper %D%/drive_files %D%/drive_alert %D%/drive_base %D%/drive_exchange %D%/drive_pool \
	%D%/drive_proto %D%/drive_session %D%/drive_supervisor %D%/drive_text %D%/drive_transfer %D%/drive_worker
check_LTLIBRARIES += %D%/failcalls.la
check_PROGRAMS += $(FAULT_DRIVERS)
fault_engine = %D%/engine.c %D%/failcalls.h %D%/fault.h

t_fault_failcalls_la_SOURCES = %D%/failcalls.c %D%/failcalls.h %D%/failcalls_int.h %D%/failspared.c
# it runs before a sanitizer is ready
t_fault_failcalls_la_CFLAGS = $(WARN_CFLAGS)
t_fault_failcalls_la_CPPFLAGS = -U_FORTIFY_SOURCE
t_fault_failcalls_la_LDFLAGS = -module -avoid-version -rpath /nowhere
t_fault_failcalls_la_LIBADD = -ldl
t_fault_drive_alert_SOURCES = %D%/drive_alert.c $(fault_engine)
t_fault_drive_alert_LDADD = libsupervisor.la
t_fault_drive_base_SOURCES = %D%/drive_base.c $(fault_engine)
t_fault_drive_base_LDADD = libloop.la libbase.la
t_fault_drive_exchange_SOURCES = %D%/drive_exchange.c %D%/peer.c %D%/peer.h $(fault_engine)
t_fault_drive_exchange_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fault_drive_exchange_LDADD = libworker.la libdetect.la
t_fault_drive_files_SOURCES = %D%/drive_files.c %D%/tree.c %D%/tree.h $(fault_engine)
t_fault_drive_files_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fault_drive_files_LDADD = libfiles.la libdetect.la
t_fault_drive_keeper_SOURCES = %D%/drive_keeper.c %D%/peer.c %D%/peer.h $(fault_engine)
t_fault_drive_keeper_LDADD = libkeeper.la
t_fault_drive_pool_SOURCES = %D%/drive_pool.c $(fault_engine)
t_fault_drive_pool_LDADD = libsupervisor.la
t_fault_drive_proto_SOURCES = %D%/drive_proto.c $(fault_engine)
t_fault_drive_proto_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fault_drive_proto_LDADD = libprotojson.la libproto.la libbase.la
t_fault_drive_session_SOURCES = %D%/drive_session.c $(fault_engine)
t_fault_drive_session_LDADD = libkeeper.la
t_fault_drive_supervisor_SOURCES = %D%/drive_supervisor.c $(fault_engine)
t_fault_drive_supervisor_LDADD = libsupervisor.la
t_fault_drive_text_SOURCES = %D%/drive_text.c $(fault_engine)
t_fault_drive_text_LDADD = libterm.la libshell.la libbase.la
t_fault_drive_transfer_SOURCES = %D%/drive_transfer.c %D%/tree.c %D%/tree.h $(fault_engine)
t_fault_drive_transfer_LDADD = libarchives.la libfiles.la libdetect.la
t_fault_drive_worker_SOURCES = %D%/drive_worker.c %D%/../unit/keysums.h %D%/../unit/request.h $(fault_engine)
t_fault_drive_worker_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
t_fault_drive_worker_LDADD = libworker.la libdetect.la
