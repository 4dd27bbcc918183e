/*
 * A program for failcall's own tests: crowd DIR makes DIR/0 to DIR/3 from a thread each and then
 * DIR/child from a child, and prints the errno of each that failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4

static const char *directory;

static void make(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	if (mkdirat(AT_FDCWD, path, 0755) < 0)
		dprintf(1, "%s %d\n", path, errno);
}

static void *make_one(void *argument)
{
	char name[8];

	snprintf(name, sizeof(name), "%d", (int)(intptr_t)argument);
	make(name);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	pid_t child;

	if (argc != 2)
		return 2;
	directory = argv[1];
	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, make_one, (void *)(intptr_t)i))
			return 1;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	child = fork();
	if (child == 0) {
		make("child");
		_exit(0);
	}
	return child < 0 || waitpid(child, NULL, 0) < 0;
}
