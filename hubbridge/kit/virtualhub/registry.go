package virtualhub

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// UserFolder returns the folder in which the user's processes name themselves.
func UserFolder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "hubcloud", "virtualhubs"), nil
}

// entry is the file of a process.
type entry struct {
	Address string `json:"address"` // HOST:PORT
	Token   string `json:"token"`   // a secret
	PID     int    `json:"pid"`
	// Folder is the absolute path of the data directory of the process; "" if it has none.
	Folder string `json:"folder"`
}

// write writes the file and returns its path. A reader never finds half of it.
func (e entry) write(folder string) (path string, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(folder, "new-*") // readable by its owner only
	if err != nil {
		return "", err
	}
	_, err = f.Write(raw)
	path = strings.Replace(f.Name(), "new-", fmt.Sprintf("%d-", e.PID), 1) + ".json"
	if err := errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return path, os.Rename(f.Name(), path)
}

// read returns the files in folder by path. It skips files that it cannot read.
func read(folder string) (map[string]entry, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	entries := map[string]entry{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // the process has ended
			continue
		}
		var e entry
		if err != nil || json.Unmarshal(raw, &e) != nil {
			continue
		}
		entries[path] = e
	}
	return entries, nil
}
