#include "fault/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault/filter.h"

#define OPTIONS \
	(PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | \
		PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK)

extern char **environ;

static int redirect(const struct trace_plan *plan)
{
	int null = -1;

	if (plan->out >= 0 && dup2(plan->out, 1) < 0)
		return -1;
	if (plan->err >= 0 && dup2(plan->err, 2) < 0)
		return -1;
	if (plan->out >= 0) {
		null = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (null < 0 || dup2(null, 0) < 0)
			return -1;
	}
	return 0;
}

/* In the child. The filter comes before the drop: with root's power it needs no no_new_privs, so
 * the command finds its rights as it would without us. */
static void __attribute__((noreturn)) become(const struct trace_plan *plan, int gate)
{
	char byte;
	int rc;

	if (read(gate, &byte, 1) != 1 || redirect(plan) < 0)
		_exit(126);
	rc = filter_install(plan);
	if (rc < 0) {
		dprintf(2, "failcall: the seccomp filter: errno %d\n", -rc);
		_exit(126);
	}
	if (plan->drop &&
		(setgroups(0, NULL) < 0 || setresgid(plan->gid, plan->gid, plan->gid) < 0 ||
			setresuid(plan->uid, plan->uid, plan->uid) < 0)) {
		dprintf(2, "failcall: cannot become uid %u: errno %d\n", plan->uid, errno);
		_exit(126);
	}
	execvpe(plan->argv[0], plan->argv, plan->envp ? plan->envp : environ);
	rc = errno;
	dprintf(2, "failcall: cannot start %s: errno %d\n", plan->argv[0], rc);
	_exit(rc == ENOENT ? 127 : 126);
}

int launch_start(const struct trace_plan *plan, pid_t *pid)
{
	int gate[2], rc = 0;

	if (pipe2(gate, O_CLOEXEC) < 0)
		return -errno;
	*pid = fork();
	if (*pid == 0) {
		close(gate[1]);
		become(plan, gate[0]);
	}
	close(gate[0]);
	if (*pid < 0 || ptrace(PTRACE_SEIZE, *pid, 0, OPTIONS) < 0)
		rc = -errno;
	else if (write(gate[1], "", 1) != 1)
		rc = -EPIPE;
	close(gate[1]);
	if (rc < 0 && *pid > 0) {
		kill(*pid, SIGKILL);
		waitpid(*pid, NULL, 0);
	}
	return rc;
}
