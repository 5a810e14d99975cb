package projector_test

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams/streamstest"
)

// network is a connection to the tests' server that can be cut: then it holds all bytes, and
// neither side gets an error.
type network struct {
	mu    sync.Mutex
	whole *sync.Cond
	cut   bool
}

// newNetwork returns a network, and the URL of a database at its other end.
func newNetwork(t *testing.T, to string) (n *network, through string) {
	t.Helper()
	n = &network{}
	n.whole = sync.NewCond(&n.mu)
	parsed, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "cut") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	const socket = ".s.PGSQL.5432"
	server := filepath.Join(parsed.Query().Get("host"), socket)
	listener, err := net.Listen("unix", filepath.Join(dir, socket))
	if err != nil {
		t.Fatal(err)
	}
	var carrying sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); n.set(false); carrying.Wait() })
	carrying.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", server)
			if err != nil {
				_ = near.Close()
				continue
			}
			carrying.Go(func() { n.carry(near, far) })
			carrying.Go(func() { n.carry(far, near) })
		}
	})
	query := parsed.Query()
	query.Set("host", dir)
	parsed.RawQuery = query.Encode()
	return n, parsed.String()
}

// carry copies bytes until either end is closed. It holds them while the network is cut.
func (n *network) carry(from, to net.Conn) {
	defer to.Close()
	defer from.Close()
	some := make([]byte, 32<<10)
	for {
		count, err := from.Read(some)
		n.mu.Lock()
		for n.cut {
			n.whole.Wait()
		}
		n.mu.Unlock()
		if count > 0 {
			if _, err := to.Write(some[:count]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (n *network) set(cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = cut
	n.whole.Broadcast()
}

// A projector that was cut off from the database kept the lock, since both ends kept their
// connections.
func TestCutOffProjectorLosesItsLock(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	near := w.OpenStore(t)
	way, through := newNetwork(t, w.URL)
	beyond := *w
	beyond.URL = through
	far := beyond.OpenStore(t)
	projectingFar := beyond.Project(t, far)
	projectionstest.Await(t, near, w.AddSite(t, org, 1))
	streamstest.Eventually(
		t, "the one beyond the network projects",
		func() bool { return projectingFar.MetricIs(t, "leading", "", 1) },
	)
	projectingNear := w.Project(t, near)

	way.set(true)
	begun := time.Now()
	projectionstest.Await(t, near, w.AddSite(t, org, 2))
	t.Logf("taken over after %s", time.Since(begun))
	streamstest.Eventually(
		t, "the projector that is cut off has stopped",
		func() bool { return projectingFar.MetricIs(t, "leading", "", 0) },
	)
	if _, err := far.Sites(t.Context(), domain.Reach{OrgID: org}, 50, ""); domain.CodeOf(
		err,
	) != domain.CodeServiceUnavailable {
		t.Errorf("read of a process that is cut off: got %v, want service_unavailable", err)
	}

	way.set(false)
	last := w.AddSite(t, org, 3)
	projectionstest.Await(t, far, last)
	if page, err := far.Sites(t.Context(), domain.Reach{OrgID: org}, 50, ""); err != nil || len(page.Data) != 3 {
		t.Errorf("Sites: got %+v, %v, want both sites", page, err)
	}
	if !projectingNear.MetricIs(t, "leading", "", 1) ||
		!projectingFar.MetricIs(t, "leading", "", 0) {
		t.Error("the process that was cut off projects again")
	}
}
