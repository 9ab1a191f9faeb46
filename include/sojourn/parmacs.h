/* SPDX-License-Identifier: Apache-2.0 */
/* What MAIN_ENV and EXTERN_ENV become: the declarations that other implementations of the macros
 * bring along too, and that programs rely on. */
#ifndef SOJOURN_PARMACS_H
#define SOJOURN_PARMACS_H

#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include <sojourn_shared.h>

/* Splash-3 has it from the macros. */
#ifndef PAGE_SIZE
#define PAGE_SIZE 4096
#endif

/* The C library has it still, but declares it no longer; undeclared, it would return an int. */
#ifndef __cplusplus
char* gets(char* line);
#endif

#endif
