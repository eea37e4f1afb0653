/* Lets user-mode Linux run on processors with more register state than it knows (AMX: 11 KB instead of 2.7 KB).
 *
 * The kernel accepts the extended registers of a traced process only at their full size. User-mode Linux sends as much as it has
 * room for. Preloaded into it, this sends the rest as zeros: components that a process has not used are zero, and no program
 * of the guest uses AMX.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

#define MOST 65536

long ptrace(enum __ptrace_request request, ...) {
    static long (*next)(enum __ptrace_request, pid_t, void *, void *);
    static size_t full; /* size of the extended registers of this processor */
    static char registers[MOST];
    va_list rest;
    va_start(rest, request);
    pid_t process = va_arg(rest, pid_t);
    void *kind = va_arg(rest, void *);
    void *data = va_arg(rest, void *);
    va_end(rest);
    if (!next)
        next = (long (*)(enum __ptrace_request, pid_t, void *, void *))dlsym(RTLD_NEXT, "ptrace");
    if (request != PTRACE_SETREGSET || (long)kind != NT_X86_XSTATE)
        return next(request, process, kind, data);
    struct iovec all = {registers, MOST}, *given = data;
    if (!full && next(PTRACE_GETREGSET, process, kind, &all) == 0)
        full = all.iov_len;
    if (given->iov_len >= full)
        return next(request, process, kind, data);
    memcpy(registers, given->iov_base, given->iov_len);
    memset(registers + given->iov_len, 0, full - given->iov_len);
    all.iov_len = full;
    return next(request, process, kind, &all);
}
