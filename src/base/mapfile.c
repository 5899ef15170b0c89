#include "base/mapfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct sonde_error *sonde_mapfile_open_fd(int fd, const char *name, struct sonde_mapfile **ret)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return sonde_error_os(errno, "%s", name);
	if (S_ISDIR(st.st_mode))
		return sonde_error_os(EISDIR, "%s", name);
	if (!S_ISREG(st.st_mode))
		return sonde_error_new(SONDE_UNSUPPORTED, "%s: not a regular file", name);

	sonde_cleanup(sonde_mapfile) struct sonde_mapfile *file = sonde_new(struct sonde_mapfile);
	if (!file)
		return &sonde_enomem;
	file->fd = -1;
	file->path = strdup(name);
	if (!file->path)
		return &sonde_enomem;
	file->size_bytes = (uint64_t)st.st_size;
	file->device = st.st_dev;
	file->inode = st.st_ino;
	if (file->size_bytes) {
		void *data = mmap(NULL, file->size_bytes, PROT_READ, MAP_SHARED, fd, 0);
		if (data == MAP_FAILED)
			return sonde_error_os(errno, "%s: mmap of %llu bytes", name,
				(unsigned long long)file->size_bytes);
		file->data = data;
	}
	file->fd = fd;
	*ret = sonde_take(file);
	return NULL;
}

struct sonde_error *sonde_mapfile_open(const char *path, struct sonde_mapfile **ret)
{
	/* O_NONBLOCK: opening a FIFO by mistake must say so, not hang. It means nothing for regular files. */
	sonde_cleanup(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return sonde_error_os(errno, "%s", path);
	SONDE_TRY(sonde_mapfile_open_fd(fd, path, ret));
	(void)sonde_take_fd(fd);
	return NULL;
}

void sonde_mapfile_free(struct sonde_mapfile *file)
{
	if (!file)
		return;
	if (file->data)
		munmap((void *)file->data, file->size_bytes);
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file);
}
