#include "fault/filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fault/arch.h"
#include "fault/calls.h"

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define UNLESS_EQUAL_SKIP(value, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (count))

struct program {
	struct sock_filter code[2 * CALLS_MAX + 16];
	unsigned short length;
};

static void program_add(struct program *program, struct sock_filter instruction)
{
	program->code[program->length++] = instruction;
}

static void program_add_case(struct program *program, int call, unsigned answer)
{
	program_add(program, (struct sock_filter)UNLESS_EQUAL_SKIP((unsigned)call, 1));
	program_add(program, (struct sock_filter)RETURN(answer));
}

/* The calls that are not what the plan's action is about. */
static void program_add_others(struct program *program, const struct trace_plan *plan)
{
	for (const struct trace_lack *lack = plan->lacks; lack && lack->call != -1; lack++)
		program_add_case(program, lack->call, SECCOMP_RET_ERRNO | (unsigned)lack->error);
	if (plan->no_sleep) {
		program_add_case(program, SYS_nanosleep, SECCOMP_RET_TRACE);
		program_add_case(program, SYS_clock_nanosleep, SECCOMP_RET_TRACE);
	}
	if (plan->call != CALL_ANY || plan->action == TRACE_COUNT)
		return;
	for (int number = 0; number < CALLS_MAX; number++) {
		const struct call *row = calls_find(number);

		if (row && row->idle)
			program_add_case(program, number, SECCOMP_RET_ALLOW);
	}
}

int filter_install(const struct trace_plan *plan)
{
	static struct program program;
	struct sock_fprog whole = { 0, program.code };
	unsigned others = plan->call == CALL_ANY ? SECCOMP_RET_TRACE : SECCOMP_RET_ALLOW;

	program.length = 0;
	program_add(&program, (struct sock_filter)LOAD(arch));
	program_add(&program,
		(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arch_audit, 1, 0));
	program_add(&program, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
	program_add(&program, (struct sock_filter)LOAD(nr));
	program_add_others(&program, plan);
	if (plan->call != CALL_ANY)
		program_add_case(&program, plan->call, SECCOMP_RET_TRACE);
	program_add(&program, (struct sock_filter)RETURN(others));
	whole.len = program.length;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &whole) == 0)
		return 0;
	if (errno != EACCES || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &whole) < 0 ? -errno : 0;
}
