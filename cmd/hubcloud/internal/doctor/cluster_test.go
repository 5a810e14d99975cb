package doctor

import (
	"context"
	"strings"
	"testing"

	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

// The doctor reports a missing server with the incomplete copies, and a cluster without a leader.
func TestMissingServers(t *testing.T) {
	t.Parallel()
	cluster, conns := streamstest.NewConnectedCluster(t)
	if _, err := directory.Open(t.Context(), conns, 3); err != nil {
		t.Fatal(err)
	}
	check := func() Component {
		ctx, cancel := context.WithTimeout(t.Context(), checkTimeout)
		defer cancel()
		f := newFindings()
		checkBroker(ctx, Service{Conns: conns, LogReplicas: 3}.visit(ctx, limits()), f)
		return f.component("broker")
	}
	streamstest.Eventually(t, "three servers are healthy", func() bool {
		c := check()
		return c.Verdict == OK && strings.Contains(c.Detail, "leads the cluster") &&
			strings.Contains(c.Detail, "server-2")
	})
	cluster.Stop(2)
	streamstest.Eventually(t, "the missing server is reported", func() bool {
		c := check()
		return c.Verdict == Wrong &&
			strings.Contains(c.Detail, "2 of the cluster's 3 servers answer") &&
			strings.Contains(c.Detail, "missing or incomplete copies: DIRECTORY")
	})
	cluster.Stop(1)
	streamstest.Eventually(t, "the missing leader is reported", func() bool {
		c := check()
		return c.Verdict == Wrong &&
			strings.Contains(c.Detail, "1 of the cluster's 3 servers answer") &&
			strings.Contains(c.Detail, "no server leads")
	})
}
