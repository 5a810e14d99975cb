package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
)

// ErrNoBinaries means that PostgreSQL's server binaries are not installed and cannot be fetched.
// The text of the error that wraps it names what to install.
var ErrNoBinaries = errors.New("no PostgreSQL server binaries")

// oldestMajor is the oldest major version that the read models work with.
const oldestMajor = 13

// binaries are one installation of PostgreSQL's server.
type binaries struct {
	dir   string // has initdb and postgres
	major int
}

// findBinaries returns the binaries to use. It prefers binaries in dirs of a major version in
// wanted, the versions of the existing clusters, in their order. Otherwise it returns those in the
// first of dirs, or the newest in dirs. If dirs have none, it downloads them from fetch, unless
// that is nil.
func findBinaries(
	ctx context.Context, dirs []string, wanted []int, fetch *source, logger *slog.Logger,
) (binaries, error) {
	installed := installedBinaries(ctx, dirs)
	for _, major := range wanted {
		if i := slices.IndexFunc(installed, func(b binaries) bool { return b.major == major }); i >= 0 {
			return installed[i], nil
		}
	}
	if len(installed) > 0 {
		return installed[0], nil
	}
	if fetch == nil {
		return binaries{}, fmt.Errorf(
			"%w: %s (neither PATH nor the usual directories have them)", ErrNoBinaries,
			installHint(),
		)
	}
	fetched, err := fetchHere(ctx, *fetch, logger)
	if err != nil {
		return binaries{}, fmt.Errorf(
			"%w: %s (neither PATH nor the usual directories have them, and fetching them failed: %w)",
			ErrNoBinaries, installHint(), err,
		)
	}
	return fetched, nil
}

// fetchHere downloads the binaries for this machine.
func fetchHere(ctx context.Context, from source, logger *slog.Logger) (binaries, error) {
	wanted, err := releaseHere()
	if err != nil {
		return binaries{}, err
	}
	cache, err := cacheDir()
	if err != nil {
		return binaries{}, err
	}
	return fetchBinaries(ctx, from, cache, wanted, logger)
}

// searchDirs returns the directories that may hold the binaries: where initdb in PATH is, then the
// directories of packages.
func searchDirs() []string {
	var dirs []string
	if initdb, err := exec.LookPath("initdb"); err == nil {
		// Packages link single programs into PATH. The server finds its other files from the
		// program's real directory.
		if real, err := filepath.EvalSymlinks(initdb); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",                          // Debian, Ubuntu
		"/usr/pgsql-*/bin",                                   // PostgreSQL's packages for Red Hat
		"/opt/homebrew/opt/postgresql*/bin",                  // Homebrew, Apple silicon
		"/usr/local/opt/postgresql*/bin",                     // Homebrew, Intel
		"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",     // Homebrew, Linux
		"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
		"/usr/libexec/postgresql*",                           // Alpine
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			continue // a bad pattern finds nothing
		}
		dirs = append(dirs, found...)
	}
	return dirs
}

// installedBinaries returns the usable binaries in dirs: those in the first of dirs first, the
// others newest first.
func installedBinaries(ctx context.Context, dirs []string) []binaries {
	var found []binaries
	for _, dir := range dirs {
		if _, err := exec.LookPath(filepath.Join(dir, "initdb")); err != nil {
			continue
		}
		if major := majorOf(ctx, dir); major >= oldestMajor {
			found = append(found, binaries{dir: dir, major: major})
		}
	}
	if len(found) > 1 && found[0].dir == dirs[0] {
		slices.SortStableFunc(found[1:], newestFirst)
	} else {
		slices.SortStableFunc(found, newestFirst)
	}
	return found
}

func newestFirst(a, b binaries) int { return cmp.Compare(b.major, a.major) }

var (
	majorInPath   = regexp.MustCompile(`^/usr/lib/postgresql/([0-9]+)/bin$`)
	majorInOutput = regexp.MustCompile(`PostgreSQL\) ([0-9]+)`)
)

// majorOf returns the major version of the server in dir; 0 if unknown. Debian's directories have
// the version in their name, so there majorOf starts no process.
func majorOf(ctx context.Context, dir string) int {
	found := majorInPath.FindStringSubmatch(dir)
	server := filepath.Join(dir, "postgres")
	if _, err := exec.LookPath(server); err != nil {
		return 0
	}
	if found == nil {
		output, err := exec.CommandContext(ctx, server, "--version").Output()
		if err != nil {
			return 0
		}
		if found = majorInOutput.FindStringSubmatch(string(output)); found == nil {
			return 0
		}
	}
	major, err := strconv.Atoi(found[1])
	if err != nil {
		return 0
	}
	return major
}

// installHint returns how to install PostgreSQL on this machine.
func installHint() string {
	if runtime.GOOS == "darwin" {
		return "install them with `brew install postgresql@17`"
	}
	for _, manager := range []struct{ program, command string }{
		{"apt-get", "apt-get install postgresql"},
		{"dnf", "dnf install postgresql-server"},
		{"apk", "apk add postgresql"},
		{"pacman", "pacman -S postgresql"},
		{"zypper", "zypper install postgresql-server"},
	} {
		if _, err := exec.LookPath(manager.program); err == nil {
			return "install them with `" + manager.command + "`"
		}
	}
	return fmt.Sprintf("install the PostgreSQL server, version %d or newer", oldestMajor)
}

// cacheDir returns the directory of downloaded binaries, which all installations of the user share.
func cacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "hubcloud"), nil
}
