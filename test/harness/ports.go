package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// freeAddress gives a loopback address that nobody uses, of a port below those that the system picks for outgoing connections: it
// stays free while the service is down and its hubs call for it.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 12000+rand.IntN(20000))
		listener, err := net.Listen("tcp", address)
		if err == nil {
			listener.Close()
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}
