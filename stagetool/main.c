#include <stdio.h>

int main(void)
{
	puts("stagetool");
	return 0;
}
