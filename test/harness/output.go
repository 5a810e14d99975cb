package harness

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// tail keeps the last bytes that a process printed.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 256 << 10

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if over := len(l.text) - tailBytes; over > 0 {
		l.text = append(l.text[:0], l.text[over:]...)
	}
	return len(p), nil
}

// without returns the lines that do not contain text.
func (l *tail) without(text string) string {
	lines := strings.SplitAfter(l.String(), "\n")
	return strings.Join(
		slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, text) }),
		"",
	)
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// Log returns the last lines that the process printed.
func (s *Service) Log() string { return s.log.String() }

// FindInFiles searches the files of the service's data directory for a text and returns the path of
// the first match, or "". The folders in but are skipped; they are relative to the data directory.
func (s *Service) FindInFiles(text string, but ...string) string {
	s.t.Helper()
	found := ""
	err := filepath.WalkDir(s.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || found != "" {
			return nil // a running service creates and removes files
		}
		if entry.IsDir() {
			if relative, err := filepath.Rel(s.Dir, path); err == nil &&
				slices.Contains(but, relative) {
				return filepath.SkipDir
			}
			return nil
		}
		content, err := os.ReadFile(path)
		if entry.Type().IsRegular() && err == nil && bytes.Contains(content, []byte(text)) {
			found = path
		}
		return nil
	})
	Must(s.t, err)
	return found
}

// CopyFile writes a copy of a file that only the owner may read.
func CopyFile(t testing.TB, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	Must(t, err)
	Must(t, os.WriteFile(to, text, 0o600))
}
