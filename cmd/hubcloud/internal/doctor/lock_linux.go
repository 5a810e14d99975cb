package doctor

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// lockHeld reports whether a process has locked a file. It reads the kernel's list of locks: taking
// the lock, even for a moment, could fail the start of a service.
func lockHeld(path string) bool {
	var file syscall.Stat_t
	if syscall.Stat(path, &file) != nil {
		return false
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return false
	}
	defer locks.Close()
	inode := fmt.Sprintf(":%d", file.Ino)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 4711 08:01:131090 0 EOF
		fields := strings.Fields(lines.Text())
		if len(fields) >= 6 && fields[1] == "FLOCK" && strings.HasSuffix(fields[5], inode) {
			return true
		}
	}
	return false
}
