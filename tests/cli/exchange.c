/*
 * Exchanges names as fast as it can: in the directory that it is started in, "a1" and "b1" change places,
 * "a2" and "b2", up to COUNT, again and again, until it gets SIGTERM or none of them is left. Then it
 * says how often it did. What a user does who wants a walk to take one for the other.
 *
 *	exchange COUNT
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXCHANGE 2 /* RENAME_EXCHANGE */

static volatile sig_atomic_t over;

static void end(int number)
{
	(void)number;
	over = 1;
}

int main(int argc, char **argv)
{
	int count = argc == 2 ? atoi(argv[1]) : 0, alive = 1;
	unsigned long done = 0;

	if (count < 1)
		return 2;
	signal(SIGTERM, end);
	puts("ready");
	fflush(stdout);
	while (!over && alive) {
		alive = 0;
		for (int i = 1; i <= count; i++) {
			char a[32], b[32];

			snprintf(a, sizeof(a), "a%d", i);
			snprintf(b, sizeof(b), "b%d", i);
			if (syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, EXCHANGE) == 0) {
				alive = 1;
				done++;
			}
		}
	}
	printf("%lu\n", done);
	return 0;
}
