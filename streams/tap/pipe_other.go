//go:build !linux

package tap

import "os"

// inPipe returns 0: this system does not report the unread bytes of a pipe.
func inPipe(*os.File) (int, error) { return 0, nil }

// torn returns false: this system cannot read a file that is open for writing only.
func torn(*os.File) bool { return false }
