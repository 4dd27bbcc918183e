#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/slowfs_node.h"

#define BUCKETS (1u << 18)
#define ROOT_INO 1u /* as the kernel has it */

struct node {
	struct node *next, *parent;
	char *name;
	uint64_t known; /* times that the kernel knows it, and one for each child */
	bool attached;
};

int node_root;

static struct node root = { .known = 1 };
static struct node *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct node *node_of(uint64_t ino)
{
	return ino == ROOT_INO ? &root : (struct node *)(uintptr_t)ino; /* NOLINT */
}

static struct node **bucket(const struct node *parent, const char *name)
{
	uint64_t hash = (uintptr_t)parent * 0x9e3779b97f4a7c15ull;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3ull;
	return &buckets[(hash >> 24) % BUCKETS];
}

static struct node *find(const struct node *parent, const char *name)
{
	struct node *node = *bucket(parent, name);

	while (node && (node->parent != parent || strcmp(node->name, name)))
		node = node->next;
	return node;
}

static void attach(struct node *node)
{
	struct node **place = bucket(node->parent, node->name);

	node->next = *place;
	*place = node;
	node->attached = true;
}

static void detach(struct node *node)
{
	struct node **place;

	if (!node || !node->attached)
		return;
	place = bucket(node->parent, node->name);
	while (*place != node)
		place = &(*place)->next;
	*place = node->next;
	node->attached = false;
}

static void put(struct node *node, uint64_t count)
{
	while (node != &root) {
		struct node *parent = node->parent;

		node->known -= count;
		if (node->known)
			return;
		detach(node);
		free(node->name);
		free(node);
		node = parent;
		count = 1;
	}
}

static char *copy_name(const char *name)
{
	char *copy = strdup(name);

	if (!copy)
		abort();
	return copy;
}

uint64_t node_get(uint64_t parent, const char *name)
{
	struct node *node;

	pthread_mutex_lock(&lock);
	node = find(node_of(parent), name);
	if (!node) {
		node = calloc(1, sizeof(*node));
		if (!node)
			abort();
		node->parent = node_of(parent);
		node->parent->known++;
		node->name = copy_name(name);
		attach(node);
	}
	node->known++;
	pthread_mutex_unlock(&lock);
	return (uintptr_t)node;
}

void node_put(uint64_t ino, uint64_t count)
{
	pthread_mutex_lock(&lock);
	put(node_of(ino), count);
	pthread_mutex_unlock(&lock);
}

/* From the end, since a node knows only what is above it. */
static char *prepend(char *begin, char *end, const char *name)
{
	size_t size = strlen(name), room = (size_t)(end - begin);

	if (size + 1 > room)
		return begin;
	end -= size;
	memcpy(end, name, size);
	*--end = '/';
	return end;
}

void node_path(uint64_t ino, const char *name, char *path, size_t size)
{
	char text[4096], *end = text + sizeof(text) - 1;
	const struct node *node = node_of(ino);

	*end = '\0';
	if (name)
		end = prepend(text, end, name);
	pthread_mutex_lock(&lock);
	for (; node != &root; node = node->parent)
		end = prepend(text, end, node->name);
	pthread_mutex_unlock(&lock);
	snprintf(path, size, "%s", *end ? end + 1 : ".");
}

void node_detach(uint64_t parent, const char *name)
{
	pthread_mutex_lock(&lock);
	detach(find(node_of(parent), name));
	pthread_mutex_unlock(&lock);
}

static void rename_node(struct node *node, struct node *parent, const char *name)
{
	struct node *before;

	if (!node)
		return;
	before = node->parent;
	free(node->name);
	node->name = copy_name(name);
	node->parent = parent;
	parent->known++;
	attach(node);
	put(before, 1);
}

void node_move(uint64_t parent, const char *name, uint64_t to_parent, const char *to_name,
	bool exchange)
{
	struct node *node, *other;

	pthread_mutex_lock(&lock);
	node = find(node_of(parent), name);
	other = find(node_of(to_parent), to_name);
	detach(node);
	detach(other);
	rename_node(node, node_of(to_parent), to_name);
	if (exchange)
		rename_node(other, node_of(parent), name);
	pthread_mutex_unlock(&lock);
}
