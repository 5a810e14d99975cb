package projector_test

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams/streamstest"
)

// networkTo returns a network to a database, and the database's URL at its other end.
func networkTo(t *testing.T, to string) (n *streamstest.Network, through string) {
	t.Helper()
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
	query := parsed.Query()
	query.Set("host", dir)
	parsed.RawQuery = query.Encode()
	return streamstest.NewNetworkTo(t, listener, func() (net.Conn, error) {
		return net.Dial("unix", server)
	}), parsed.String()
}

// A projector that was cut off from the database kept the lock, since both ends kept their
// connections.
func TestCutOffProjectorLosesItsLock(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	near := w.OpenStore(t)
	way, through := networkTo(t, w.URL)
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

	way.Hold(true)
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

	way.Hold(false)
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
