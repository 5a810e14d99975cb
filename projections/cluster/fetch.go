package cluster

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// fetchable are the versions that can be fetched, newest last; the last is fetched when nothing asks for another.
var fetchable = []embeddedpostgres.PostgresVersion{
	embeddedpostgres.V13, embeddedpostgres.V14, embeddedpostgres.V15, embeddedpostgres.V16, embeddedpostgres.V17,
}

// maxPackage is the most bytes that a package may have: they have about 20 MB.
const maxPackage = 200 << 20

// sums are the SHA-256 of the packages that may be fetched, in lower-case hexadecimal, by their file names. A package that is not here is not
// fetched. To add one, download it, compare it with its signature (.jar.asc, Maven Central), and write down what sha256sum says.
var sums = map[string]string{}

// repository is where PostgreSQL's binaries are published as packages.
const repository = "https://repo1.maven.org/maven2"

// fetchBinaries downloads PostgreSQL's server from a repository into a cache, once, and gives it. The library that does so also makes and
// starts a cluster of its own, which it will not do for root; what is wanted of it is only the binaries, so what becomes of that
// cluster does not matter.
//
// A package is unpacked and run only if its SHA-256 is the one in sums: a sum that comes from where the package comes from vouches for nothing.
func fetchBinaries(ctx context.Context, repository, cache string, wanted []int, sums map[string]string, log *slog.Logger) (binaries, error) {
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
	download, name := filepath.Join(half, "download"), packageName(version)
	if err := os.Mkdir(download, 0o755); err != nil {
		return binaries{}, err
	}
	if err := fetchPackage(ctx, repository, name, string(version), sums[name+".jar"], filepath.Join(download, name+".txz")); err != nil {
		return binaries{}, err
	}
	unpacked := filepath.Join(half, "unpacked")
	library := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(version).Port(free).Username(role).Password(rand.Text()).Logger(io.Discard).BinaryRepositoryURL("none").
		CachePath(download).BinariesPath(unpacked).
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

// packageName returns the name of the package for this machine, as the repository and the library have it.
func packageName(version embeddedpostgres.PostgresVersion) string {
	platform := runtime.GOOS + "-" + runtime.GOARCH
	if runtime.GOARCH == "arm64" {
		platform += "v8"
	}
	if _, err := os.Stat("/etc/alpine-release"); err == nil && runtime.GOOS == "linux" {
		platform += "-alpine"
	}
	return "embedded-postgres-binaries-" + platform + "-" + string(version)
}

// fetchPackage downloads a package and writes the archive of binaries in it to a file, if the package has the sum.
func fetchPackage(ctx context.Context, repository, name, version, sum, file string) error {
	if sum == "" {
		return fmt.Errorf("%s.jar: no checksum is known to this version of hubcloud, and nothing is run without one", name)
	}
	folder, _ := strings.CutSuffix(name, "-"+version)
	address := fmt.Sprintf("%s/io/zonky/test/postgres/%s/%s/%s.jar", repository, folder, version, name)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	jar, err := io.ReadAll(io.LimitReader(response.Body, maxPackage))
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	if got := sha256.Sum256(jar); hex.EncodeToString(got[:]) != sum {
		return fmt.Errorf("%s: its SHA-256 is %x; it should be %s", address, got, sum)
	}
	archive, err := zip.NewReader(bytes.NewReader(jar), int64(len(jar)))
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	for _, entry := range archive.File {
		if !strings.HasSuffix(entry.Name, ".txz") {
			continue
		}
		content, err := entry.Open()
		if err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
		binaries, err := io.ReadAll(content)
		if err := errors.Join(err, content.Close()); err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
		return os.WriteFile(file, binaries, 0o600)
	}
	return fmt.Errorf("%s: has no archive of binaries", address)
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
