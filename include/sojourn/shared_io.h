/* SPDX-License-Identifier: Apache-2.0 */
/* System calls and stdio on shared memory (docs/shared_memory.md), with the signatures of the C
 * library, for C and C++.
 *
 * The system does not wait for a page that is elsewhere: it fails with EFAULT, or reads and writes
 * less than it could, or loses a datagram. These functions pin the pages of the buffers first
 * (sojourn::shared::pinned), and then make the call; where no buffer lies in shared memory, they
 * make it at once. They suspend the calling fiber while a page is elsewhere. Results and errno are
 * those of the call. Arrays of buffers, and what else the arguments point to, may lie in shared
 * memory, too.
 *
 * They can be put in the place of the library's by the linker: with -Wl,--wrap=read and
 * `ssize_t __wrap_read(int fd, void *to, size_t n) { return sojourn_shared_read(fd, to, n); }`
 * they themselves still call the library. */
#ifndef SOJOURN_SHARED_IO_H
#define SOJOURN_SHARED_IO_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct iovec;
struct msghdr;
struct sockaddr;

ssize_t sojourn_shared_read(int fd, void* to, size_t bytes);
ssize_t sojourn_shared_write(int fd, const void* from, size_t bytes);
ssize_t sojourn_shared_pread(int fd, void* to, size_t bytes, off_t at);
ssize_t sojourn_shared_pwrite(int fd, const void* from, size_t bytes, off_t at);
ssize_t sojourn_shared_readv(int fd, const struct iovec* to, int count);
ssize_t sojourn_shared_writev(int fd, const struct iovec* from, int count);
ssize_t sojourn_shared_recv(int fd, void* to, size_t bytes, int flags);
ssize_t sojourn_shared_recvfrom(int fd, void* to, size_t bytes, int flags, struct sockaddr* from,
                                unsigned int* from_bytes);
ssize_t sojourn_shared_recvmsg(int fd, struct msghdr* message, int flags);
ssize_t sojourn_shared_send(int fd, const void* from, size_t bytes, int flags);
ssize_t sojourn_shared_sendto(int fd, const void* from, size_t bytes, int flags,
                              const struct sockaddr* to, unsigned int to_bytes);
ssize_t sojourn_shared_sendmsg(int fd, const struct msghdr* message, int flags);

/* While one of these runs, no other fiber of the rank does (sojourn::shared::undivided): a stream's
 * lock belongs to the thread, and would let them pass. */
size_t sojourn_shared_fread(void* to, size_t each, size_t count, FILE* stream);
size_t sojourn_shared_fwrite(const void* from, size_t each, size_t count, FILE* stream);
char* sojourn_shared_fgets(char* to, int bytes, FILE* stream);
int sojourn_shared_fputs(const char* text, FILE* stream);
int sojourn_shared_puts(const char* text);
int sojourn_shared_vfscanf(FILE* stream, const char* format, va_list to);
int sojourn_shared_vfprintf(FILE* stream, const char* format, va_list values);
__attribute__((format(scanf, 2, 3))) int sojourn_shared_fscanf(FILE* stream, const char* format,
                                                               ...);
__attribute__((format(scanf, 1, 2))) int sojourn_shared_scanf(const char* format, ...);
__attribute__((format(printf, 2, 3))) int sojourn_shared_fprintf(FILE* stream, const char* format,
                                                                 ...);
__attribute__((format(printf, 1, 2))) int sojourn_shared_printf(const char* format, ...);

/* For all other calls: sojourn::shared::pinned. What is pinned is unpinned with the same arguments,
 * on the same rank. `stores`: not 0 when the memory will be stored to. Suspends. */
void sojourn_shared_pin(const void* p, size_t bytes, int stores);
void sojourn_shared_unpin(const void* p, size_t bytes, int stores);

#ifdef __cplusplus
}
#endif
#endif
