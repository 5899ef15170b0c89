/* Aborts: a core that is not of a Go program. */
#include <stdlib.h>

int main(void)
{
	abort();
}
