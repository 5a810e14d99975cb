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

// ErrNoBinaries is what Start answers when PostgreSQL's server binaries are neither installed nor
// to be fetched. The error that wraps it says what to install.
var ErrNoBinaries = errors.New("no PostgreSQL server binaries")

// oldestMajor is the oldest major version that the read models are made for.
const oldestMajor = 13

// binaries are one installation of PostgreSQL's server.
type binaries struct {
	dir   string // where initdb and postgres are
	major int
}

// places are where packages put the binaries, beside PATH: Debian's and Ubuntu's, the PostgreSQL
// project's for Red Hat, Homebrew's on both kinds of Mac and on Linux, Postgres.app's.
var places = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/usr/libexec/postgresql*",
}

// findBinaries gives the installed binaries to use: those of a major version that has a cluster
// already (wanted, in order), else what PATH has, else the newest that there are, else, if fetch
// says so, fetched ones.
func findBinaries(
	ctx context.Context, wanted []int, fetch bool, logger *slog.Logger,
) (binaries, error) {
	installed := installedBinaries(ctx, searchDirs())
	for _, major := range wanted {
		if i := slices.IndexFunc(installed, func(b binaries) bool { return b.major == major }); i >= 0 {
			return installed[i], nil
		}
	}
	if len(installed) > 0 {
		return installed[0], nil
	}
	if !fetch {
		return binaries{}, fmt.Errorf(
			"%w: %s (they are not in PATH nor where packages put them)", ErrNoBinaries,
			installHint(),
		)
	}
	fetched, err := fetchHere(ctx, logger)
	if err != nil {
		return binaries{}, fmt.Errorf(
			"%w: %s (they are not in PATH nor where packages put them, and fetching them failed: %w)",
			ErrNoBinaries, installHint(), err,
		)
	}
	return fetched, nil
}

// fetchHere returns the binaries that are fetched for this machine.
func fetchHere(ctx context.Context, logger *slog.Logger) (binaries, error) {
	wanted, err := releaseHere()
	if err != nil {
		return binaries{}, err
	}
	cache, err := cacheDir()
	if err != nil {
		return binaries{}, err
	}
	return fetchBinaries(ctx, registry, cache, wanted, logger)
}

// searchDirs gives the directories that may hold the binaries: PATH's, then the known places.
func searchDirs() []string {
	var dirs []string
	if initdb, err := exec.LookPath("initdb"); err == nil {
		// Packages link single programs into PATH; the server's other files are found from where
		// the program really is.
		if real, err := filepath.EvalSymlinks(initdb); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	for _, place := range places {
		found, err := filepath.Glob(place)
		if err != nil {
			continue // the patterns are constants; a bad one finds nothing
		}
		dirs = append(dirs, found...)
	}
	return dirs
}

// installedBinaries gives what is in dirs and can be used: the first one first, the others newest
// first.
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

// majorOf gives the major version of the server in dir, 0 when it cannot be told. Debian's
// directories say it themselves, which saves the start of a process at every start of ours.
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

// installHint says how to get PostgreSQL on this machine.
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

// cacheDir is where fetched binaries are kept, for every installation of this user.
func cacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "hubcloud"), nil
}
