package tap

import (
	"os"

	"golang.org/x/sys/unix"
)

// inPipe is how many bytes of a pipe its reader has not taken yet. ErrReaderGone when there is some, and no reader.
func inPipe(pipe *os.File) (int, error) {
	fd := int(pipe.Fd())
	waiting, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	if err != nil || waiting == 0 {
		return 0, err
	}
	ends := []unix.PollFd{{Fd: int32(fd)}}
	if _, err := unix.Poll(ends, 0); err == nil && ends[0].Revents&unix.POLLERR != 0 {
		return 0, ErrReaderGone
	}
	return waiting, nil
}
