/*divert(-1)m4_divert(-1)
SPDX-License-Identifier: Apache-2.0

The macros of ANL and PARMACS, as programs of the SPLASH family use them, over sojourn_shared.h:

    m4 -s -Ulen -Uindex $(sojourn cc --macros) program.C > program.c
    sojourn cc program.c -o program

`sojourn cc program.C -o program' does both. docs/parmacs.md lists the macros.

Works with and without m4's option -P. What m4 executes here it knows by one name in both cases; a
line that is meant for the other case is text, which nobody sees. An expansion has no line breaks, so
that it may stand in a `#define' of several lines, and no comments, so that it may stand in one. A name
with arguments is expanded only where they follow: a word in a comment or a string stays what it is.
Statements are blocks, as programs write `LOCK(x)' with a semicolon and without one.

define(`m4_define', defn(`define'))
define(`m4_defn', defn(`defn'))
define(`m4_ifelse', defn(`ifelse'))
define(`m4_ifdef', defn(`ifdef'))
define(`m4_errprint', defn(`errprint'))
define(`m4_m4exit', defn(`m4exit'))
define(`m4___file__', defn(`__file__'))
define(`m4___line__', defn(`__line__'))

--- Programs and processes
m4_define(`MAIN_ENV', `
#include <sojourn/parmacs.h>
')
m4_define(`EXTERN_ENV', `
#include <sojourn/parmacs.h>
')
m4_define(`ENV', ` ')
m4_define(`MAIN_INITENV', `{;}')
m4_define(`MAIN_END', `{sojourn_exit(0);}')
m4_define(`CREATE', `m4_ifelse(`$#', `0', ``CREATE'',
  `$#', `1', `{sojourn_create((void (*)(void *))(void (*)(void))($1), 0);}',
  `$#', `2', `{sojourn_create_team((void (*)(void *))(void (*)(void))($1), (long)($2));}',
  `sojourn_refuse(`CREATE of $# arguments', `give a function, or a function and the number of processes')')')
m4_define(`MAIN_INITENV_LITE', `{;}')
m4_define(`MAIN_END_LITE', `{sojourn_exit(0);}')
m4_define(`CREATE_LITE', `m4_ifelse(`$#', `0', ``CREATE_LITE'',
  `$#', `1', `{sojourn_create((void (*)(void *))(void (*)(void))($1), 0);}',
  `$#', `2', `{sojourn_create_team((void (*)(void *))(void (*)(void))($1), (long)($2));}',
  `sojourn_refuse(`CREATE of $# arguments', `give a function, or a function and the number of processes')')')
m4_define(`WAIT_FOR_END', `{sojourn_wait_for_end(m4_ifelse(`$1', `', `0', `(long)($1)'));}')
m4_define(`NEWPROC', `m4_ifelse(`$#', `0', ``NEWPROC'', `')')
m4_define(`GET_PID', `m4_ifelse(`$#', `0', ``GET_PID'', `{($1) = sojourn_process();}')')
m4_define(`GET_PID_F', `sojourn_process()')
m4_define(`GET_HOME', `m4_ifelse(`$#', `0', ``GET_HOME'', `{($1) = 0;}')')
m4_define(`SET_HOME', `m4_ifelse(`$#', `0', ``SET_HOME'', `{;}')')
--- Memory. G_MALLOC ends a statement, G_MALLOC_F is a part of one. `sojourn cc' finds out whether
a semicolon is to follow what it marks.
m4_define(`G_MALLOC', `m4_ifelse(`$#', `0', ``G_MALLOC'', `sojourn_shared_alloc((size_t)($1))sojourn_end_of_statement')')
m4_define(`G_MALLOC_F', `m4_ifelse(`$#', `0', ``G_MALLOC_F'', `sojourn_shared_alloc((size_t)($1))')')
m4_define(`G_FREE', `m4_ifelse(`$#', `0', ``G_FREE'', `{sojourn_shared_free((void *)($1));}')')
m4_define(`NU_MALLOC', `m4_ifelse(`$#', `0', ``NU_MALLOC'', `sojourn_shared_alloc((size_t)($1))sojourn_end_of_statement')')
m4_define(`NU_MALLOC_F', `m4_ifelse(`$#', `0', ``NU_MALLOC_F'', `sojourn_shared_alloc((size_t)($1))')')
m4_define(`NU_FREE', `m4_ifelse(`$#', `0', ``NU_FREE'', `{sojourn_shared_free((void *)($1));}')')
m4_define(`sojourn_end_of_statement', m4_ifdef(`SOJOURN_CC', ``;sojourn_maybe'', ``;''))
--- Locks
m4_define(`LOCKDEC', `m4_ifelse(`$#', `0', ``LOCKDEC'', `sojourn_lock_t $1;')')
m4_define(`LOCKINIT', `m4_ifelse(`$#', `0', ``LOCKINIT'', `{sojourn_lock_init(&($1));}')')
m4_define(`LOCK', `m4_ifelse(`$#', `0', ``LOCK'', `{sojourn_lock(&($1));}')')
m4_define(`UNLOCK', `m4_ifelse(`$#', `0', ``UNLOCK'', `{sojourn_unlock(&($1));}')')
m4_define(`NLOCKDEC', `m4_ifelse(`$#', `0', ``NLOCKDEC'', `sojourn_lock_t $1;')')
m4_define(`NLOCKINIT', `m4_ifelse(`$#', `0', ``NLOCKINIT'', `{sojourn_lock_init(&($1));}')')
m4_define(`NLOCK', `m4_ifelse(`$#', `0', ``NLOCK'', `{sojourn_lock(&($1));}')')
m4_define(`NUNLOCK', `m4_ifelse(`$#', `0', ``NUNLOCK'', `{sojourn_unlock(&($1));}')')
m4_define(`SPINLOCKDEC', `m4_ifelse(`$#', `0', ``SPINLOCKDEC'', `sojourn_lock_t $1;')')
m4_define(`SPINLOCKINIT', `m4_ifelse(`$#', `0', ``SPINLOCKINIT'', `{sojourn_lock_init(&($1));}')')
m4_define(`SPINLOCK', `m4_ifelse(`$#', `0', ``SPINLOCK'', `{sojourn_lock(&($1));}')')
m4_define(`SPINUNLOCK', `m4_ifelse(`$#', `0', ``SPINUNLOCK'', `{sojourn_unlock(&($1));}')')
m4_define(`ALOCKDEC', `m4_ifelse(`$#', `0', ``ALOCKDEC'', `sojourn_lock_t $1[$2];')')
m4_define(`ALOCKINIT', `m4_ifelse(`$#', `0', ``ALOCKINIT'', `{sojourn_lock_init(&($1)[0]);}')')
m4_define(`ALOCK', `m4_ifelse(`$#', `0', ``ALOCK'', `{sojourn_lock(&($1)[$2]);}')')
m4_define(`AULOCK', `m4_ifelse(`$#', `0', ``AULOCK'', `{sojourn_unlock(&($1)[$2]);}')')
m4_define(`AUNLOCK', `m4_ifelse(`$#', `0', ``AUNLOCK'', `{sojourn_unlock(&($1)[$2]);}')')
m4_define(`AGETL', `m4_ifelse(`$#', `0', ``AGETL'', `(($1)[$2])')')
--- Barriers
m4_define(`BARDEC', `m4_ifelse(`$#', `0', ``BARDEC'', `sojourn_barrier_t $1;')')
m4_define(`BARINIT', `m4_ifelse(`$#', `0', ``BARINIT'', `{sojourn_barrier_init(&($1), m4_ifelse(`$2', `', `0', `(long)($2)'));}')')
m4_define(`BARRIER', `m4_ifelse(`$#', `0', ``BARRIER'', `{sojourn_barrier_wait(&($1), m4_ifelse(`$2', `', `0', `(long)($2)'));}')')
m4_define(`BAREXCLUDE', `m4_ifelse(`$#', `0', ``BAREXCLUDE'', `{;}')')
m4_define(`BARINCLUDE', `m4_ifelse(`$#', `0', ``BARINCLUDE'', `{;}')')
m4_define(`BARDECGLOBAL', `')
m4_define(`BAREXTERN', `')
--- Loops whose subscripts are dealt out
m4_define(`GSDEC', `m4_ifelse(`$#', `0', ``GSDEC'', `sojourn_counter_t $1;')')
m4_define(`GSINIT', `m4_ifelse(`$#', `0', ``GSINIT'', `{sojourn_counter_set(&($1), 0);}')')
m4_define(`GETSUB', `m4_ifelse(`$#', `0', ``GETSUB'', `{($2) = sojourn_subscript(&($1), (long)($3), m4_ifelse(`$4', `', `0', `(long)($4)'));}')')
m4_define(`NU_GSDEC', `m4_ifelse(`$#', `0', ``NU_GSDEC'', `sojourn_counter_t $1;')')
m4_define(`NU_GSINIT', `m4_ifelse(`$#', `0', ``NU_GSINIT'', `{sojourn_counter_set(&($1), 0);}')')
m4_define(`NU_GETSUB', `m4_ifelse(`$#', `0', ``NU_GETSUB'', `{($2) = sojourn_subscript(&($1), (long)($3), m4_ifelse(`$4', `', `0', `(long)($4)'));}')')
m4_define(`WEAKGETSUB', `m4_ifelse(`$#', `0', ``WEAKGETSUB'', `{($2) = sojourn_subscript(&($1), (long)($3), 0);}')')
--- Flags
m4_define(`PAUSEDEC', `m4_ifelse(`$#', `0', ``PAUSEDEC'', `sojourn_flag_t $1`'m4_ifelse(`$2', `', `', `[$2]');')')
m4_define(`PAUSEINIT', `m4_ifelse(`$#', `0', ``PAUSEINIT'', `{sojourn_flag_init(&($1));}')')
m4_define(`CLEARPAUSE', `m4_ifelse(`$#', `0', ``CLEARPAUSE'', `{sojourn_flag_clear(&($1));}')')
m4_define(`SETPAUSE', `m4_ifelse(`$#', `0', ``SETPAUSE'', `{sojourn_flag_set(&($1));}')')
m4_define(`WAITPAUSE', `m4_ifelse(`$#', `0', ``WAITPAUSE'', `{sojourn_flag_wait(&($1));}')')
m4_define(`PAUSE', `m4_ifelse(`$#', `0', ``PAUSE'', `{sojourn_flag_wait(&($1));}')')
m4_define(`EVENT', `m4_ifelse(`$#', `0', ``EVENT'', `{;}')')
--- Condition variables and semaphores
m4_define(`CONDVARDEC', `m4_ifelse(`$#', `0', ``CONDVARDEC'', `sojourn_condition_t $1;')')
m4_define(`CONDVARINIT', `m4_ifelse(`$#', `0', ``CONDVARINIT'', `{sojourn_condition_init(&($1));}')')
m4_define(`CONDVARWAIT', `m4_ifelse(`$#', `0', ``CONDVARWAIT'', `{sojourn_condition_wait(&($1), &($2));}')')
m4_define(`CONDVARSIGNAL', `m4_ifelse(`$#', `0', ``CONDVARSIGNAL'', `{sojourn_condition_signal(&($1));}')')
m4_define(`CONDVARBCAST', `m4_ifelse(`$#', `0', ``CONDVARBCAST'', `{sojourn_condition_broadcast(&($1));}')')
m4_define(`SEMDEC', `m4_ifelse(`$#', `0', ``SEMDEC'', `sojourn_semaphore_t $1;')')
m4_define(`SEMINIT', `m4_ifelse(`$#', `0', ``SEMINIT'', `{sojourn_semaphore_init(&($1), m4_ifelse(`$2', `', `0', `(long)($2)'));}')')
m4_define(`SEMP', `m4_ifelse(`$#', `0', ``SEMP'', `{sojourn_semaphore_wait(&($1));}')')
m4_define(`SEMV', `m4_ifelse(`$#', `0', ``SEMV'', `{sojourn_semaphore_post(&($1));}')')
m4_define(`RELEASE_FENCE', `{__sync_synchronize();}')
m4_define(`ACQUIRE_FENCE', `{__sync_synchronize();}')
m4_define(`FULL_FENCE', `{__sync_synchronize();}')
--- Time
m4_define(`CLOCK', `m4_ifelse(`$#', `0', ``CLOCK'', `{($1) = sojourn_clock_us();}')')
--- What other implementations trace and simulate
m4_define(`AUG_ON', ` ')
m4_define(`AUG_OFF', ` ')
m4_define(`TRACE_ON', ` ')
m4_define(`TRACE_OFF', ` ')
m4_define(`REF_TRACE_ON', ` ')
m4_define(`REF_TRACE_OFF', ` ')
m4_define(`RESET_STATISTICS', ` ')
m4_define(`SPLASH3_ROI_BEGIN', ` ')
m4_define(`SPLASH3_ROI_END', ` ')
m4_define(`SPLASH4_ROI_BEGIN', ` ')
m4_define(`SPLASH4_ROI_END', ` ')
m4_define(`DYN_TRACE_ON', `;')
m4_define(`DYN_TRACE_OFF', `;')
m4_define(`DYN_REF_TRACE_ON', `;')
m4_define(`DYN_REF_TRACE_OFF', `;')
m4_define(`DYN_SIM_ON', `;')
m4_define(`DYN_SIM_OFF', `;')
m4_define(`DYN_SCHED_ON', `;')
m4_define(`DYN_SCHED_OFF', `;')
m4_define(`AUG_SET_LOLIMIT', `m4_ifelse(`$#', `0', ``AUG_SET_LOLIMIT'', `;')')
m4_define(`AUG_SET_HILIMIT', `m4_ifelse(`$#', `0', ``AUG_SET_HILIMIT'', `;')')
m4_define(`AUG_DELAY', `m4_ifelse(`$#', `0', ``AUG_DELAY'', `{sleep($1);}')')
m4_define(`ST_LOG', `m4_ifelse(`$#', `0', ``ST_LOG'', `;')')
--- What there is not
m4_define(`sojourn_refuse',
`m4_errprint(m4___file__:m4___line__`: $1 is not among the macros that Sojourn has: $2
')m4_m4exit(1)')
m4_define(`ASKFOR', `m4_ifelse(`$#', `0', ``ASKFOR'', `sojourn_refuse(`ASKFOR', `a pool of work can be kept under a LOCK, or dealt out by GETSUB')')')
m4_define(`PROBEND', `m4_ifelse(`$#', `0', ``PROBEND'', `sojourn_refuse(`PROBEND', `a pool of work can be kept under a LOCK, or dealt out by GETSUB')')')
m4_define(`PROGEND', `m4_ifelse(`$#', `0', ``PROGEND'', `sojourn_refuse(`PROGEND', `a pool of work can be kept under a LOCK, or dealt out by GETSUB')')')
m4_define(`ADEC', `m4_ifelse(`$#', `0', ``ADEC'', `sojourn_refuse(`ADEC', `a pool of work can be kept under a LOCK, or dealt out by GETSUB')')')
m4_define(`AINIT', `m4_ifelse(`$#', `0', ``AINIT'', `sojourn_refuse(`AINIT', `a pool of work can be kept under a LOCK, or dealt out by GETSUB')')')
m4_define(`MENTER', `m4_ifelse(`$#', `0', ``MENTER'', `sojourn_refuse(`MENTER', `use LOCK and UNLOCK, and CONDVARWAIT and CONDVARSIGNAL')')')
m4_define(`MEXIT', `m4_ifelse(`$#', `0', ``MEXIT'', `sojourn_refuse(`MEXIT', `use LOCK and UNLOCK, and CONDVARWAIT and CONDVARSIGNAL')')')
m4_define(`DELAY', `m4_ifelse(`$#', `0', ``DELAY'', `sojourn_refuse(`DELAY', `use LOCK and UNLOCK, and CONDVARWAIT and CONDVARSIGNAL')')')
m4_define(`CONTINUE', `m4_ifelse(`$#', `0', ``CONTINUE'', `sojourn_refuse(`CONTINUE', `use LOCK and UNLOCK, and CONDVARWAIT and CONDVARSIGNAL')')')
m4_define(`MONINIT', `m4_ifelse(`$#', `0', ``MONINIT'', `sojourn_refuse(`MONINIT', `use LOCK and UNLOCK, and CONDVARWAIT and CONDVARSIGNAL')')')

m4_divert(0)divert(0)*/
