package cluster

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// A package as the repository has them, with programs that only say their version.
//
//go:embed testdata/server.txz
var packed []byte

func TestFetchesTheServerOnce(t *testing.T) {
	t.Parallel()
	var jar bytes.Buffer
	archive := zip.NewWriter(&jar)
	entry, err := archive.Create("postgres-linux.txz")
	if err == nil {
		_, err = entry.Write(packed)
	}
	if err := errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(jar.Bytes())
	var asked atomic.Int64
	var broken atomic.Bool
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.Contains(r.URL.Path, "/17."):
			http.NotFound(w, r)
		case strings.HasSuffix(r.URL.Path, ".sha256"):
			_, _ = w.Write([]byte(hex.EncodeToString(sum[:])))
		case broken.Load():
			_, _ = w.Write(jar.Bytes()[:jar.Len()/2])
		default:
			asked.Add(1)
			_, _ = w.Write(jar.Bytes())
		}
	}))
	t.Cleanup(func() { mirror.Close(); http.DefaultClient.CloseIdleConnections() })
	cache := filepath.Join(t.TempDir(), "cache")
	log := slog.New(slog.NewTextHandler(t.Output(), nil))

	name := packageName(fetchable[len(fetchable)-1]) + ".jar"
	known := map[string]string{name: hex.EncodeToString(sum[:]), packageName(fetchable[1]) + ".jar": hex.EncodeToString(sum[:])}

	// A sum that comes from the repository vouches for nothing: whoever changes a package there changes its sum as well.
	for what, sums := range map[string]map[string]string{"no sum": {}, "another sum": {name: strings.Repeat("0", 64)}} {
		if got, err := fetchBinaries(t.Context(), mirror.URL, cache, nil, sums, log); err == nil || majorOf(t.Context(), filepath.Join(cache, "postgres-17.5.0", "bin")) != 0 {
			t.Errorf("%s: fetched %v, %v", what, got, err)
		}
	}
	if n := asked.Swap(0); n != 1 {
		t.Errorf("a package without a sum was asked for: %d", n)
	}
	broken.Store(true)
	if got, err := fetchBinaries(t.Context(), mirror.URL, cache, nil, known, log); err == nil {
		t.Errorf("half a package gave %v", got)
	}
	if _, err := fetchBinaries(t.Context(), mirror.URL, cache, []int{14}, known, log); err == nil || !strings.Contains(err.Error(), "14.") {
		t.Errorf("a version that is not there: %v", err)
	}
	broken.Store(false)
	for range 2 {
		got, err := fetchBinaries(t.Context(), mirror.URL, cache, nil, known, log)
		if err != nil || got.major != 17 || majorOf(t.Context(), got.dir) != 17 {
			t.Fatalf("fetched %v, %v", got, err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("fetched %d times", n)
	}
	if left, err := os.ReadDir(cache); err != nil || len(left) != 1 {
		t.Errorf("left in the cache: %v, %v", left, err)
	}
}

// TestOnlyDemosFetch: a service downloaded PostgreSQL where none was installed.
func TestOnlyDemosFetch(t *testing.T) {
	t.Setenv("PATH", "")
	former := places
	places = nil
	t.Cleanup(func() { places = former })
	_, err := findBinaries(t.Context(), nil, false, slog.New(slog.DiscardHandler))
	if !errors.Is(err, ErrNoBinaries) || !strings.Contains(err.Error(), "install ") || strings.Contains(err.Error(), "fetch") {
		t.Error(err)
	}
}

func TestNoBinariesSayWhatToInstall(t *testing.T) {
	t.Parallel()
	if hint := installHint(); !strings.HasPrefix(hint, "install ") {
		t.Error(hint)
	}
	for wanted, want := range map[int]string{13: "13.", 15: "15.", 0: "17.", 99: "17."} {
		if version, _ := chooseFetchable([]int{wanted}); !strings.HasPrefix(string(version), want) {
			t.Errorf("for %d: %s", wanted, version)
		}
	}
}
