package backup

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"hubcloud/streams/durablefile"
)

// unfinishedText is for whoever finds it.
const unfinishedText = "This backup was not finished, or is being written. It cannot be " +
	"restored: remove the folder, and take another one.\n"

// folder is a backup that is being written. Safe for concurrent use.
type folder struct {
	dir string

	mu    sync.Mutex
	files []File
}

// newFolder takes a folder that is new or empty. It holds secrets: nobody else may read it.
func newFolder(dir string) (*folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(
		entries, func(e fs.DirEntry) bool { return e.Name() == unfinishedName },
	) {
		return nil, fmt.Errorf(
			"%s holds a backup that was not finished: remove the folder, or name another one", dir,
		)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf(
			"%s is not empty: a backup needs a folder of its own, new or empty", dir,
		)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, err
	}
	f := &folder{dir: dir}
	return f, f.put(unfinishedName, []byte(unfinishedText))
}

// create begins a file. What the caller says of it besides its name goes into the manifest once it
// is closed.
func (f *folder) create(name string) (*file, error) {
	path := filepath.Join(f.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	made, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	w := &file{folder: f, made: made, sum: sha256.New(), File: File{Name: name}}
	w.buffer = bufio.NewWriterSize(made, 128<<10)
	return w, nil
}

// write makes a file of bytes at hand.
func (f *folder) write(name string, content []byte) error {
	w, err := f.create(name)
	if err != nil {
		return err
	}
	_, err = w.Write(content)
	return w.close(err)
}

// put writes a file that the manifest does not list, wholly or not at all.
func (f *folder) put(name string, content []byte) error {
	return durablefile.Write(filepath.Join(f.dir, name), content, 0o600)
}

// finish writes what makes the files a backup.
func (f *folder) finish(m Manifest) (Manifest, error) {
	m.Files = f.files
	slices.SortFunc(m.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	text, err := m.encode()
	if err != nil {
		return m, err
	}
	if err := f.put(manifestName, text); err != nil {
		return m, err
	}
	// Everything is on disk before the sums say that it is there.
	if err := syncFolders(f.dir); err != nil {
		return m, err
	}
	if err := os.Remove(filepath.Join(f.dir, unfinishedName)); err != nil {
		return m, err
	}
	if err := f.put(sumsName, []byte(m.sums(sumOf(text)))); err != nil {
		return m, err
	}
	return m, syncFolders(f.dir)
}

// file is one file that is being written.
type file struct {
	File
	folder *folder
	made   *os.File
	buffer *bufio.Writer
	sum    hash.Hash
}

// Write writes.
func (w *file) Write(p []byte) (int, error) {
	w.sum.Write(p) // never fails
	w.Bytes += int64(len(p))
	return w.buffer.Write(p)
}

// again empties the file.
func (w *file) again() error {
	w.buffer.Reset(w.made)
	w.sum.Reset()
	w.Bytes = 0
	if _, err := w.made.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return w.made.Truncate(0)
}

// close puts the file on disk, and into the manifest unless err or that says otherwise.
func (w *file) close(err error) error {
	if err == nil {
		err = w.buffer.Flush()
	}
	if err == nil {
		err = w.made.Sync()
	}
	if err = errors.Join(err, w.made.Close()); err != nil {
		return fmt.Errorf("%s: %w", w.Name, err)
	}
	w.SHA256 = hex.EncodeToString(w.sum.Sum(nil))
	w.folder.mu.Lock()
	defer w.folder.mu.Unlock()
	w.folder.files = append(w.folder.files, w.File)
	return nil
}

// syncFolders makes the names in a folder and those below it outlast a power cut.
func syncFolders(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		opened, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(opened.Sync(), opened.Close())
	})
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// sumFile reads a file to its end.
func sumFile(path string, passed func(int64)) (bytes int64, sum string, err error) {
	opened, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer opened.Close()
	sums := sha256.New()
	buffer := make([]byte, 256<<10)
	for {
		n, err := opened.Read(buffer)
		sums.Write(buffer[:n]) // never fails
		bytes += int64(n)
		passed(int64(n))
		if errors.Is(err, io.EOF) {
			return bytes, hex.EncodeToString(sums.Sum(nil)), nil
		}
		if err != nil {
			return bytes, "", err
		}
	}
}
