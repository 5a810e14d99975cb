package tap

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// inPipe returns the number of bytes in a pipe that have not been read. It returns ErrReaderGone if
// there are some and the pipe has no reader.
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

// torn reports whether a file ends in the middle of a line. It opens the file again, because out
// may be open for writing only.
func torn(out *os.File) bool {
	info, err := out.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	file, err := os.Open("/proc/self/fd/" + strconv.Itoa(int(out.Fd())))
	if err != nil {
		return false
	}
	last := make([]byte, 1)
	_, err = file.ReadAt(last, info.Size()-1)
	_ = file.Close() // nothing was written
	return err == nil && last[0] != '\n'
}
