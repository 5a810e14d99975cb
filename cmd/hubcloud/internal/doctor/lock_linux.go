package doctor

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// lockHeld says whether a process has locked a file. It looks at what the kernel lists instead of
// trying: a lock that is taken for a moment would keep a service from starting at that moment.
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
		words := strings.Fields(lines.Text())
		if len(words) >= 6 && words[1] == "FLOCK" && strings.HasSuffix(words[5], inode) {
			return true
		}
	}
	return false
}
