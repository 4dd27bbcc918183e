#include "fault/arch.h"

#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#if defined(__x86_64__)

typedef struct user_regs_struct registers;

const uint32_t arch_audit = AUDIT_ARCH_X86_64;
static const unsigned long break_code = 0xcc, break_mask = 0xff, break_size = 1;

static unsigned long long *register_argument(registers *regs, unsigned index)
{
	unsigned long long *order[] = { &regs->rdi, &regs->rsi, &regs->rdx, &regs->r10, &regs->r8,
		&regs->r9 };

	return order[index];
}

static unsigned long long *register_result(registers *regs)
{
	return &regs->rax;
}

static unsigned long long *register_place(registers *regs)
{
	return &regs->rip;
}

static int call_cancel(pid_t tid, registers *regs)
{
	(void)tid;
	regs->orig_rax = (unsigned long long)-1;
	return 0;
}

#elif defined(__aarch64__)

typedef struct user_regs_struct registers;

const uint32_t arch_audit = AUDIT_ARCH_AARCH64;
static const unsigned long break_code = 0xd4200000, break_mask = 0xffffffff, break_size;

static unsigned long long *register_argument(registers *regs, unsigned index)
{
	return &regs->regs[index];
}

static unsigned long long *register_result(registers *regs)
{
	return &regs->regs[0];
}

static unsigned long long *register_place(registers *regs)
{
	return &regs->pc;
}

static int call_cancel(pid_t tid, registers *regs)
{
	int none = -1;
	struct iovec part = { &none, sizeof(none) };

	(void)regs;
	return ptrace(PTRACE_SETREGSET, tid, NT_ARM_SYSTEM_CALL, &part) < 0 ? -errno : 0;
}

#else
#error "failcall does not know the registers of this processor: add them here"
#endif

static int registers_get(pid_t tid, registers *regs)
{
	struct iovec part = { regs, sizeof(*regs) };

	return ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &part) < 0 ? -errno : 0;
}

static int registers_set(pid_t tid, registers *regs)
{
	struct iovec part = { regs, sizeof(*regs) };

	return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &part) < 0 ? -errno : 0;
}

int arch_skip(pid_t tid, long result)
{
	registers regs = { 0 };
	int rc = registers_get(tid, &regs);

	if (rc < 0)
		return rc;
	*register_result(&regs) = (unsigned long long)result;
	rc = call_cancel(tid, &regs);
	return rc < 0 ? rc : registers_set(tid, &regs);
}

int arch_set_argument(pid_t tid, unsigned index, unsigned long value)
{
	registers regs = { 0 };
	int rc = registers_get(tid, &regs);

	if (rc < 0)
		return rc;
	*register_argument(&regs, index) = value;
	return registers_set(tid, &regs);
}

int arch_set_result(pid_t tid, long result)
{
	registers regs = { 0 };
	int rc = registers_get(tid, &regs);

	if (rc < 0)
		return rc;
	*register_result(&regs) = (unsigned long long)result;
	return registers_set(tid, &regs);
}

int arch_break(pid_t tid, unsigned long address, long *saved)
{
	errno = 0;
	*saved = ptrace(PTRACE_PEEKTEXT, tid, address, 0);
	if (errno)
		return -errno;
	if (ptrace(PTRACE_POKETEXT, tid, address,
		    ((unsigned long)*saved & ~break_mask) | break_code) < 0)
		return -errno;
	return 0;
}

int arch_unbreak(pid_t tid, unsigned long address, long saved)
{
	registers regs = { 0 };
	int rc = registers_get(tid, &regs);

	if (rc < 0)
		return rc;
	if (*register_place(&regs) != address + break_size)
		return 1;
	if (ptrace(PTRACE_POKETEXT, tid, address, saved) < 0)
		return -errno;
	*register_place(&regs) = address;
	return registers_set(tid, &regs);
}
