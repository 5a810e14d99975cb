package streamstest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"

	"hubcloud/streams/disk"
)

// FreeAddress returns a loopback address that stays reserved until the test ends. Its port is below
// the ephemeral range, so that no outgoing connection takes it while the service is down. A locked
// file reserves it against concurrent tests of all packages.
func FreeAddress(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(os.TempDir(), "hubcloud-test-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		port := 12000 + rand.IntN(20000)
		lock, err := disk.AcquireLock(filepath.Join(dir, fmt.Sprint(port)))
		if errors.Is(err, disk.ErrInUse) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if listener, err := net.Listen("tcp", address); err == nil {
			listener.Close()
			t.Cleanup(func() { lock.Release() })
			return address
		}
		lock.Release()
	}
	t.Fatal("no free port")
	return ""
}
