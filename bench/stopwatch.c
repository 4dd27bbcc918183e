/*
 * stopwatch FILE COMMAND...: runs the command and writes to FILE, in one line: seconds, seconds of CPU
 * (all its processes), peak memory of its largest process in KiB. Ends with the command's status.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
	struct timespec start;
	struct rusage used;
	double wall;
	int status;
	FILE *file;
	pid_t pid;

	if (argc < 3) {
		fprintf(stderr, "usage: stopwatch FILE COMMAND...\n");
		return 2;
	}
	clock_gettime(CLOCK_MONOTONIC, &start);
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &used) < 0) {
		perror("stopwatch");
		return 1;
	}
	wall = since(&start);
	file = fopen(argv[1], "w");
	if (!file || fprintf(file, "%.6f %.3f %ld\n", wall,
			     seconds(used.ru_utime) + seconds(used.ru_stime), used.ru_maxrss) < 0 ||
		fclose(file)) {
		perror(argv[1]);
		return 1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
