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

	"hubcloud/streams/disk"
)

// unfinishedText is the text of the file UNFINISHED, for the operator.
const unfinishedText = "This backup is being written or was interrupted. It cannot be restored: " +
	"remove the folder and write another backup.\n"

// folder is the folder of a backup that is being written. Safe for concurrent use.
type folder struct {
	dir string

	mu    sync.Mutex
	files []File
}

// newFolder prepares a new or empty folder for a backup. Only the owner may read it, since a backup
// contains secrets.
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
			"%s has a backup that was not finished: remove the folder, or name another one", dir,
		)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty: a backup needs a new or empty folder", dir)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, err
	}
	f := &folder{dir: dir}
	return f, f.writeUnlisted(unfinishedName, []byte(unfinishedText))
}

// create creates a file. Once the file is closed, its File goes into the manifest, with the fields
// that the caller has set.
func (f *folder) create(name string) (*file, error) {
	path := filepath.Join(f.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	onDisk, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &file{
		File: File{Name: name}, folder: f, onDisk: onDisk, hash: sha256.New(),
		buffer: bufio.NewWriterSize(onDisk, 128<<10),
	}, nil
}

// write writes a file of the backup.
func (f *folder) write(name string, content []byte) error {
	w, err := f.create(name)
	if err != nil {
		return err
	}
	_, err = w.Write(content)
	return w.close(err)
}

// writeUnlisted writes a file that the manifest does not list, atomically.
func (f *folder) writeUnlisted(name string, content []byte) error {
	return disk.Write(filepath.Join(f.dir, name), content, 0o600)
}

// finish writes the manifest and the checksums. The checksums come last, once everything else is on
// disk: they make the folder a finished backup.
func (f *folder) finish(m Manifest) (Manifest, error) {
	m.Files = f.files
	slices.SortFunc(m.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	text, err := m.encode()
	if err != nil {
		return m, err
	}
	if err := f.writeUnlisted(manifestName, text); err != nil {
		return m, err
	}
	if err := disk.SyncTree(f.dir, nil); err != nil {
		return m, err
	}
	if err := os.Remove(filepath.Join(f.dir, unfinishedName)); err != nil {
		return m, err
	}
	if err := f.writeUnlisted(sumsName, []byte(m.sums(sumOf(text)))); err != nil {
		return m, err
	}
	return m, disk.SyncTree(f.dir, nil)
}

// file is one file that is being written. It belongs to one goroutine.
type file struct {
	File
	folder *folder
	onDisk *os.File
	buffer *bufio.Writer
	hash   hash.Hash
}

// Write implements io.Writer.
func (w *file) Write(p []byte) (int, error) {
	w.hash.Write(p) // never fails
	w.Bytes += int64(len(p))
	return w.buffer.Write(p)
}

// reset empties the file.
func (w *file) reset() error {
	w.buffer.Reset(w.onDisk)
	w.hash.Reset()
	w.Bytes = 0
	if _, err := w.onDisk.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return w.onDisk.Truncate(0)
}

// close closes the file and, unless err is an error, syncs it and adds it to the manifest. It
// returns err or its own error, with the file's name.
func (w *file) close(err error) error {
	if err == nil {
		err = w.buffer.Flush()
	}
	if err == nil {
		err = w.onDisk.Sync()
	}
	if err = errors.Join(err, w.onDisk.Close()); err != nil {
		return fmt.Errorf("%s: %w", w.Name, err)
	}
	w.SHA256 = hex.EncodeToString(w.hash.Sum(nil))
	w.folder.mu.Lock()
	defer w.folder.mu.Unlock()
	w.folder.files = append(w.folder.files, w.File)
	return nil
}

// sumOf returns the SHA-256 of content in hexadecimal.
func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// sumFile returns the size and the SHA-256 of a file. read is called with the size of each part.
func sumFile(path string, read func(int64)) (bytes int64, sum string, err error) {
	opened, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer opened.Close()
	hash := sha256.New()
	buffer := make([]byte, 256<<10)
	for {
		n, err := opened.Read(buffer)
		hash.Write(buffer[:n]) // never fails
		bytes += int64(n)
		read(int64(n))
		if errors.Is(err, io.EOF) {
			return bytes, hex.EncodeToString(hash.Sum(nil)), nil
		}
		if err != nil {
			return bytes, "", err
		}
	}
}
