package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// FreeAddress gives a loopback address that nobody uses until the test ends, of a port below those
// that the system picks for outgoing connections: it stays free while what listens there is down
// and others call for it. A file that is locked meanwhile keeps other tests, also those of other
// packages that run beside this one, from taking it before it is listened to.
func FreeAddress(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(os.TempDir(), "hubcloud-test-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		port := 12000 + rand.IntN(20000)
		taken, err := os.OpenFile(
			filepath.Join(dir, fmt.Sprint(port)), os.O_CREATE|os.O_RDWR, 0o666,
		)
		if err != nil {
			t.Fatal(err)
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if syscall.Flock(int(taken.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			if listener, err := net.Listen("tcp", address); err == nil {
				listener.Close()
				t.Cleanup(func() { taken.Close() })
				return address
			}
		}
		taken.Close()
	}
	t.Fatal("no free port")
	return ""
}
